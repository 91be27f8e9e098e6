# SPDX-License-Identifier: BSD-3-Clause
"""What comparisons find: the loss that a session would show, told before it, with its verdicts, and after it. Pure.

A loss has to be found on both sides: by the value, and relative to the reference link. The less sure side counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_icbench.gate.entry import Entry
from pytest_icbench.gate.margins import Allowed, Margins
from pytest_icbench.gate.session_values import MOST_SESSIONS, SessionValues, by_level
from pytest_icbench.stats.decision import FEWEST_SESSIONS, WEAK_LOSS, Allowance, is_weak, session_finds
from pytest_icbench.stats.sessions import Spread, spread_of
from pytest_icbench.wording import counted, percent

#: A value of each session, level by level, the newest level last.
Levels = list[list[float]]
_MORE_SESSIONS = "save more (--icbench-save), or use --icbench-variant"


@dataclass(frozen=True, slots=True)
class Power:
    """What a comparison finds.

    Attributes:
        finds: the least loss that is found nine times of ten, as a share; None if that is not known.
        weak: a loss of ``WEAK_LOSS`` is missed more often than not.
    """

    finds: float | None = None
    weak: bool = True


def levels_of(name: str, before: Entry, distance_ns: float | None) -> list[Levels]:
    """Returns the values of a baseline's sessions in one state of the host: by themselves, then relative to the link.

    A side with too few sessions is left out; none means that there are too few.
    """

    def plain(session: SessionValues) -> float | None:
        return session.values.get(name)

    def relative(session: SessionValues) -> float | None:
        return session.against.get(name)

    sides: list[Levels] = []
    for of in (plain, relative):
        levels = by_level(before.in_state(distance_ns), of, before.level)
        if sum(map(len, levels)) < FEWEST_SESSIONS or spread_of(levels) is None:
            break
        sides.append(levels)
    return sides


def power_of(sides: Sequence[Levels], allowance: Allowance, cases: int) -> Power:
    """Returns what a session finds beside the values of earlier ones. ``cases`` share the session's error rate."""
    known = [(spread, len(levels[-1])) for levels in sides if (spread := spread_of(levels)) is not None]
    return _power(known, allowance, cases)


def power_before(before: Entry, allowed: Allowed, cases: int) -> Power:
    """Returns what a session finds beside a baseline's entry, in the state of its newest session."""
    return power_of(levels_of(allowed.name, before, before.distance_ns), allowed.allowance, cases)


def more_sessions(sides: Sequence[Levels], allowance: Allowance, cases: int) -> int | None:
    """Returns how many more sessions in the baseline make a session strong enough; None if all it keeps do not."""
    known = [(spread, len(levels[-1])) for levels in sides if (spread := spread_of(levels)) is not None]
    for more in range(1, MOST_SESSIONS - min((count for _, count in known), default=MOST_SESSIONS) + 1):
        later = [(replace(spread, freedom=spread.freedom + more), count + more) for spread, count in known]
        if not _power(later, allowance, cases).weak:
            return more
    return None


def _power(known: Sequence[tuple[Spread, int]], allowance: Allowance, cases: int) -> Power:
    if not known:
        return Power()
    found = max(session_finds(spread, count, allowance, cases) for spread, count in known)
    return Power(found, any(is_weak(spread, count, allowance, cases) for spread, count in known))


def sentences(powers: Sequence[tuple[str, Power]], *, before: bool = False, pairs: bool = False) -> list[str]:
    """Returns what a session finds in all its cases, in one sentence, and a warning if it is weak; none without cases.

    Args:
        powers: each case with its power.
        before: whether nothing was measured yet.
        pairs: whether all are comparisons of versions side by side.
    """
    known = sorted((power.finds, case) for case, power in powers if power.finds is not None)
    lines = []
    if known:
        (least, first), (most, last) = known[0], known[-1]
        text = f"{'finds' if before else 'would have found'} nine times of ten: a loss of {percent(least)} in {first}"
        lines.append(f"this session {text}" + (f", of {percent(most)} in {last}" if len(known) > 1 else ""))
    weak = sum(power.weak for _, power in powers)
    if weak:
        cannot = f"weak session: {counted(weak, 'case')} of {len(powers)} cannot show a loss of {percent(WEAK_LOSS)}"
        remedy = "give more time (--icbench-max-duration)" if pairs else _MORE_SESSIONS
        lines.append(f"{cannot} in half of such sessions: {remedy}")
    return lines


def saved(entries: Sequence[Entry]) -> list[str]:
    """Returns what a baseline cannot judge later, in one sentence; none if it can judge all of its cases."""
    margins = Margins()
    lacking = [entry for entry in entries if power_before(entry, margins.of(entry.dimension)[0], len(entries)).weak]
    if not lacking:
        return []
    fewest = min(len(entry.in_state(entry.distance_ns)) for entry in lacking)
    missed = f"a loss of {percent(WEAK_LOSS)} would be missed more often than not"
    cases = counted(len(lacking), "case")
    return [f"it cannot judge {cases} of {len(entries)} yet (fewest sessions: {fewest}): {missed}"]
