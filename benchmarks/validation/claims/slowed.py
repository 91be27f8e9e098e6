# SPDX-License-Identifier: BSD-3-Clause
"""Real switches that are really slower: what both methods of the gate find, and whom they flag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from pytest_icbench.errors import Unsupported
from validation import drawing
from validation.model import Found, Row, Settings
from validation.pools.slowed import Record, Session, records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The gate finds real switches that are slower"
CLAIM = (
    "Of at least 60 sessions without a change none flags anything. By pairs, nine of ten sessions find a loss of"
    " 10 %, and seven of ten a loss of 5 %, on a quiet host, with compilers, and with other people's work."
)
METHOD = """
A session has one case, and a minute for it. Slower is what a release may bring: Open vSwitch with further actions
in its flows, testpmd that looks up memory for each frame (`noisy`), a bridge with rules of nftables, a debug build of
basicfwd, endpoints of another build. The loss of each, in each state of the host, is the median of what all its
sessions by pairs estimate: where the CPUs lie far apart, endpoints hide a part of what a switch loses.
By pairs, it is launched in turn with the installed one. By sessions, it takes the place of the one that five sessions
saved. The compiler is two loops of gcc at nice 19; other people's work is what ran on the host as it came.

Losses from 8 to 14 % count as 10 %, and those from 4 to 7 % as 5 %. Sessions are recorded before
(`benchmarks/README.md`).
"""
SECONDS = 1.0
FIGURES = {"losses": "The loss that each session estimates, with its interval, by the loss that is true."}

#: What the claim asks for.
LEAST_UNCHANGED, FIRM, SLIGHT = 60, 0.9, 0.7
#: The losses that count as 10 % and as 5 %.
BANDS = {"10 %": (0.08, 0.14, FIRM), "5 %": (0.04, 0.07, SLIGHT)}
#: A load in words.
WHERE = {"none": "on a quiet host", "compiler": "with compilers", "others": "with other people's work"}
FLAGGED, PAIRS = "REGRESSED", "pairs"


def check(settings: Settings) -> Found:
    del settings  # there is nothing to shorten
    known = records()
    if not any(record.sessions for record in known):
        raise Unsupported("no session is recorded: python -m validation.pools.slowed")
    return assemble(known)


def assemble(known: Sequence[Record]) -> Found:
    """The figures of all records together."""
    rows: list[Row] = []
    judged: list[tuple[Session, float]] = []
    for record in known:
        true = truths(record.sessions)
        for changed, loss in true.items():
            measured = [each for each in record.sessions if each.method == PAIRS and each.changed == changed]
            rows.append(Row(f"{changed}: slower by, %", round(100 * loss, 1)))
            if more := more_cycles(each.cycles for each in measured):
                rows.append(Row(f"{changed}: more cycles a frame, %", round(100 * more, 1)))
        judged += [
            (each, 0.0 if each.step == 0 else true[each.changed])
            for each in record.sessions
            if each.step == 0 or each.changed in true
        ]
    unchanged = [each for each, _ in judged if each.step == 0]
    false = sum(each.decision == FLAGGED for each in unchanged)
    rows.append(Row(f"of {len(unchanged)} sessions without a change, those that flag it", false, "0", false == 0))
    for method in (PAIRS, "sessions"):
        for load in WHERE:
            of_method = [pair for pair in judged if (pair[0].method, pair[0].load) == (method, load)]
            rows += found_rows(method, load, of_method)
    notes = []
    if len(unchanged) < LEAST_UNCHANGED:
        notes.append(f"Not shown yet, sessions without a change: {len(unchanged)} of {LEAST_UNCHANGED}.")
        rows = [Row(row.what, row.value) if row.held else row for row in rows]
    points = [
        [each.switch, each.method, loss, *(each.ratio or [])]
        for each, loss in judged
        if each.ratio and None not in each.ratio
    ]
    return Found(tuple(rows), {"points": points}, tuple(notes))


def truths(sessions: Iterable[Session]) -> dict[str, float]:
    """How much slower each step of a switch is in a state: the median of what its sessions by pairs estimate."""
    found: dict[str, list[float]] = {}
    for each in sessions:
        if each.method == PAIRS and each.step and each.ratio and each.ratio[0] is not None:
            found.setdefault(each.changed, []).append(1 - each.ratio[0])
    return {key: median(losses) for key, losses in found.items()}


def more_cycles(cycles: Iterable[Sequence[float | None]]) -> float | None:
    """By how much more cycles a frame takes; None where the switch counts none."""
    shares = [now / base - 1 for now, base in cycles if now and base]
    return median(shares) if shares else None


def found_rows(method: str, load: str, judged: Sequence[tuple[Session, float]]) -> list[Row]:
    rows = []
    where = WHERE[load]
    for name, (least, most, wanted) in BANDS.items():
        decisions = [each.decision for each, loss in judged if each.step and least <= loss <= most]
        if decisions:
            share = decisions.count(FLAGGED) / len(decisions)
            bound = f"at least {wanted:.0%}" if method == PAIRS else ""
            what = f"by {method}, {where}: of {len(decisions)} sessions with a loss of {name}, those that find it"
            rows.append(Row(what, f"{share:.0%}", bound, not bound or share >= wanted))
    if judged:
        unchanged = Counter(each.decision for each, _ in judged if each.step == 0)
        rows.append(Row(f"by {method}, {where}: without a change", in_words(unchanged)))
        slower = Counter(each.decision for each, _ in judged if each.step)
        rows.append(Row(f"by {method}, {where}: slower", in_words(slower)))
    return rows


def in_words(decisions: Counter[str]) -> str:
    return ", ".join(f"{number} {decision}" for decision, number in sorted(decisions.items())) or "none"


def draw(_name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    panels = figure.subplots(1, 2, sharey=True)
    for axes, method in zip(panels, ("pairs", "sessions"), strict=True):
        switches = sorted({switch for switch, *_ in data["points"]})
        for switch, how, loss, value, low, high in data["points"]:
            if how == method:
                colour = drawing.COLOURS[switches.index(switch) % len(drawing.COLOURS)]
                axes.plot([100 * loss] * 2, [100 * (1 - low), 100 * (1 - high)], color=colour, linewidth=0.7)
                axes.plot([100 * loss], [100 * (1 - value)], ".", color=colour)
        axes.axline((0, 0), slope=1, **drawing.LIMIT)
        axes.set(xlabel="slower by, %", title=f"by {method}")
    panels[0].set(ylabel="estimated, %")
