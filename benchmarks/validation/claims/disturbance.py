# SPDX-License-Identifier: BSD-3-Clause
"""Disturbance: a launch beside another's process is recognised, and how much of the spread each independent check
explains.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import log
from statistics import StatisticsError, correlation, median
from typing import TYPE_CHECKING, Any

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from validation import drawing, rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "A launch that others disturb is recognised"
CLAIM = "At least 95 % of launches beside a spinning process are recognised as disturbed, without a look at their rate."
METHOD = """
Sessions of one real case take turns: alone, and beside one process that spins on any CPU. Each indicator of a launch is
compared with the logarithm of its rate: CPU time of others, the run delay of the endpoints, and the gaps of their
loops. R² is the part of the rates' variance that a
straight line explains, for all launches and for those alone, whatever the host did then. All launches are drawn.
"""
SECONDS = 110.0
FIGURES = {"indicators": "The rate of each launch against each of its indicators."}

SESSIONS, LAUNCHES, LEAST_REPORTED = 16, 6, 0.95
CASE = Case("veth", api="udp-mmsg")
LENGTHS = Lengths(warmup_s=0.1, duration_s=0.5, window_s=0.05, drain_s=0.2, max_duration_s=3600)
_SPIN = "while True: pass"


@contextmanager
def spinning() -> Iterator[None]:
    """Somebody else's process, which wants a whole CPU."""
    process = subprocess.Popen([sys.executable, "-c", _SPIN])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def check(settings: Settings) -> Found:
    points: list[dict[str, Any]] = []
    sessions = settings.count(SESSIONS, 2)
    with HostSession(UNDO_KINDS) as session:
        for number in range(sessions):
            with rigs.built(session, CASE, settings) as rig:
                if number % 2:
                    with spinning():
                        points += [point(run_launch(rig, CASE, LENGTHS), beside=True) for _ in range(LAUNCHES)]
                else:
                    points += [point(run_launch(rig, CASE, LENGTHS), beside=False) for _ in range(LAUNCHES)]
            settings.tell(f"session {number + 1} of {sessions}")
    return assemble(points)


def point(launch: Launch, *, beside: bool) -> dict[str, Any]:
    """What is kept of a launch: its rate, what its indicators say, whether it was marked as disturbed."""
    seen = launch.interference
    gaps = [endpoint.gap_s for endpoint in launch.endpoints if endpoint.gap_s is not None]
    return {
        "beside": beside,
        "reported": launch.disturbed is not None,
        "kpps": round(launch.throughput_pps / 1e3, 1),
        "taken": None if seen is None else seen.taken,
        "waited": None if seen is None else seen.waited,
        "gaps": round(max(gaps) / launch.duration_s, 4) if gaps and launch.duration_s else None,
    }


INDICATORS = {
    "taken": "CPU time of others, CPUs",
    "waited": "run delay, share of the time",
    "gaps": "gaps of a loop, share of the time",
}


def explained(points: Sequence[Mapping[str, Any]], independent_check: str) -> float | None:
    """R² of the logarithm of the rate on an independent check; None where that cannot be determined."""
    known = [point for point in points if point[independent_check] is not None and point["kpps"] > 0]
    try:
        return correlation([point[independent_check] for point in known], [log(point["kpps"]) for point in known]) ** 2
    except StatisticsError:  # fewer than two launches, or a constant
        return None


def assemble(points: Sequence[dict[str, Any]]) -> Found:
    """The figures of all launches."""
    beside, alone = ([point for point in points if point["beside"] is side] for side in (True, False))
    reported = sum(point["reported"] for point in beside)
    part = reported / len(beside) if beside else 0.0
    rows = [
        Row(
            f"launches of {len(beside)} beside a spinning process that are told",
            reported,
            f"at least {LEAST_REPORTED * 100:.0f} %",
            part >= LEAST_REPORTED,
        ),
        Row(f"launches of {len(alone)} alone that are told", sum(point["reported"] for point in alone)),
    ]
    for which, group in (("beside it", beside), ("alone", alone)):
        taken = [point["taken"] for point in group if point["taken"] is not None]
        value = f"{median(taken):.2f}" if taken else "not known"
        rows.append(Row(f"CPU time of others, launches {which}, median, CPUs", value))
    for independent_check, name in INDICATORS.items():
        for which, explaining in (("all launches", points), ("launches alone", alone)):
            share = explained(explaining, independent_check)
            what = f"R² of the rate on {name.partition(',')[0]}, {which}"
            rows.append(Row(what, "not known" if share is None else f"{share:.2f}"))
    return Found(tuple(rows), {"case": CASE.id, "points": list(points)})


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    grid = figure.subplots(1, len(INDICATORS), sharey=True)
    for axes, (independent_check, label) in zip(grid, INDICATORS.items(), strict=True):
        for beside, colour in ((False, drawing.COLOURS[0]), (True, drawing.COLOURS[1])):
            points = [
                point for point in data["points"] if point["beside"] is beside and point[independent_check] is not None
            ]
            axes.plot(
                [point[independent_check] for point in points], [point["kpps"] for point in points], ".", color=colour
            )
        axes.set(xlabel=label, yscale="log")
    grid[0].set(ylabel=f"kpps of {data['case']}; dark: alone")
