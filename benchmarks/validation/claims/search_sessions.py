# SPDX-License-Identifier: BSD-3-Clause
"""Searches among trials that depend on each other, and the gate that judges them over sessions that differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

import search_simulation

from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.entry import Baseline, Entry
from pytest_icbench.gate.margins import Margins
from pytest_icbench.gate.over_sessions import ERROR_RATE
from pytest_icbench.gate.session_values import SessionValues
from pytest_icbench.measure.mlrsearch import find_bounds
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.search_goal import goal_of
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.noninferiority import Figure, Margin, ratio_of
from validation import drawing
from validation.claims.gate import CASES, KEPT, LEAST_COVERED, Machine, own_levels
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SEARCHES, SESSIONS = 1000, 3000
JITTER, STALLED = 0.0005, 0.1
TITLE = "A search holds where trials and sessions are unlike"
CLAIM = (
    "On a simulated device whose trials are disturbed for some time, neighbours correlate by 0.3, 0.6 or 0.9, or with"
    " heavy tails, at least 90 % of the searches end within the goal's width. Where each is a session of a baseline of"
    " six, the gate's interval of a change holds in at least 90 % of the cases, and at most 1 % of the sessions of ten"
    " cases accuse anything of unchanged software, however sessions differ."
)
METHOD = f"""
The device is that of the claim above: its rate differs by {JITTER:.2%} from trial to trial, and {STALLED:.0%} of the
trials are interrupted. Here what disturbs a trial still disturbs the next.

A device that differs by as much as the width (0.5 %) or more has no rate to that width, and no search can find one. So
the share within the width has no bound there. Nor has the share of brackets, from the rate to the upper bound, that
hold the true rate, as a bracket is no interval (Concepts, "Searches"). The gate's intervals take a search for one value
of its session. They have a bound everywhere.

Each of {SESSIONS:,} sessions has {CASES} cases, and a baseline of {KEPT} sessions. Each session of a case has a level
of its own, and a search for `ndr` drawn from the {SEARCHES:,} of one machine. A suspect is searched again, at the same
level. All kinds of sessions stand beside the trials that correlate most, two of them beside the others. The gate's
functions decide. They are compared with the earlier rule: the brackets of two searches as intervals.
"""
SECONDS = 150.0
FIGURES = {"shares": "Searches within the width, intervals that hold, and sessions that accuse unchanged software."}

GOALS = {rate.typed: goal_of(rate, "csit") for rate in (Rate(loss_ratio=0.005), Rate(loss_ratio=0.0))}
LEAST_RIGHT = 0.90


@dataclass(frozen=True, slots=True)
class Trials:
    """How a device is disturbed; ``bound`` where it differs by less than the width."""

    name: str
    noise: Mapping[str, Any] = field(default_factory=dict)
    bound: bool = True


@dataclass(frozen=True, slots=True)
class Searched:
    """A search, as parts of the true rate."""

    rate: float
    upper: float


def correlated(correlation: float, jitter: float = JITTER, *, bound: bool = True) -> Trials:
    """Trials whose neighbours correlate."""
    name = f"trials correlate by {correlation:g}, {jitter * 100:g} %"
    return Trials(name, {"jitter": jitter, "stall_share": STALLED, "correlation": correlation}, bound)


TRIALS = (
    *(correlated(correlation) for correlation in (0.0, 0.3, 0.6, 0.9)),
    Trials("Student's t3, 0.05 %", {"jitter": JITTER, "stall_share": STALLED, "heavy": True}),
    *(correlated(correlation, 0.02, bound=False) for correlation in (0.0, 0.9)),
)
#: How sessions differ beside them.
SESSIONS_THAT = (
    Machine("sessions alike"),
    Machine("own level 2 %", own=0.02),
    Machine("own level 5 %, Student's t3", own=0.05, heavy=True),
    *(Machine(f"own level 5 %, sessions correlate by {kept:g}", own=0.05, kept=kept) for kept in (0.3, 0.6, 0.9)),
)
#: Those that are tried beside every kind of trials; the others beside trials that correlate most.
ALWAYS = SESSIONS_THAT[1:3]
MOST_CORRELATED = 0.9


def check(settings: Settings) -> Found:
    searches, sessions = settings.count(SEARCHES, 30), settings.count(SESSIONS, 10)
    rows: list[Row] = []
    shown: list[dict[str, Any]] = []
    with ProcessPoolExecutor() as pool:
        for trials in TRIALS:
            found = {}
            for name, result in zip(GOALS, pool.map(pooled, [trials] * 2, GOALS, [searches] * 2), strict=True):
                right, held, found[name] = result
                settings.tell(f"{name}, {trials.name}: {right:.1%} right, {held:.1%} of the brackets hold")
                bound = f"at least {LEAST_RIGHT:.0%}" if trials.bound else ""
                what = f"{name}, {trials.name}: of {searches:,} searches those"
                rows.append(Row(f"{what} within the width", f"{right:.1%}", bound, not bound or right >= LEAST_RIGHT))
                rows.append(Row(f"{what} whose bracket holds the rate", f"{held:.1%}"))
                shown.append({"name": f"{name}, {trials.name}", "right": right})
            drawn = found["ndr"]
            machines = SESSIONS_THAT if trials.noise.get("correlation") == MOST_CORRELATED else ALWAYS
            seeds = [f"{settings.seed} {trials.name} {machine.name}" for machine in machines]
            shares = pool.map(alarms, [drawn] * len(seeds), machines, [sessions] * len(seeds), seeds)
            for machine, (accused, before, covered) in zip(machines, shares, strict=True):
                name = f"{machine.name}, {trials.name}"
                settings.tell(f"{name}: {accused:.2%} accuse (before: {before:.1%}), {covered:.1%} hold")
                of = f"{name}: of {sessions:,} sessions"
                value = f"{accused:.2%} (by the brackets: {before:.1%})"
                bound = f"at most {ERROR_RATE:.0%}"
                rows.append(Row(f"{of} those that accuse anything unchanged", value, bound, accused <= ERROR_RATE))
                bound = f"at least {LEAST_COVERED:.0%}"
                rows.append(
                    Row(f"{of} intervals that hold the truth", f"{covered:.1%}", bound, covered >= LEAST_COVERED)
                )
                shown.append({"name": name, "accused": accused, "before": before, "covered": covered})
    return Found(tuple(rows), {"machines": shown})


def pooled(trials: Trials, goal: str, searches: int) -> tuple[float, float, list[Searched]]:
    """Shares of searches within the width, and of brackets that hold the rate; and what was found."""
    right = held = 0
    kept = []
    for bounds, device in search_simulation.searched(find_bounds, GOALS[goal], searches, **trials.noise):
        true = device.true_rate(GOALS[goal].loss_ratio)
        right += search_simulation.within_width(bounds, true, GOALS[goal].width)
        if bounds.conditional_pps is not None and bounds.upper_pps is not None:
            held += bounds.conditional_pps <= true <= bounds.upper_pps
            kept.append(Searched(bounds.conditional_pps / true, bounds.upper_pps / true))
    return right / searches, held / searches, kept


def alarms(pool: Sequence[Searched], machine: Machine, sessions: int, seed: str) -> tuple[float, float, float]:
    """Shares of sessions that accuse anything, now and by the rule of before, and of intervals that hold."""
    random = Random(seed)
    accused = before = held = 0
    for _ in range(sessions):
        cases = [judged(pool, machine, random) for _ in range(CASES)]
        accused += any(case[0] for case in cases)
        before += any(case[1] for case in cases)
        held += sum(case[2] for case in cases)
    return accused / sessions, before / sessions, held / sessions / CASES


def judged(pool: Sequence[Searched], machine: Machine, random: Random) -> tuple[bool, bool, bool]:
    """Whether a case is accused, was by the rule of before, and has an interval that holds the truth."""
    levels = own_levels(machine, random, KEPT + 1)
    *kept, now = [entry(random.choice(pool), level) for level in levels]
    earlier: dict[str, SessionValues] = {f"2026-01-{day:02}": each.values for day, each in enumerate(kept[:-1], 1)}
    comparer = Comparer(Baseline("main", (replace(kept[-1], earlier=earlier),)), cases=CASES)
    finding = comparer.compare_entry(now, Margins(), first=True).findings[0]
    accused = False
    if finding.suspect:
        again = entry(random.choice(pool), levels[-1])
        accused = comparer.compare_entry(again, Margins()).findings[0].verdict == Verdict.REGRESSED
    new, old = (replace(each.figures["throughput_pps"], launches=()) for each in (now, kept[-1]))
    held = finding.ratio_low is not None and finding.ratio_high is not None
    held = held and finding.ratio_low <= 1 <= finding.ratio_high  # type: ignore[operator]
    return accused, Margin("higher").change(ratio_of(new, old)) == "worse", held


def entry(found: Searched, level: float) -> Entry:
    """A session of a case that was searched."""
    rate, upper = (1e6 * math.exp(level) * part for part in (found.rate, found.upper))
    facts = {"metric": "ndr", "switch": "s", "placement": "dedicated", "rules": 1, "measured": "2026-01-31T12:00:00Z"}
    return Entry(
        case="s",
        dimension="throughput",
        lower_bound=False,
        launches=1,
        figures={"throughput_pps": Figure(rate, rate, upper, (rate,))},
        **facts,  # type: ignore[arg-type]
    )


def draw(_name: str, figure: Drawing, data: Mapping[str, Any]) -> None:
    axes = figure.subplots()
    figure.set_size_inches(8, 11)
    shown = data["machines"]
    for key, mark, label in (
        ("right", "v", "searches within the width"),
        ("covered", "s", "intervals that hold"),
        ("accused", "o", "sessions that accuse"),
        ("before", "x", "the same, by brackets"),
    ):
        places = [place for place, each in enumerate(shown) if key in each]
        axes.plot([shown[place][key] * 100 for place in places], places, mark, label=label)
    for limit in (ERROR_RATE, LEAST_RIGHT):
        axes.axvline(limit * 100, **drawing.LIMIT)
    axes.set(xlabel="%")
    axes.set_yticks(range(len(shown)), [each["name"] for each in shown], fontsize=6)
    axes.invert_yaxis()
    axes.legend()
