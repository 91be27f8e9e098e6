# SPDX-License-Identifier: BSD-3-Clause
"""Real sessions of the gate: whom they accuse without a change, what they find, and whether they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from pytest_icbench.errors import Unsupported
from validation import drawing, independent
from validation.model import Found, Row, Settings
from validation.pools.detection import host
from validation.pools.gate_sessions import BASELINE_SESSIONS, FILE, SLOWER, WANTED, Judged, Session, read

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Real sessions of the gate accuse nobody without cause"
CLAIM = (
    "Of 30 real sessions without a change, half of them beside a load that comes and goes, none accuses anything, and"
    " at least 90 % of their intervals hold the median of the other sessions. No session whose forwarder is 10 % slower"
    " passes it."
)
METHOD = """
A session is pytest of its own over five cases, with a budget of three minutes: what a CI runs, with rigs built anew.
Six sessions are the baseline. Those after them come in an order drawn once: without a change, alone and beside
`stress-ng` (one busy CPU, or one that streams through memory) that is there for twenty seconds of forty, and with a
forwarder that is 10 % or 5 % slower, which is another program under the same name, as a new version is. Each session
without a change is added to the baseline for those after it. Nothing is left out, whatever else ran on the host.

An interval agrees if it holds the median of the values of all other sessions without a change. Beside that stands the
rule that takes launches as independent, on the same launches.

The sessions take three hours and are recorded before (`benchmarks/README.md`); a record of another host is begun
anew. The claim is about what stands there.
"""
SECONDS = 1.0
FIGURES = {
    "verdicts": "Every verdict, in the order of the sessions.",
    "intervals": "Every interval over the median of all sessions without a change.",
}
LEAST_HOLDING = 0.9
ACCUSED = "REGRESSED"
FORWARDER = "forward:"


def check(settings: Settings) -> Found:
    known = read(FILE)
    if known is None or known[0] != host() or len(known[1]) < BASELINE_SESSIONS + sum(WANTED.values()):
        raise Unsupported("not all sessions are recorded on this host: python -m validation.pools.gate_sessions")
    del settings  # there is nothing to shorten
    return assemble(known[1])


def assemble(sessions: Sequence[Session]) -> Found:
    """The figures out of recorded sessions, those of the baseline first."""
    later = sessions[BASELINE_SESSIONS:]
    rows: list[Row] = []
    unchanged = [session for session in later if session.kind not in SLOWER]
    accusing = sum(any(each.verdict == ACCUSED for each in session.cases.values()) for session in unchanged)
    rows.append(
        Row(f"sessions of {len(unchanged)} without a change that accuse anything", accusing, "0", accusing == 0)
    )
    others = sum(
        each.verdict == ACCUSED
        for session in later
        if session.kind in SLOWER
        for case, each in session.cases.items()
        if not case.startswith(FORWARDER)
    )
    rows.append(Row("unchanged cases that are accused beside a slower forwarder", others, "0", others == 0))
    for kind, slower in SLOWER.items():
        verdicts = Counter(
            each.verdict
            for session in later
            if session.kind == kind
            for case, each in session.cases.items()
            if case.startswith(FORWARDER)
        )
        firm = slower >= max(SLOWER.values())
        bound = "no PASS" if firm else ""
        rows.append(Row(f"forwarder {kind}: verdicts", told(verdicts), bound, not firm or not verdicts["PASS"]))
    for kind in WANTED:
        if kind not in SLOWER:
            verdicts = Counter(
                each.verdict for session in later if session.kind == kind for each in session.cases.values()
            )
            rows.append(Row(f"cases of the sessions “{kind}”: verdicts", told(verdicts)))
    rows += agreement([session for session in sessions if session.kind not in SLOWER])
    seconds = sorted(session.seconds for session in sessions)
    rows.append(Row("seconds of a session, median", median(seconds)))
    loads = sorted(session.load[0] for session in sessions)
    note = f"Load average when a session began: {loads[0]:g} to {loads[-1]:g}, median {median(loads):g}."
    return Found(tuple(rows), data(sessions), (note,))


def told(verdicts: Counter[str]) -> str:
    return ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items()))


def agreement(sessions: Sequence[Session]) -> list[Row]:
    """How many intervals hold the median of the other sessions' values, by case and in all."""
    rows: list[Row] = []
    now_sum = before_sum = sum_ = 0
    for case in sessions[0].cases:
        measured = [session.cases[case] for session in sessions if case in session.cases]
        measured = [each for each in measured if each.value is not None and each.value[0] is not None]
        now = before = 0
        for place, each in enumerate(measured):
            rest = median(value_of(other) for number, other in enumerate(measured) if number != place)
            assert each.value is not None
            now += holds(each.value[1], each.value[2], rest)
            alone = independent.interval(each.launches)
            before += holds(alone.low, alone.high, rest)
        now_sum, before_sum, sum_ = now_sum + now, before_sum + before, sum_ + len(measured)
        value = f"{now} of {len(measured)} (as if independent: {before})"
        rows.append(Row(f"{case}: intervals that hold the others' median", value))
    share = now_sum / sum_
    value = f"{share:.1%} of {sum_} (as if independent: {before_sum / sum_:.1%})"
    rows.insert(
        0,
        Row("intervals that hold the others' median", value, f"at least {LEAST_HOLDING:.0%}", share >= LEAST_HOLDING),
    )
    return rows


def value_of(judged: Judged) -> float:
    assert judged.value is not None
    assert judged.value[0] is not None
    return judged.value[0]


def holds(low: float | None, high: float | None, truth: float) -> bool:
    """Whether an interval holds it. One without an end claims nothing on that side."""
    return (low is None or low <= truth) and (high is None or truth <= high)


def data(sessions: Sequence[Session]) -> dict[str, Any]:
    """What is drawn: by case each session's kind, verdict and interval over the median of the unchanged sessions."""
    found = {}
    for case in sessions[0].cases:
        unchanged = [s.cases[case] for s in sessions if s.kind not in SLOWER and case in s.cases]
        middle = median(value_of(each) for each in unchanged if each.value is not None)
        found[case] = [
            {"kind": session.kind, "verdict": each.verdict, "value": [over(end, middle) for end in each.value or ()]}
            for session in sessions
            if (each := session.cases.get(case)) is not None
        ]
    return {"cases": found}


def over(value: float | None, middle: float) -> float | None:
    return None if value is None else round(value / middle, 4)


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    cases = data["cases"]
    figure.set_size_inches(8, 1.4 * len(cases) + 0.6 if name == "intervals" else 3.2)
    if name == "intervals":
        axes = figure.subplots(len(cases), sharex=True)
        kinds = [*WANTED]
        for axis, (case, sessions) in zip(axes, cases.items(), strict=True):
            for place, each in enumerate(sessions, start=1):
                colour = drawing.COLOURS[kinds.index(each["kind"])]
                value, low, high = each["value"] or (None, None, None)
                if None not in (low, high):
                    axis.plot([place, place], [low, high], color=colour)
                if value is not None:
                    axis.plot([place], [value], ".", color=colour)
            axis.axhline(1, **drawing.LIMIT)
            axis.set(ylim=(0.5, 1.5))
            axis.set_title(case, fontsize=8)
        axes[-1].set(xlabel="session")
        for kind, colour in zip(kinds, drawing.COLOURS, strict=False):
            axes[0].plot([], [], color=colour, label=kind)
        axes[0].legend(fontsize=6, ncols=len(kinds), loc="upper center")
        return
    axes = figure.subplots()
    verdicts = sorted({each["verdict"] for sessions in cases.values() for each in sessions})
    for colour, verdict in zip(drawing.COLOURS, verdicts, strict=False):
        places = [
            (number, row)
            for row, sessions in enumerate(cases.values())
            for number, each in enumerate(sessions, start=1)
            if each["verdict"] == verdict
        ]
        xs, ys = zip(*places, strict=True)
        axes.scatter(xs, ys, marker="s", s=14, color=colour, label=verdict)
    axes.set_yticks(range(len(cases)), list(cases), fontsize=7)
    axes.set(xlabel="session", ylim=(-0.8, len(cases) + 0.4))
    axes.legend(fontsize=7, ncols=len(verdicts), loc="upper center")
