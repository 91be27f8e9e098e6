# SPDX-License-Identifier: BSD-3-Clause
"""Time: many short launches tell as much as six long ones, in a fifth of the time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from statistics import fmean, median, variance
from typing import TYPE_CHECKING, Any

from pytest_icbench.case import Case, Rate
from pytest_icbench.errors import IcbenchError, Unsupported
from pytest_icbench.host.session import HostSession
from pytest_icbench.measure import Settings as Lengths
from pytest_icbench.measure import measure
from pytest_icbench.measure.launch import run_launch
from pytest_icbench.measure.settings import LEAST_WARMUP_S, MOST_WARMUP_S
from pytest_icbench.measure.summarize import main_figure
from pytest_icbench.result import Launch
from validation import drawing, rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Short launches until it is precise enough"
CLAIM = (
    "The adaptive mode reaches the half-width, over launches, of six fixed launches of 60 s in at most a fifth of "
    "their time (median over cases of the demo)."
)
METHOD = """
For each case, six fixed launches of a few seconds are measured, and the variance of their figure is taken apart into
that between launches and that within, as Kalibera and Jones do ("Rigorous benchmarking in reasonable time", ISMM
2013): within a launch of throughput from its seconds, of latency from how launches of one second vary beside longer
ones. Six launches of 60 s would have the variance between and a sixtieth of that of a second within. **Their
half-width is computed from that and not measured**, which would take hours. Where the seconds of a launch are
correlated it is wider in truth, and the claim easier.

Then the adaptive mode runs with that half-width as its precision, in real time, for at most a fifth of the time of
the six. A case that does not get there counts as one that takes longer. The cases are those of the demo with frames of
64 bytes; round trips over two of its switches.
"""
SECONDS = 420.0
FIGURES = {"cases": "Time of the adaptive mode over that of six launches of 60 s with the same half-width."}

SHARE = 0.2
LONG_S = 60.0
#: Launches and the length of each from which the six long ones are computed.
LAUNCHES, FIXED_S = 6, 4.0
#: Where the launches of one second stand in for the within-part: nothing is more precise than this.
LEAST_PRECISION = 0.001
#: Between the end of a launch's frames and the start of the next one's, in the fixed mode too.
WARMUP_S = 0.25
#: Half-width of six values' interval over their standard deviation, on average over normal series.
SIX_OVER_DEVIATION = 1.045

RATES = [
    Case("veth", api="udp-mmsg"),
    Case("linux-bridge", api="udp-mmsg"),
    Case("direct"),
    Case("testpmd"),
    Case("ovs"),
]
TRIPS = [
    replace(case, dimension="latency", rate=Rate(1000), burst=4) for case in RATES if case.switch in ("direct", "ovs")
]
CASES = (*RATES, *TRIPS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case.

    Attributes:
        between, within: standard deviations of the figure over its level, between launches and of a second within.
        fixed: half-width over the level of six launches of 60 s. fixed_s: what they take.
        adaptive: half-width that was reached. adaptive_s: after how long.
    """

    case: str
    level: float
    between: float
    within: float
    fixed: float
    fixed_s: float
    adaptive: float | None
    adaptive_s: float
    launches: int
    ended_by: str
    bands: bool

    @property
    def share(self) -> float:
        """Time over that of the six; infinite for a case that did not get there."""
        return self.adaptive_s / self.fixed_s if self.ended_by == "precision" else float("inf")


def check(settings: Settings) -> Found:
    outcomes: list[Outcome] = []
    notes: list[str] = []
    with HostSession() as session:
        for case in CASES:
            settings.tell(case.id)
            try:
                outcomes.append(one(session, case, settings))
            except IcbenchError as reason:
                notes.append(f"Without {case.dimension} {case.id}: {str(reason).splitlines()[0]}")
    if not outcomes:
        raise Unsupported("no case of the demo could be measured: " + "; ".join(notes))
    return assemble(outcomes, notes)


def one(session: HostSession, case: Case, settings: Settings) -> Outcome:
    """Measures one case both ways."""
    fixed = Lengths(warmup_s=WARMUP_S, duration_s=settings.amount(FIXED_S, 0.4), window_s=0.1, drain_s=0.5)
    with rigs.built(session, case, settings) as rig:
        began = time.monotonic()
        launches = [run_launch(rig, case, fixed, index=index) for index in range(LAUNCHES)]
        overhead_s = (time.monotonic() - began) / LAUNCHES - WARMUP_S - fixed.duration_s
        second = replace(fixed, duration_s=fixed.duration_s / 4)
        short = [run_launch(rig, case, second, index=index) for index in range(LAUNCHES)] if case in TRIPS else []
        level, between, within = components(case, launches, short)
        six_s = LAUNCHES * (LONG_S + WARMUP_S + overhead_s)
        width = SIX_OVER_DEVIATION * sqrt(between**2 + within**2 / LONG_S)
        found = measure(
            rig,
            None,
            case,
            Lengths(
                warmup_s=LEAST_WARMUP_S,
                max_warmup_s=MOST_WARMUP_S,
                precision=max(width, LEAST_PRECISION),
                max_duration_s=settings.amount(SHARE * six_s, 4),
            ),
        )
    return Outcome(
        case=f"{case.dimension} {case.id}",
        level=level,
        between=between,
        within=within,
        fixed=width,
        fixed_s=six_s,
        adaptive=found.precision,
        adaptive_s=found.duration_s,
        launches=found.launches,
        ended_by=found.ended_by,
        bands=found.bands is not None,
    )


def components(case: Case, launches: Sequence[Launch], short: Sequence[Launch]) -> tuple[float, float, float]:
    """Level, and the deviations between launches and of a second within one, over the level.

    A variance that comes out negative is none (one-way analysis of variance with random effects).
    """
    figures = [main_figure(case, launch) for launch in launches]
    level, total, length_s = median(figures), variance(figures), launches[0].duration_s
    if short:
        # Variances at two lengths: between + within / length.
        factor = 1 / short[0].duration_s - 1 / length_s
        within = max(variance([main_figure(case, launch) for launch in short]) - total, 0.0) / factor
    else:
        within = fmean(variance(seconds(launch)) for launch in launches)
    between = max(total - within / length_s, 0.0)
    return level, sqrt(between) / level, sqrt(within) / level


def seconds(launch: Launch) -> list[float]:
    """The rate in each second (or tenth of a short launch)."""
    by_number: dict[int, int] = {}
    for window in launch.windows:
        if window.kept:
            by_number[window.number] = by_number.get(window.number, 0) + window.received
    each = [by_number[number] for number in sorted(by_number)]
    size = 10 if len(each) >= 20 else 1
    blocks = [each[at : at + size] for at in range(0, len(each) - size + 1, size)]
    length_s = launch.windows[0].duration_ns / 1e9
    # The deviation of a block of one window, scaled to that of a second.
    rates = [fmean(block) / length_s for block in blocks]
    middle = fmean(rates)
    return [middle + (rate - middle) * sqrt(size * length_s) for rate in rates]


def assemble(outcomes: Sequence[Outcome], notes: Sequence[str]) -> Found:
    shares = [outcome.share for outcome in outcomes]
    middle = median(shares)
    rows = [
        Row(
            "adaptive time over that of six launches of 60 s, median over cases",
            f"{middle:.3f}",
            f"at most {SHARE:g}",
            middle <= SHARE,
        )
    ]
    for outcome in outcomes:
        words = f"{outcome.adaptive_s:.1f} s ({outcome.launches} launches) of {outcome.fixed_s:.0f} s"
        reached = "" if outcome.ended_by == "precision" else f", where it had ±{outcome.adaptive or 0:.2%}"
        rows.append(Row(f"{outcome.case} to ±{outcome.fixed:.2%}", words + reached))
    data = {"limit": SHARE, "cases": [asdict(outcome) for outcome in outcomes]}
    return Found(tuple(rows), data, tuple(notes))


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    axes = figure.subplots()
    cases = data["cases"]
    for place, case in enumerate(cases):
        share, reached = case["adaptive_s"] / case["fixed_s"], case["ended_by"] == "precision"
        axes.plot([share], [place], "o" if reached else ">", color=drawing.COLOURS[0 if reached else 1])
        text = f" ±{case['fixed']:.2%}, {case['launches']} launches" + ("" if reached else ", not reached")
        axes.annotate(text, (share, place), fontsize=7, va="center", xytext=(6, 0), textcoords="offset points")
    axes.axvline(data["limit"], **drawing.LIMIT)
    axes.set_yticks(range(len(cases)), [case["case"] for case in cases], fontsize=7)
    axes.set(xlabel="time over that of six launches of 60 s", xlim=(0, 0.3))
    axes.invert_yaxis()
