# SPDX-License-Identifier: BSD-3-Clause
"""The gate: sessions of unchanged software accuse nothing, whatever they differ by, and what that costs in power."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.entry import Baseline, Entry
from pytest_icbench.gate.margins import Margins
from pytest_icbench.gate.over_sessions import ERROR_RATE
from pytest_icbench.gate.session_values import MOST_SESSIONS, SessionValues, best_of
from pytest_icbench.model.verdict import GOOD, Verdict
from pytest_icbench.stats.noninferiority import Figure, Margin, ratio_of
from pytest_icbench.stats.quantiles import median
from validation import drawing
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

TITLE = "The gate accuses nobody without cause"
CLAIM = (
    "Against a baseline of six to twenty sessions, at most 1 % of the sessions of ten cases accuse anything of "
    "unchanged software: where sessions differ by 0 to 20 %, with heavy tails, where a rig draws one of two bands, "
    "along a drift, where neighbours are alike, and after a step of the host. The interval of a change holds in at "
    "least 90 % of the cases."
)
CASES, KEPT, LAUNCHES, NOISE = 10, 6, 8, 0.02
SESSIONS, POWER_SESSIONS = 10_000, 1_000
#: The cases of a session that are drawn for its power; as many as tell that the host did not change.
POWER_CASES = 4
#: The greatest share of odd or disturbed launches in a session, where there are any.
MOST_ODD = 0.6
METHOD = f"""
Each machine has {SESSIONS:,} sessions of {CASES} cases, each with a baseline of {KEPT} sessions where no other number
is told. A session has {LAUNCHES} launches of each case, and as many of its reference link beside them, with a noise of
{NOISE:.0%}. Where launches are disturbed, another share of them is in each session, up to {MOST_ODD:.0%}, each by
up to half. A session draws the host's level, which the cases and their control share, and one of each case's own, which
nothing else shares. Each case is of a switch of its own. A suspect is measured again when all cases have had their
first look. Its own level stays as it was, which is the worst. A band is a rig's: a session has one, and in the second
look each launch has another. A band that stays for a whole session has no bound: with six sessions that all met the
upper band, the lower one looks like a regression.

The verdicts are those of the gate's own functions. They are compared with the gate's earlier rule: the newest session
of the baseline, and an interval over launches.

Power is that of a case of a session of {CASES}, of which {POWER_CASES - 1} others are drawn and did not change, by
{POWER_SESSIONS:,} sessions.
"""
SECONDS = 1100.0
FIGURES = {
    "alarms": "Sessions of unchanged software that accuse anything, and intervals that hold the truth.",
    "power": "Slower cases that are accused, by how much slower they are.",
}

LEAST_COVERED = 0.90
#: Losses of which the power is told.
DROPS = (0.03, 0.05, 0.1, 0.2, 0.3)


@dataclass(frozen=True, slots=True)
class Machine:
    """How sessions differ; shares are standard deviations on the scale of logarithms.

    Attributes:
        host: of the level that the case and its control share.
        own: of each case's own level, and of the control's.
        moods: of the control's own level, where that is another.
        kept: correlation of neighbouring sessions' own levels.
        correlation: of neighbouring launches.
        heavy: whether own levels are Student's with three degrees of freedom.
        apart: distance of two bands, of which a rig draws the upper one in four of five.
        stays: whether the band is the session's, so that a rig built anew does not draw another one.
        odd: by how much, at most, some launches of the control are slower by themselves, in each session others.
        disturbed: by how much, at most, some launches of the case and of the control are slower, each by itself, in
            each session another share of them.
        longer: how many times as many launches a session of the baseline has.
        drift: change of the host's level from session to session.
        step: change of the host's level between the baseline and now.
        sessions: of the baseline.
    """

    name: str
    host: float = 0.0
    own: float = 0.0
    moods: float | None = None
    kept: float = 0.0
    correlation: float = 0.0
    heavy: bool = False
    apart: float = 0.0
    stays: bool = False
    odd: float = 0.0
    disturbed: float = 0.0
    longer: int = 1
    drift: float = 0.0
    step: float = 0.0
    sessions: int = KEPT


def judged_by(machine: Machine, sessions: int) -> Machine:
    """Returns the machine with a baseline of so many sessions."""
    return replace(machine, name=f"{machine.name}, {sessions} sessions", sessions=sessions)


_MACHINES = (
    Machine("sessions alike"),
    *(Machine(f"own level {100 * own:g} %", own=own) for own in (0.01, 0.02, 0.05, 0.1, 0.2)),
    *(Machine(f"host {100 * host:g} %", host=host) for host in (0.02, 0.05, 0.2)),
    Machine("host 5 %, own 2 %", host=0.05, own=0.02),
    *(Machine(f"own 2 %, launches correlate by {rho:g}", own=0.02, correlation=rho) for rho in (0.3, 0.6, 0.9)),
    *(Machine(f"own 5 %, sessions correlate by {rho:g}", own=0.05, kept=rho) for rho in (0.3, 0.6, 0.9)),
    Machine("own 5 %, Student's t3", own=0.05, heavy=True),
    Machine("bands 6 % apart, 80/20", apart=0.06),
    Machine("bands 20 % apart, 80/20", apart=0.2),
    Machine("bands 20 % apart, 80/20, that stay for a session", apart=0.2, stays=True),
    Machine("own 1 %, control with odd launches", own=0.01, odd=0.2),
    Machine("host steps by -5 %, control with odd launches", own=0.01, odd=0.2, step=-0.05),
    Machine("own 1 %, control's own 4 %", own=0.01, moods=0.04),
    Machine("own 1 %, launches disturbed", own=0.01, disturbed=0.5),
    Machine("own 1 %, launches disturbed, twice as many in the baseline", own=0.01, disturbed=0.5, longer=2),
    *(
        Machine(f"host steps by {step:.0%}, own 1 %, control's own 4 %", own=0.01, moods=0.04, step=step)
        for step in (-0.05, -0.1, -0.2)
    ),
    Machine("host drifts by 1 % a session", drift=-0.01, own=0.01),
    Machine("host drifts by 3 % a session", drift=-0.03, own=0.01),
    Machine("host steps by -5 %", step=-0.05, own=0.01),
    Machine("host steps by -20 %", step=-0.2, own=0.01),
)
#: Machines that are judged by as many sessions as a baseline keeps, too.
_MANY = (
    *("own 5 %, Student's t3", "bands 20 % apart, 80/20, that stay for a session"),
    *("host steps by -5 %, control with odd launches", "host steps by -10%, own 1 %, control's own 4 %"),
    *("own 1 %, launches disturbed", "own 1 %, launches disturbed, twice as many in the baseline"),
)
#: Baselines between, by sessions with heavy tails, which few sessions tell worst.
_BETWEEN = (8, 10, 14)
MACHINES = (
    *_MACHINES,
    *(judged_by(machine, sessions) for machine in _MACHINES if machine.heavy for sessions in _BETWEEN),
    *(judged_by(machine, MOST_SESSIONS) for machine in _MACHINES if machine.name in _MANY),
)
_TOLD = (
    *("sessions alike", "own level 1 %", "own level 2 %", "own level 5 %", "host 5 %", "host 5 %, own 2 %"),
    *("own 1 %, control with odd launches", "own 1 %, control's own 4 %"),
    *("own 1 %, launches disturbed", "bands 6 % apart, 80/20"),
)
#: Machines of which the power is told, with six sessions and with as many as a baseline keeps.
POWERFUL = tuple(
    judged_by(machine, kept) for machine in _MACHINES for kept in (KEPT, MOST_SESSIONS) if machine.name in _TOLD
)


def check(settings: Settings) -> Found:
    sessions, power = settings.count(SESSIONS, 60), settings.count(POWER_SESSIONS, 60)
    rows: list[Row] = []
    series: list[dict[str, Any]] = []
    with ProcessPoolExecutor() as pool:
        seeds = [Random(f"{settings.seed} {machine.name}") for machine in MACHINES]
        shares = list(pool.map(alarms, MACHINES, [sessions] * len(MACHINES), seeds))
    for machine, (accused, before, covered, passed) in zip(MACHINES, shares, strict=True):
        settings.tell(f"{machine.name}: {accused:.2%} accuse, {covered:.1%} hold")
        of = f"{machine.name}: of {sessions:,} sessions"
        value = f"{accused:.2%} (by one session and its launches: {before:.1%})"
        bound = "" if machine.stays else f"at most {ERROR_RATE:.0%}"
        kept = accused <= ERROR_RATE or machine.stays
        rows.append(Row(f"{of} those that accuse anything unchanged", value, bound, kept))
        held = covered >= LEAST_COVERED
        rows.append(Row(f"{of} intervals that hold the truth", f"{covered:.1%}", f"at least {LEAST_COVERED:.0%}", held))
        rows.append(Row(f"{of} cases that pass", f"{passed:.1%}"))
        series.append({"name": machine.name, "accused": accused, "before": before, "covered": covered})
    curves = []
    jobs = [(machine, drop) for machine in POWERFUL for drop in DROPS]
    with ProcessPoolExecutor() as pool:
        seeds = [Random(f"{settings.seed} {machine.name} {drop}") for machine, drop in jobs]
        both = list(pool.map(found, *zip(*jobs, strict=True), [power] * len(jobs), seeds))
    for place, machine in enumerate(POWERFUL):
        told = both[place * len(DROPS) : (place + 1) * len(DROPS)]
        curves.append({"name": machine.name, "now": [now for now, _ in told], "before": [old for _, old in told]})
    rows += power_rows(curves)
    return Found(tuple(rows), {"machines": series, "drops": list(DROPS), "power": curves})


def power_rows(curves: Sequence[Mapping[str, Any]]) -> list[Row]:
    """A row a machine: the shares of slower cases that are accused, loss by loss, and by the rule of before."""
    slower = ", ".join(f"{drop * 100:g}" for drop in DROPS)
    rows = []
    for curve in curves:
        now, before = (", ".join(f"{share * 100:.0f}" for share in curve[key]) for key in ("now", "before"))
        value = f"{now} % (by one session and its launches: {before} %)"
        rows.append(Row(f"{curve['name']}: of cases {slower} % slower, accused", value))
    return rows


@dataclass(slots=True)
class Sessions:
    """The levels of the sessions of one baseline and of a new session, on the scale of logarithms."""

    host: list[float]
    own: list[float]
    control: list[float]
    #: The bands of the case's rig and of the control's, session by session.
    bands: list[tuple[float, float]]

    @classmethod
    def drawn(cls, machine: Machine, random: Random, shared: tuple[list[float], list[float]] | None = None) -> Sessions:
        """Draws levels; the host's and the control's are those of the session's other cases where they are given."""
        count = machine.sessions + 1
        if shared is None:
            host = [random.gauss(0, machine.host) + machine.drift * place for place in range(count)]
            host[-1] += math.log1p(machine.step)
            moods = machine if machine.moods is None else replace(machine, own=machine.moods)
            shared = host, own_levels(moods, random, count)
        bands = [(_band(machine, random), _band(machine, random)) for _ in range(count)]
        return cls(shared[0], own_levels(machine, random, count), shared[1], bands)

    def launches(
        self, machine: Machine, random: Random, place: int, *, again: bool = False
    ) -> tuple[list[float], list[float]]:
        """Returns the launches of the case and of its control in one session.

        Args:
            again: whether it is a second look, in which each launch has rigs of its own.
        """
        sides = []
        for level, band in zip((self.own[place], self.control[place]), self.bands[place], strict=True):
            drawn = again and not machine.stays
            count = LAUNCHES * (machine.longer if place < machine.sessions else 1)
            bands = [_band(machine, random) if drawn else band for _ in range(count)]
            launches = _launches(self.host[place] + level, machine.correlation, random, count)
            sides.append([value * math.exp(by_rig) for value, by_rig in zip(launches, bands, strict=True)])
        if machine.odd:
            sides[1] = _some_slower(sides[1], machine.odd, MOST_ODD * random.random(), random)
        if machine.disturbed:
            share = MOST_ODD * random.random()  # of both: what disturbs is the host's
            sides = [_some_slower(launches, machine.disturbed, share, random) for launches in sides]
        return sides[0], sides[1]


def _some_slower(launches: list[float], most: float, share: float, random: Random) -> list[float]:
    return [value * (1 - most * random.random() * (random.random() < share)) for value in launches]


def _band(machine: Machine, random: Random) -> float:
    return -machine.apart if machine.apart and random.random() > 0.8 else 0.0


def own_levels(machine: Machine, random: Random, count: int) -> list[float]:
    """The own levels of so many sessions, one after the other, on the scale of logarithms."""
    levels, now = [], random.gauss(0, 1)
    for _ in range(count):
        value = machine.own * now
        if machine.heavy:
            value /= math.sqrt(random.gammavariate(1.5, 2))  # of variance 1, like the others
        levels.append(value)
        now = machine.kept * now + math.sqrt(1 - machine.kept**2) * random.gauss(0, 1)
    return levels


def _launches(level: float, correlation: float, random: Random, count: int) -> list[float]:
    values, now, rest = [], random.gauss(0, NOISE), NOISE * math.sqrt(1 - correlation**2)
    for _ in range(count):
        values.append(1e6 * math.exp(level + now))
        now = correlation * now + random.gauss(0, rest)
    return values


def _entry(case: int, launches: tuple[list[float], list[float]]) -> Entry:
    values, control = launches
    # Its interval is not used: that over its launches is made of them.
    best = best_of(values, "higher")
    figure = Figure(median(values), min(values), max(values), tuple(values), best)
    facts = {"metric": "frmol", "placement": "dedicated", "rules": 1, "measured": "2026-01-31T12:00:00Z"}
    return Entry(
        case=f"s{case}",
        switch=f"s{case}",
        dimension="throughput",
        lower_bound=False,
        launches=LAUNCHES,
        figures={"throughput_pps": figure},
        control=Figure(median(control), launches=tuple(control), best=best_of(control, "higher")),
        **facts,  # type: ignore[arg-type]
    )


def _baseline(case: int, drawn: Sessions, machine: Machine, random: Random) -> Entry:
    kept = [_entry(case, drawn.launches(machine, random, place)) for place in range(machine.sessions)]
    earlier: dict[str, SessionValues] = {f"2026-01-{day:02}": entry.values for day, entry in enumerate(kept[:-1], 1)}
    return replace(kept[-1], earlier=earlier)


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether a case is accused, was by the rule of before, has an interval that holds the truth, and passes."""

    accused: bool
    before: bool
    held: bool
    passed: bool


def judged(machine: Machine, random: Random, drop: float = 0.0, drawn_cases: int = CASES) -> list[Judged]:
    """The cases of one session that are drawn, of which the first is slower by a share."""
    first = Sessions.drawn(machine, random)
    drawn = [first, *(Sessions.drawn(machine, random, (first.host, first.control)) for _ in range(drawn_cases - 1))]
    before = [_baseline(case, levels, machine, random) for case, levels in enumerate(drawn)]
    comparer = Comparer(Baseline("main", tuple(before)), cases=CASES)
    first.own[-1] += math.log1p(-drop)
    now = [_entry(case, levels.launches(machine, random, machine.sessions)) for case, levels in enumerate(drawn)]
    findings = [comparer.compare_entry(entry, Margins(), first=True).findings[0] for entry in now]
    told = []
    for case, finding in enumerate(findings):
        accused = False
        if finding.suspect:
            again = _entry(case, drawn[case].launches(machine, random, machine.sessions, again=True))
            accused = comparer.compare_entry(again, Margins()).findings[0].verdict == Verdict.REGRESSED
        old = ratio_of(now[case].figures["throughput_pps"], before[case].figures["throughput_pps"])
        beside, slower = finding.against_control, 1 if case else 1 - drop
        if machine.step and beside is not None:  # the control tells what the host's step hides
            held = _holds(beside.low, beside.high, slower)
        else:
            held = _holds(finding.ratio_low, finding.ratio_high, slower * (1 + machine.step))
        told.append(Judged(accused, Margin("higher").change(old) == "worse", held, finding.verdict in GOOD))
    return told


def _holds(low: float | None, high: float | None, truth: float) -> bool:
    return low is not None and high is not None and low <= truth <= high


def alarms(machine: Machine, sessions: int, random: Random) -> tuple[float, float, float, float]:
    """Shares of sessions that accuse anything, now and by the rule of before, of intervals that hold, and of PASS."""
    accused = before = held = passed = 0
    for _ in range(sessions):
        cases = judged(machine, random)
        accused += any(case.accused for case in cases)
        before += any(case.before for case in cases)
        held += sum(case.held for case in cases)
        passed += sum(case.passed for case in cases)
    return accused / sessions, before / sessions, held / sessions / CASES, passed / sessions / CASES


def found(machine: Machine, drop: float, sessions: int, random: Random) -> tuple[float, float]:
    """Shares of slower cases that are accused, and were by the rule of before."""
    cases = [judged(machine, random, drop, POWER_CASES)[0] for _ in range(sessions)]
    return sum(case.accused for case in cases) / sessions, sum(case.before for case in cases) / sessions


def draw(name: str, figure: Drawing, data: Mapping[str, Any]) -> None:
    if name == "power":
        draw_power(figure, data)
        return
    axes = figure.subplots()
    machines = data["machines"]
    places = range(len(machines))
    for key, mark, label in (
        ("accused", "o", "sessions that accuse"),
        ("before", "x", "the same, by one session and its launches"),
        ("covered", "s", "intervals that hold"),
    ):
        axes.plot([machine[key] * 100 for machine in machines], places, mark, label=label)
    for limit in (ERROR_RATE, LEAST_COVERED):
        axes.axvline(limit * 100, **drawing.LIMIT)
    axes.set(xlabel="%")
    axes.set_yticks(places, [machine["name"] for machine in machines], fontsize=7)
    axes.invert_yaxis()
    axes.legend()


def draw_power(figure: Drawing, data: Mapping[str, Any]) -> None:
    """A panel for each number of sessions, with the same colours."""
    drops = [drop * 100 for drop in data["drops"]]
    panels = figure.subplots(1, 2, sharey=True)
    for axes, sessions in zip(panels, (KEPT, MOST_SESSIONS), strict=True):
        end = f", {sessions} sessions"
        curves = [curve for curve in data["power"] if curve["name"].endswith(end)]
        for place, curve in enumerate(curves):
            look: dict[str, Any] = {"color": drawing.COLOURS[place % len(drawing.COLOURS)], "markersize": 4}
            line = "o-" if place < len(drawing.COLOURS) else "s--"
            axes.plot(
                drops, [share * 100 for share in curve["now"]], line, label=curve["name"].removesuffix(end), **look
            )
            axes.plot(drops, [share * 100 for share in curve["before"]], "x:", **look)
        axes.set(xlabel="slower by, %", title=f"{sessions} sessions")
    panels[0].set(ylabel="cases accused, %\n(crosses: by one session and its launches)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    figure.set_size_inches(8, 4.6)
