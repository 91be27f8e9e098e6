# SPDX-License-Identifier: BSD-3-Clause
"""Rate: what is asked for is what is sent and received, evenly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_icbench.case import Case, Rate
from pytest_icbench.host.session import HostSession
from pytest_icbench.measure import Settings as Lengths
from pytest_icbench.result import Window
from validation import drawing, rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The rate asked for is the rate sent"
CLAIM = (
    "With a core of its own a sender achieves 1 k, 100 k and 1 M frames per second within 0.1 %, so its receiver says."
)
METHOD = """
Bursts of one frame over the link without a switch (`direct`, DPDK). The achieved rate is what the receiver counted in
the windows in which the host left both ends alone, over their nominal length.
"""
SECONDS = 60.0
FIGURES = {"windows": "Received rate of each quiet window, relative to the rate asked for."}

RATES = (1_000, 100_000, 1_000_000)
TOLERANCE = 0.001


def check(settings: Settings) -> Found:
    rows: list[Row] = []
    data: dict[str, Any] = {"tolerance": TOLERANCE, "series": {}}
    every: list[Window] = []
    with HostSession() as session:
        case = Case("direct", burst=1)
        with rigs.built(session, case, settings) as rig:
            for rate in RATES:
                asked = Case("direct", burst=1, rate=Rate(rate))
                settings.tell(f"{asked.id} on {rig.placement.policy} cores")
                launch, _ = rigs.launch(rig, asked, Lengths(duration_s=settings.amount(15, 1), warmup_s=0.5))
                every += launch.windows
                quiet = [window for window in launch.windows if not window.disturbed]
                rows += figures(rate, quiet)
                data["series"][str(rate)] = [window.throughput_pps / rate for window in quiet]
    rows.append(rigs.quiet_share(every))
    return Found(tuple(rows), data)


def figures(rate: int, quiet: Sequence[Window]) -> list[Row]:
    """Achieved rate and lateness at one rate."""
    seconds = sum(window.duration_ns for window in quiet) / 1e9
    achieved = sum(window.received for window in quiet) / seconds if seconds else 0.0
    bound = f"{rate * (1 - TOLERANCE):,.0f} to {rate * (1 + TOLERANCE):,.0f}"
    worst = max((window.lateness_p99_ns for window in quiet), default=0)
    return [
        Row(f"received at {rate:,} pps, pps", achieved, bound, abs(achieved / rate - 1) <= TOLERANCE),
        Row(f"worst p99 lateness of a window at {rate:,} pps, µs", worst / 1000),
    ]


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    axes = figure.subplots()
    for rate, values in data["series"].items():
        axes.plot([(value - 1) * 100 for value in values], ".", label=f"{int(rate):,} pps")
    for sign in (-1, 1):
        axes.axhline(sign * data["tolerance"] * 100, **drawing.LIMIT)
    axes.set(xlabel="quiet window", ylabel="received over asked for, %")
    axes.legend()
