# SPDX-License-Identifier: BSD-3-Clause
"""Coverage: an interval holds the truth as often as it says, stopping rule included."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.stats.dependence import find_dependence
from pytest_icbench.stats.intervals import (
    estimate_change_of_level,
    estimate_over_rounds,
    interpolated,
    over_launches,
    widen_like,
)
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.stats.verdict_rule import MOST_SESSIONS
from validation import drawing, independent, tails
from validation.machines import (
    BANDED,
    CORRELATED,
    DEPENDENT,
    DIFFERING,
    LEVEL,
    MACHINES,
    OUTLYING,
    REPORTED,
    Machine,
    dependent,
)
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "A 95 % interval holds the truth in 95 of 100 sessions"
CLAIM = (
    "On simulated machines whose true level is known an interval of 95 %, stopping rule included, holds the truth in "
    "93 to 97 % of the sessions where launches are independent (in two bands at least 93 %), and in at least 90 % "
    "where they depend on each other, with 20 launches or more, drift, or are slow at first. So does that of a mean or "
    "a p99 of round trips, that of a case in three or more rounds of five launches, unless only some rounds are slow, "
    "and that of a value beside a baseline of six or more sessions, however far they differ."
)
SESSIONS = 10_000
METHOD = f"""
Each machine has {SESSIONS:,} sessions, which tell a share to within 0.4 or 0.5 points. A session draws launches and
asks the plugin's own stopping rule after each, with the default precision (3 %) and time (40 launches). The truth is
the median over launches at the machine's level halfway through the session. Sizes of the noise are chosen so that
sessions stop at once, after many looks, and at the end of their time.

Beside each share stands that of the same machine's sessions by the rule that takes launches as independent
(interpolated ranks of 96.6 %, six launches and two looks), which the plugin had before.

Fewer than 20 launches cannot distinguish dependence from chance. The coverage of six and twelve has no bound. Nor have
machines whose sessions differ, and bands that last so long that many sessions meet only one: no launch of one session
shows what another will find. The sessions of a baseline show it: an interval that includes what they differ by, as it
is reported beside a baseline, has a bound where sessions differ. Bands that last are reported with a baseline, too:
what sessions differ by then follows no bell curve, as the interval takes it to.

In rounds the truth is the geometric mean over all rounds that there could be. Three to eight rounds often miss what one
in five has, so that machine has no bound.

The mean length of the tails of round trips differs from launch to launch (by the deviation of its logarithm).
The interval is that of the mean and the p99 of all round trips, compared with the median launch's, stretched to the
point.

Where launches fall into two bands of the same size, any value between the bands is a median. How often the interval
includes the middle has no bound. Nor have two machines whose bands are nearly of the same size and close together.
Bands that come from a state of the host are no matter of this interval: each state has its own.
"""
SECONDS = 260.0
FIGURES = {"machines": "Part of the sessions whose interval holds the truth, and the launches they took."}

LEAST, MOST = 0.93, 0.97
LEAST_DEPENDENT = 0.90


def check(settings: Settings) -> Found:
    sessions = settings.count(SESSIONS, 300)
    rows: list[Row] = []
    series: list[dict[str, Any]] = []
    for machine in (*MACHINES, *OUTLYING, *CORRELATED, *REPORTED, *DIFFERING):
        settings.tell(f"{machine.family}: {machine.name}")
        share, launches, reported = covered(machine, sessions, settings.seed)
        before = covered_before(machine, sessions, settings.seed)
        of = f"{machine.family}, {machine.name}: of {sessions:,} sessions those"
        bound, held = bounded(machine, share)
        value = f"{share:.1%} with {launches:.0f} launches (as if independent: {before[0]:.1%} with {before[1]:.0f})"
        rows.append(Row(f"{of} whose interval holds the truth", value, bound, held))
        if machine in CORRELATED:
            rows.append(Row(f"{of} that tell the dependence", f"{reported:.1%}"))
        point = {"cpu_share": share, "launches": round(launches, 1), "before": before[0]}
        series.append({"family": machine.family, "name": machine.name, **point})
    settings.tell("sessions of a baseline")
    for machine in DIFFERING:
        rows += including_sessions(machine, sessions, settings.seed)
    settings.tell("few launches")
    rows += [few(launches, correlation, sessions, settings.seed) for launches in (6, 12) for correlation in FEW]
    settings.tell("rounds")
    rows += [in_rounds(kind, rounds, sessions, settings.seed) for kind in ROUNDS for rounds in NUMBERS_OF_ROUNDS]
    settings.tell("means and percentiles")
    for sigma in tails.SIGMAS:
        for launches in tails.LAUNCHES:
            rows += tailed(sigma, launches, sessions, settings.seed)
    return Found(tuple(rows), {"least": LEAST, "most": MOST, "machines": series})


def bounded(machine: Machine, share: float) -> tuple[str, bool]:
    """The bound of a machine's share, empty for one that is only reported, and whether the share keeps it."""
    if machine in (*REPORTED, *DIFFERING):
        return "", True
    if machine.family == BANDED:
        return f"at least {LEAST:.0%}", share >= LEAST
    if machine.family in ("dependent", "drift", "outlying"):
        return f"at least {LEAST_DEPENDENT:.0%}", share >= LEAST_DEPENDENT
    return f"{LEAST:.0%} to {MOST:.0%}", LEAST <= share <= MOST


#: Sessions of a baseline that tell how far sessions lie apart.
KEPT = (6, MOST_SESSIONS)


def including_sessions(machine: Machine, sessions: int, seed: int) -> list[Row]:
    """The coverage of values that were compared with a baseline, here the sessions just before each."""
    random, lengths = Random(f"{seed} {machine.name} baseline"), Lengths()
    drawn = [machine.session(random, lengths) for _ in range(sessions + max(KEPT))]
    found = [over_launches(values) for values, _ in drawn]
    rows = []
    for kept in KEPT:
        held = 0
        for place, (_, truth) in list(enumerate(drawn))[max(KEPT) :]:
            change = estimate_change_of_level(found[place], [found[place - kept : place]])
            held += holds(widen_like(found[place], change), truth)
        share, of = held / sessions, f"{machine.family}, {machine.name}, a baseline of {kept}: of {sessions:,} sessions"
        bound = "" if machine.family == DEPENDENT else f"at least {LEAST_DEPENDENT:.0%}"
        kept_bound = not bound or share >= LEAST_DEPENDENT
        rows.append(Row(f"{of} those whose interval holds the truth", f"{share:.1%}", bound, kept_bound))
    return rows


#: Correlations of neighbours at which few launches are tried.
FEW = (0.0, 0.3, 0.6, 0.9)


def few(launches: int, correlation: float, sessions: int, seed: int) -> Row:
    """The coverage of a fixed number of launches that cannot tell dependence."""
    machine, random = dependent(correlation, 2), Random(f"{seed} {launches} {correlation}")
    lengths, now, before = Lengths(repeats=launches), 0, 0
    for _ in range(sessions):
        values, truth = machine.session(random, lengths)
        now += holds(over_launches(values), truth)
        before += holds(interpolated(values), truth)
    of = f"{launches} launches, correlation {correlation:g}: of {sessions:,} sessions those whose interval holds the"
    return Row(f"{of} truth", f"{now / sessions:.1%} (as if independent: {before / sessions:.1%})")


#: What a round adds to the logarithm of all its launches, by name, with its mean; those of ``RARE`` have no bound.
RARE = "one round in five is 10 % slower"
ROUNDS: dict[str, tuple[Callable[[Random], float], float]] = {
    "rounds are alike": (lambda random: random.gauss(0, 0.0), 0.0),
    "rounds differ by 1 %": (lambda random: random.gauss(0, 0.01), 0.0),
    "rounds differ by 5 %": (lambda random: random.gauss(0, 0.05), 0.0),
    "rounds differ by 3 %, heavy tails": (lambda random: 0.03 * student(random), 0.0),
    RARE: (lambda random: math.log(0.9) if random.random() < 0.2 else 0.0, 0.2 * math.log(0.9)),
}
NUMBERS_OF_ROUNDS = (3, 5, 8)
LAUNCHES_A_ROUND, NOISE = 5, 0.01


def student(random: Random, freedom: int = 3) -> float:
    """A value of Student's distribution."""
    return random.gauss(0, 1) / math.sqrt(sum(random.gauss(0, 1) ** 2 for _ in range(freedom)) / freedom)


def in_rounds(kind: str, rounds: int, sessions: int, seed: int) -> Row:
    """The coverage of a case that is measured in rounds, which share what each was dealt."""
    of_round, mean = ROUNDS[kind]
    random, hits, before = Random(f"{seed} {kind} {rounds}"), 0, 0
    truth = LEVEL * math.exp(mean)
    for _ in range(sessions):
        levels = [LEVEL * math.exp(of_round(random)) for _ in range(rounds)]
        values = [[level * (1 + random.gauss(0, NOISE)) for _ in range(LAUNCHES_A_ROUND)] for level in levels]
        hits += holds(estimate_over_rounds(values), truth)
        before += holds(interpolated([value for launches in values for value in launches]), truth)
    share, bound = hits / sessions, "" if kind == RARE else f"at least {LEAST_DEPENDENT:.0%}"
    of = f"{kind}, {rounds} of {LAUNCHES_A_ROUND} launches: of {sessions:,} sessions"
    value = f"{share:.1%} (as if launches were independent: {before / sessions:.1%})"
    return Row(f"{of} those whose interval holds the truth", value, bound, not bound or share >= LEAST_DEPENDENT)


def tailed(sigma: float, launches: int, sessions: int, seed: int) -> list[Row]:
    """The coverage of the mean and the p99 of round trips."""
    shares = tails.coverage(sigma, launches, sessions, seed)
    return [
        Row(
            f"{name} of round trips, tails differ by {sigma:g}, {launches} launches: those whose interval holds the"
            " truth",
            f"{now:.1%} (median launch, stretched: {before:.1%})",
            f"at least {LEAST_DEPENDENT:.0%}",
            now >= LEAST_DEPENDENT,
        )
        for name, (now, before) in shares.items()
    ]


def holds(estimate: Estimate, truth: float) -> bool:
    """Whether an interval holds the truth."""
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= truth <= estimate.high


def covered_before(machine: Machine, sessions: int, seed: int) -> tuple[float, float]:
    """Part of the sessions whose interval holds the truth, and their launches, as if launches were independent."""
    random, lengths, hits, launches = Random(f"{seed} {machine.name}"), Lengths(), 0, 0
    for _ in range(sessions):
        values, truth = machine.session(random, lengths, independent.why_stop)
        hits += holds(independent.interval(values), truth)
        launches += len(values)
    return hits / sessions, launches / sessions


def covered(machine: Machine, sessions: int, seed: int) -> tuple[float, float, float]:
    """Part of the sessions whose interval holds the truth, their launches, part that tells dependence."""
    random, lengths = Random(f"{seed} {machine.name}"), Lengths()
    hits = launches = reported = 0
    for _ in range(sessions):
        values, truth = machine.session(random, lengths)
        hits += holds(over_launches(values), truth)
        reported += (found := find_dependence(values)) is not None and found.likely
        launches += len(values)
    return hits / sessions, launches / sessions, reported / sessions


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    axes = figure.subplots()
    names = [f"{machine['name']}  ({machine['launches']:.0f})" for machine in data["machines"]]
    families = list(dict.fromkeys(machine["family"] for machine in data["machines"]))
    for family in families:
        places = [place for place, machine in enumerate(data["machines"]) if machine["family"] == family]
        (line,) = axes.plot([data["machines"][place]["share"] * 100 for place in places], places, "o", label=family)
        before = [data["machines"][place].get("before", math.nan) * 100 for place in places]
        axes.plot(before, places, "x", color=line.get_color())
    for limit in (data["least"], data["most"]):
        axes.axvline(limit * 100, **drawing.LIMIT)
    axes.set(xlabel="sessions whose interval holds the truth, %  (crosses: as if independent; in brackets: launches)")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()
    axes.legend()
