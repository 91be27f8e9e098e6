# SPDX-License-Identifier: BSD-3-Clause
"""Time: many short launches tell as much as six long ones, in a fifth of the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from pytest_icbench.errors import IcbenchError, ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.summary.launch_log import main_figure
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import LEAST_WARMUP_S, MOST_WARMUP_S
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
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
Both modes run one after the other over the same rig: first six launches of 60 s, whose interval of the median is their
range, then the adaptive mode with that half-width as its precision, for at most a fifth of the time that the six took.
A case that does not get there counts as one that takes longer. Whether its interval holds the level of the six is told
without a bound: seconds do not know the noise of other minutes.

(Six short launches cannot replace the long ones. By their variance between and within launches, with independent
seconds, six minutes of the link without a switch would have given its rate to ±0.4 %; they gave it to ±1.5 %. Seconds
do not show what a host does in the course of minutes.)

The cases are three of the demo's, with frames of 64 bytes: a link of the kernel, a switch of DPDK, and a round trip.
All of them would take hours.
"""
SECONDS = 1320.0
FIGURES = {"cases": "Time of the adaptive mode over that of six launches of 60 s with the same half-width."}

SHARE = 0.2
LONG_S = 60.0
LAUNCHES = 6

#: Seven minutes each.
CASES = (
    Case("veth", api="udp-mmsg"),
    Case("ovs"),
    Case("direct", Frames(burst=4, rate=Rate(1000)), dimension="latency"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case.

    Attributes:
        fixed: half-width of the six over their level. fixed_s: what they took.
        adaptive: half-width that was reached. adaptive_s: after how long.
        interval: ends of its interval over the level of the six; None without one.
    """

    case: str
    level: float
    fixed: float
    fixed_s: float
    adaptive: float | None
    adaptive_s: float
    launches: int
    ended_by: str
    interval: tuple[float, float] | None = None

    @property
    def agrees(self) -> str:
        """Whether the interval holds the level of the six, in words."""
        if self.interval is None:
            return "it has no interval"
        low, high = self.interval
        return f"{'yes' if low <= 1 <= high else 'no'}: from {low:.3f} to {high:.3f} of it"

    @property
    def share(self) -> float:
        """Time over that of the six; infinite for a case that did not get there."""
        return self.adaptive_s / self.fixed_s if self.ended_by == "precision" else float("inf")


def check(settings: Settings) -> Found:
    outcomes: list[Outcome] = []
    notes: list[str] = []
    with HostSession(UNDO_KINDS) as session:
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
    fixed = Lengths(
        warmup_s=LEAST_WARMUP_S,
        max_warmup_s=MOST_WARMUP_S,
        duration_s=settings.amount(LONG_S, 0.4),
        repeats=LAUNCHES,
    )
    with rigs.built(session, case, settings) as rig:
        six = valid(measure(Side(rig, case), fixed))
        assert six.precision is not None  # six launches make an interval
        adaptive = replace(
            fixed,
            duration_s=Lengths().duration_s,
            repeats=None,
            precision=six.precision,
            max_duration_s=SHARE * six.duration_s,
        )
        found = valid(measure(Side(rig, case), adaptive))
    level = median(main_figure(case, launch) for launch in six.per_launch)
    figure = found.figures.main
    ends = None
    if figure is not None and figure.low is not None and figure.high is not None:
        ends = figure.low / level, figure.high / level
    return Outcome(
        case=f"{case.dimension} {case.id}",
        level=level,
        fixed=six.precision,
        fixed_s=six.duration_s,
        adaptive=found.precision,
        adaptive_s=found.duration_s,
        launches=found.launches,
        ended_by=found.ended_by,
        interval=ends,
    )


def valid(found: Measurement) -> Measurement:
    """The same. Raises ProvisionError if it is no measurement."""
    if found.verdict == "INVALID":
        raise ProvisionError(f"{found.reason}: {found.evidence}")
    return found


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
        rows.append(Row(f"{outcome.case}: its interval holds the level of the six", outcome.agrees))
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
