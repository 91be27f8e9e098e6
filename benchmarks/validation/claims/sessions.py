# SPDX-License-Identifier: BSD-3-Clause
"""Sessions: thirty of them, of one real case, agree with each other as often as their intervals promise."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from pytest_icbench.host.session import HostSession
from pytest_icbench.measure.launch.launch import run_launch
from pytest_icbench.measure.stopping import why_stop
from pytest_icbench.model.case import Case
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.stats.intervals import median_over_launches
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from validation import drawing, rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Sessions agree with each other"
CLAIM = (
    "Of 30 interleaved sessions of one real case at least 26 have an interval that holds the pooled median of the "
    "other 29, drift removed."
)
METHOD = """
The sessions take turns: each has its first launch, then each its second one, and so on until the plugin's own stopping
rule ends it (precision 3 %), or the time is up. What the launches around a moment have in common is the machine's
drift: each launch is divided by the median of those around it (a round's worth) and multiplied by the median of all.
All 30 are drawn.
"""
SECONDS = 175.0
FIGURES = {"intervals": "The interval of each session, and the median of all launches."}

SESSIONS, LEAST_HOLDING = 30, 26
CASE = Case("direct")
#: A launch is short, so that thirty sessions fit into three minutes.
LENGTHS = Lengths(warmup_s=0.1, duration_s=0.4, window_s=0.05, drain_s=0.2, max_duration_s=3600)
TIME_S = 160.0


def check(settings: Settings) -> Found:
    sessions = settings.count(SESSIONS, 4)
    series: list[list[float]] = [[] for _ in range(sessions)]
    order: list[tuple[int, int]] = []
    with HostSession(UNDO_KINDS) as session, rigs.built(session, CASE, settings) as rig:
        began = time.monotonic()
        limit_s = settings.amount(TIME_S, 15)
        running = list(range(sessions))
        while running:
            for number in running:
                launch = run_launch(rig, CASE, LENGTHS, index=len(order))
                series[number].append(launch.throughput_pps)
                order.append((number, len(series[number]) - 1))
            spent, least = time.monotonic() - began, len(series[running[0]])
            settings.tell(f"round {least}: {len(running)} sessions")
            if spent >= limit_s and least >= LENGTHS.min_launches:
                break
            running = [number for number in running if why_stop(series[number], LENGTHS, 0.0, 0.0) is None]
    return assemble(series, order)


def assemble(series: Sequence[Sequence[float]], order: Sequence[tuple[int, int]]) -> Found:
    """The figures out of the launches of each session, and the order in which they ran."""
    level = without_drift(series, order)
    intervals, held = [], 0
    for number, own in enumerate(level):
        others = median([value for other, values in enumerate(level) if other != number for value in values])
        found = median_over_launches(own)
        assert found.low is not None
        assert found.high is not None
        holds = found.low <= others <= found.high
        held += holds
        intervals.append({"low": found.low, "high": found.high, "value": found.value, "holds": holds})
    widths = [(each["high"] - each["low"]) / 2 / each["value"] for each in intervals]
    least = LEAST_HOLDING if len(series) == SESSIONS else 0
    rows = (
        Row(f"sessions of {len(series)} that hold the others' median", held, f"at least {least}", held >= least),
        Row("half-width of an interval over its value, median over sessions", f"{median(widths):.2%}"),
        Row("launches of a session, on average", f"{fmean(map(len, series)):.1f}"),
    )
    pooled = median([value for values in level for value in values])
    return Found(rows, {"case": CASE.id, "pooled": pooled, "intervals": intervals})


def without_drift(series: Sequence[Sequence[float]], order: Sequence[tuple[int, int]]) -> list[list[float]]:
    """The same values with the machine's level at each moment taken out: a running median over a round's launches."""
    flat = [series[number][index] for number, index in order]
    pooled, half = median(flat), max(len(series) // 2, 2)
    found: list[list[float]] = [list(values) for values in series]
    for place, (number, index) in enumerate(order):
        near = flat[max(place - half, 0) : place + half + 1]
        found[number][index] = flat[place] / median(near) * pooled
    return found


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    axes = figure.subplots()
    for place, each in enumerate(data["intervals"], start=1):
        colour = drawing.COLOURS[0 if each["holds"] else 1]
        axes.plot([place, place], [each["low"] / 1e6, each["high"] / 1e6], color=colour)
        axes.plot([place], [each["value"] / 1e6], ".", color=colour)
    axes.axhline(data["pooled"] / 1e6, **drawing.LIMIT)
    axes.set(xlabel=f"session of {data['case']}", ylabel="Mpps, drift removed")
