# SPDX-License-Identifier: BSD-3-Clause
"""Real sessions of the gate: whom they accuse without a change, what they find, and whether they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from pytest_icbench.errors import Unsupported
from pytest_icbench.model.fitness import STOLEN_LIMIT, TAKEN_LIMIT
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.stats.sessions import as_wide_as
from validation import drawing, independent
from validation.model import Found, Row, Settings
from validation.pools.gate_sessions import (
    BASELINE,
    BASELINE_SESSIONS,
    BESIDE,
    BLOCK,
    SLOWER,
    UNCHANGED,
    Judged,
    Record,
    Session,
    records,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Real sessions of the gate accuse nobody without cause"
CLAIM = (
    "Of at least 30 real sessions without a change, half of them beside a load that comes and goes, none accuses"
    " anything. At least 90 % of the intervals of their changes hold 1, and at least 90 % of those that are shown of"
    " their values hold the median of the other sessions of their host. Each of at least 15 sessions on a quiet host"
    " whose forwarder is 10 % slower accuses it, within ten minutes, and none on any host passes it."
)
METHOD = f"""
A session is pytest of its own over five cases in three rounds, within five minutes, or over the gate itself in nine:
what a CI runs, with rigs built anew. Each host has a record of its own, which begins with {BASELINE_SESSIONS} sessions
that make its baseline. Blocks follow, each in an order of its own: without a change, alone and beside `stress-ng` (one
busy CPU, or one that streams through memory) that is there for twenty seconds of forty, and with a forwarder that is
10 % slower, alone and beside a busy CPU, or 5 %: another program under the same name, as a new version is. Each session
without a change and without load is added to the baseline for those after it. The claim is about the sessions after the
baseline, of all hosts together. Nothing is left out, whatever else ran.

A session shows something if its cases were judged. NO_BASELINE, INCOMPARABLE and INVALID are no judgement, nor is a
case without a result: such a session does not count as one that accuses nobody, and is told with its number. One that
accuses counts in any case.

A session was quiet if, in nine of ten launches, other processes took at most {TAKEN_LIMIT:.0%} of the CPUs that
measured, and the hypervisor at most {STOLEN_LIMIT:.0%}.

The interval of a change is over the sessions of the baseline: without a change it should hold 1. That of a value is
the one that reports show: it includes what the sessions of the baseline differ by, and is over the rounds of its own
session alone where that makes the baseline and knows no other. It agrees if it holds the median of the values of all
other sessions without a change on its host, those of the baseline among them. Beside that stands the interval over the
session's own rounds in any case, and the rule that takes launches as independent, on the same launches.

A rule that changed judges the launches of a record again ("again by"). A suspect of the later rule that the earlier one
did not measure again stays INCONCLUSIVE, so slower ones that are found may be more than these.

Sessions are recorded before, an hour or two at a time, on whatever host there is (`benchmarks/README.md`). Until there
are as many as the claim asks for, what was found is told without a bound, unless a single session breaks it.
"""
SECONDS = 1.0
FIGURES = {
    "verdicts": "Every verdict, in the order of the sessions, and what was beside or slower; a line parts two records.",
    "intervals": "Every shown interval over the median of all sessions without a change on its host.",
}
LEAST_HOLDING = 0.9
HOLDING = f"at least {LEAST_HOLDING:.0%}"
#: Sessions that the claim asks for: without a change, of these beside load, and on a quiet host with the slower one.
LEAST_UNCHANGED, LEAST_BESIDE, LEAST_SLOWER = 30, 15, 15
#: Those with a forwarder that is slower by less, of which nothing is claimed.
LEAST_TOLD = 10
#: An interval is drawn up to so many times the median.
MOST_DRAWN = 4.0
#: The longest session, in seconds.
MOST_S = 600.0
ACCUSED, PASSED = "REGRESSED", "PASS"
JUDGED = frozenset({ACCUSED, PASSED, "IMPROVED", "INCONCLUSIVE"})
FORWARDER = "forward:"
_FIRM, _LEAST = "slower-10", "slower-5"


def check(settings: Settings) -> Found:
    del settings  # there is nothing to shorten
    known = [record for record in records() if record.later]
    if not known:
        raise Unsupported(
            "no session after a baseline is recorded: python -m validation.pools.gate_sessions, an hour a host"
        )
    return assemble(known)


def assemble(known: Sequence[Record]) -> Found:
    """The figures of all records together."""
    every = [(session, cases_of(record)) for record in known for session in record.later]
    unchanged = [(session, cases) for session, cases in every if session.kind in UNCHANGED]
    firm = [session for session, _ in every if session.kind == _FIRM and on_forwarder(session) in JUDGED]
    shown = [session for session, cases in unchanged if accuses(session) or not unjudged(session, cases)]
    rows = [*accusations(unchanged, shown), beside_slower(every), *power(every)]
    rows += [unmoved(session for session, _ in unchanged)]
    rows += agreement([[s for s in record.sessions if s.kind not in SLOWER] for record in known])
    longest_s = max(session.seconds for session, _ in every)
    rows.append(Row("seconds of the longest session", longest_s, f"at most {MOST_S:.0f}", longest_s <= MOST_S))
    notes = []
    for what, number, least in (
        ("sessions without a change whose cases were judged", len(shown), LEAST_UNCHANGED),
        ("of them beside load", sum(session.kind in BESIDE for session in shown), LEAST_BESIDE),
        ("sessions on a quiet host with the slower forwarder", sum(map(quiet, firm)), LEAST_SLOWER),
    ):
        if number < least:
            notes.append(f"Not shown yet, {what}: {number} of {least}.")
    if notes:
        # A share of few sessions says little; what no session may do is told of the first that does.
        rows = [Row(row.what, row.value) if row.held or row.bound == HOLDING else row for row in rows]
    slightly = sum(session.kind == _LEAST and on_forwarder(session) in JUDGED for session, _ in every)
    if slightly < LEAST_TOLD:
        notes.append(f"Few yet, sessions with a forwarder {SLOWER[_LEAST]:.0%} slower: {slightly} of {LEAST_TOLD}.")
    return Found((*rows, *told(known)), data(known), (*notes, *circumstances(known)))


def cases_of(record: Record) -> set[str]:
    """The cases of a record: whatever one of its sessions has."""
    return {case for session in record.sessions for case in session.cases}


def accuses(session: Session) -> bool:
    return any(each.verdict == ACCUSED for each in session.cases.values())


def unjudged(session: Session, cases: Iterable[str]) -> list[str]:
    """Why cases were not judged: their verdicts, or ``no result``."""
    verdicts = [session.cases[case].verdict or "no verdict" if case in session.cases else "no result" for case in cases]
    return [verdict for verdict in verdicts if verdict not in JUDGED]


def on_forwarder(session: Session) -> str:
    """The verdict on the forwarder; ``no result`` without one."""
    found = next((each for case, each in session.cases.items() if case.startswith(FORWARDER)), None)
    return "no result" if found is None else found.verdict or "no verdict"


def quiet(session: Session) -> bool:
    """Whether others left the host alone; not where that is not known."""
    taken, stolen = session.taken, session.stolen
    return taken is not None and taken <= TAKEN_LIMIT and (stolen or 0.0) <= STOLEN_LIMIT


def accusations(unchanged: Sequence[tuple[Session, set[str]]], shown: Sequence[Session]) -> list[Row]:
    """Whom sessions without a change accuse, and which of them show nothing."""
    accusing = sum(map(accuses, shown))
    what = f"sessions of {len(shown)} without a change, their cases judged, that accuse anything"
    rows = [Row(what, accusing, "0", accusing == 0)]
    for kind in UNCHANGED:
        of_kind = [session for session in shown if session.kind == kind]
        rows.append(Row(f"{kind}: sessions of {len(of_kind)} that accuse anything", sum(map(accuses, of_kind))))
    reasons: Counter[str] = Counter()
    number = 0
    for session, cases in unchanged:
        lacking = [] if accuses(session) else unjudged(session, cases)
        number += bool(lacking)
        reasons.update(lacking)
    rows.append(Row("sessions without a change that show nothing", counted(number, reasons)))
    return rows


def counted(number: int, reasons: Counter[str]) -> str | int:
    """A number of sessions with what kept their cases from being judged."""
    return f"{number}: of their cases {in_words(reasons)}" if number else 0


def in_words(verdicts: Counter[str]) -> str:
    return ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items())) or "none"


def beside_slower(every: Sequence[tuple[Session, set[str]]]) -> Row:
    """Who is accused that did not change, in sessions whose forwarder did."""
    judged = [
        each.verdict
        for session, _ in every
        if session.kind in SLOWER
        for case, each in session.cases.items()
        if not case.startswith(FORWARDER) and each.verdict in JUDGED
    ]
    others = judged.count(ACCUSED)
    return Row(f"of {len(judged)} unchanged cases beside a slower forwarder, accused", others, "0", others == 0)


def power(every: Sequence[tuple[Session, set[str]]]) -> list[Row]:
    """How often a slower forwarder is found: on a quiet host, on any other, and beside load."""
    rows: list[Row] = []
    for kind, slower in SLOWER.items():
        verdicts = [(on_forwarder(session), quiet(session)) for session, _ in every if session.kind == kind]
        hosts = (
            {"beside load": (True, False)}
            if kind in BESIDE
            else {"on a quiet host": (True,), "on a busy host": (False,)}
        )
        for host, alone in hosts.items():
            judged = [verdict for verdict, of_host in verdicts if verdict in JUDGED and of_host in alone]
            found, bound = judged.count(ACCUSED), "all" if kind == _FIRM and alone == (True,) else ""
            held = not bound or found == len(judged)
            rows.append(Row(f"{slower:.0%} slower, {host}: found", f"{found} of {len(judged)}", bound, held))
        all_verdicts = Counter(verdict for verdict, _ in verdicts)
        bound = "no PASS" if slower == SLOWER[_FIRM] else ""
        held = not bound or not all_verdicts[PASSED]
        where = "beside load" if kind in BESIDE else "on any host"
        rows.append(Row(f"{slower:.0%} slower, {where}: verdicts", in_words(all_verdicts), bound, held))
    return rows


def unmoved(unchanged: Iterable[Session]) -> Row:
    """How many intervals of a change hold 1 where nothing changed."""
    changes = [each.change for session in unchanged for each in session.cases.values() if each.change is not None]
    share = sum(holds(low, high, 1.0) for _, low, high in changes) / max(len(changes), 1)
    value = f"{share:.1%} of {len(changes)}"
    return Row("intervals of a change that hold 1", value, HOLDING, share >= LEAST_HOLDING)


def agreement(hosts: Sequence[Sequence[Session]]) -> list[Row]:
    """How many intervals hold the median of the other sessions' values on their host, by case and in all."""
    rows: list[Row] = []
    counts: dict[str, list[int]] = {}
    for sessions in hosts:
        for case in dict.fromkeys(case for session in sessions for case in session.cases):
            measured = [
                each for s in sessions if (each := s.cases.get(case)) is not None and value_of(each) is not None
            ]
            counts.setdefault(case, [0, 0, 0, 0])
            for place, each in enumerate(measured if len(measured) > 1 else ()):
                rest = median(
                    v for n, other in enumerate(measured) if n != place and (v := value_of(other)) is not None
                )
                estimates = shown_value(each), estimate_of(each.value), independent.interval(each.launches)
                held = [holds(estimate.low, estimate.high, rest) for estimate in estimates if estimate is not None]
                counts[case] = [sum(pair) for pair in zip(counts[case], (*held, 1), strict=True)]
    for case, (now, own, before, number) in counts.items():
        value = f"{now} of {number} (by its own rounds: {own}, as if independent: {before})"
        rows.append(Row(f"{case}: intervals that hold the others' median", value))
    now, own, before, number = (sum(column) for column in zip(*counts.values(), strict=True))
    share, *others = (held / max(number, 1) for held in (now, own, before))
    value = "{:.1%} of {} (by its own rounds: {:.1%}, as if independent: {:.1%})".format(share, number, *others)
    return [Row("intervals that hold the others' median", value, HOLDING, share >= LEAST_HOLDING), *rows]


def shown_value(judged: Judged) -> Estimate | None:
    """The value as reports show it: its interval includes what sessions differ by, once some are known."""
    value, change = estimate_of(judged.value), estimate_of(judged.change)
    return value if value is None or change is None else as_wide_as(value, change)


def estimate_of(ends: Sequence[float | None] | None) -> Estimate | None:
    """A recorded value with its interval."""
    if ends is None or ends[0] is None:
        return None
    return Estimate(ends[0], *ends[1:])


def value_of(judged: Judged) -> float | None:
    return judged.value[0] if judged.value is not None else None


def holds(low: float | None, high: float | None, truth: float) -> bool:
    """Whether an interval holds it. One without an end claims nothing on that side."""
    return (low is None or low <= truth) and (high is None or truth <= high)


def told(known: Sequence[Record]) -> Iterator[Row]:
    """What has no bound: verdicts by kind, hosts, and the time."""
    for kind in UNCHANGED:
        of_kind = [session for record in known for session in record.later if session.kind == kind]
        verdicts = Counter(each.verdict or "no verdict" for session in of_kind for each in session.cases.values())
        yield Row(f"cases of the sessions “{kind}”: verdicts", in_words(verdicts))
    yield Row("records, each with a baseline of its own", len(known))
    yield Row(
        "sessions of the gate itself, after its baseline", sum(len(record.later) for record in known if record.full)
    )
    yield Row("sessions", sum(len(record.sessions) for record in known))
    yield Row("seconds of a session, median", median(s.seconds for record in known for s in record.sessions))


def circumstances(known: Sequence[Record]) -> Iterator[str]:
    """A sentence a record: what else ran, and by which sources it was judged."""
    for number, record in enumerate(known, start=1):
        taken = sorted(session.taken for session in record.sessions if session.taken is not None)
        others = f"{taken[0]:.0%} to {taken[-1]:.0%}, median {median(taken):.0%}" if taken else "an unknown share"
        commits = ", ".join(dict.fromkeys(session.commit or "unknown sources" for session in record.sessions))
        facts = f"{record.host.get('CPUs')} CPUs of {record.host.get('processor')}"
        yield f"Record {number}, {facts}: others took {others} of the measuring CPUs in a session; judged by {commits}."


def data(known: Sequence[Record]) -> dict[str, Any]:
    """What is drawn: by record and case each session's kind, verdict and interval over the unchanged ones' median."""
    found = []
    for record in known:
        cases: dict[str, list[dict[str, Any] | None]] = {}
        for case in dict.fromkeys(case for session in record.sessions for case in session.cases):
            levels = [
                value
                for session in record.sessions
                if session.kind not in SLOWER and case in session.cases
                if (value := value_of(session.cases[case])) is not None
            ]
            middle = median(levels) if levels else None
            cases[case] = [point(session, case, middle) for session in record.sessions]
        found.append({"sessions": len(record.sessions), "cases": cases})
    return {"records": found}


def point(session: Session, case: str, middle: float | None) -> dict[str, Any] | None:
    each = session.cases.get(case)
    if each is None:
        return None
    shown = shown_value(each)
    ends = [] if shown is None else [shown.value, shown.low, shown.high]
    return {
        "kind": session.kind,
        "verdict": BASELINE if session.kind == BASELINE else each.verdict or "no verdict",
        "value": [] if middle is None else [over(end, middle) for end in ends],
    }


def over(value: float | None, middle: float) -> float | None:
    return None if value is None else round(value / middle, 4)


def points(data: Mapping[str, Any], case: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The sessions of a case over all records, with their places from 1."""
    begin = 0
    for record in data["records"]:
        for place, each in enumerate(record["cases"].get(case, ()), start=begin + 1):
            if each is not None:
                yield place, each
        begin += record["sessions"]


def borders(data: Mapping[str, Any]) -> list[float]:
    """Places between records."""
    found, begin = [], 0
    for record in data["records"][:-1]:
        begin += record["sessions"]
        found.append(begin + 0.5)
    return found


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    cases = list(dict.fromkeys(case for record in data["records"] for case in record["cases"]))
    figure.set_size_inches(8, 1.4 * len(cases) + 0.6 if name == "intervals" else 3.2)
    if name == "intervals":
        draw_intervals(figure, cases, data)
        return
    axes = figure.subplots()
    verdicts = sorted({each["verdict"] for case in cases for _, each in points(data, case)})
    for number, verdict in enumerate(verdicts):
        again, colour = divmod(number, len(drawing.COLOURS))
        places = [
            (place, row)
            for row, case in enumerate(cases)
            for place, each in points(data, case)
            if each["verdict"] == verdict
        ]
        xs, ys = zip(*places, strict=True)
        axes.scatter(xs, ys, marker="sx"[again], s=14, color=drawing.COLOURS[colour], label=verdict)
    for border in borders(data):
        axes.axvline(border, **drawing.LIMIT)
    kinds = {place: each["kind"] for case in cases for place, each in points(data, case)}
    for row, among in ((-1, SLOWER), (-2, BESIDE)):
        marked = [place for place, kind in kinds.items() if kind in among]
        axes.scatter(marked, [row] * len(marked), marker="|", s=40, color="#555555")
    axes.set_yticks(range(-2, len(cases)), ["beside load", "slower forwarder", *cases], fontsize=7)
    axes.set(xlabel="session", ylim=(-2.8, len(cases) + 0.4))
    axes.legend(fontsize=7, ncols=len(verdicts), loc="upper center")


def draw_intervals(figure: Figure, cases: Sequence[str], data: Mapping[str, Any]) -> None:
    kinds = [BASELINE, *BLOCK]
    grid = figure.subplots(len(cases), sharex=True, squeeze=False)[:, 0]
    for axis, case in zip(grid, cases, strict=True):
        for place, each in points(data, case):
            colour = drawing.COLOURS[kinds.index(each["kind"]) % len(drawing.COLOURS)]
            value, low, high = each["value"] or (None, None, None)
            if None not in (low, high):
                axis.plot([place, place], [low, high], color=colour)
            if value is not None:
                axis.plot([place], [value], ".", color=colour)
        axis.axhline(1, **drawing.LIMIT)
        for border in borders(data):
            axis.axvline(border, **drawing.LIMIT)
        ends = [end for _, each in points(data, case) for end in each["value"] if end is not None]
        axis.set(ylim=(min([0.5, *ends]), min(max([1.5, *ends]), MOST_DRAWN)))
        axis.set_title(case, fontsize=8)
    grid[-1].set(xlabel="session")
    for number, kind in enumerate(kinds):
        grid[0].plot([], [], color=drawing.COLOURS[number % len(drawing.COLOURS)], label=kind)
    grid[0].legend(fontsize=6, ncols=len(kinds), loc="upper center")
