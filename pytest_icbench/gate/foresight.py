# SPDX-License-Identifier: BSD-3-Clause
"""What comparisons with a baseline find: told before a session, with its verdicts, and after it. Pure.

A loss has to be found on both sides: by the value, and relative to the reference link. The less sure side counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from pytest_icbench.gate.entry import MOST_SESSIONS, Baseline, Entry
from pytest_icbench.gate.margins import Allowed, Margins
from pytest_icbench.model import circumstances
from pytest_icbench.stats.decision import FEWEST_SESSIONS, WEAK_LOSS, Allowance, is_weak, session_finds
from pytest_icbench.stats.sessions import Spread, spread_of
from pytest_icbench.wording import counted, percent, span

#: From this time on, in seconds, a history has a gap in which the host may have become another.
GAP_S = 14 * 86400.0

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
    sides: list[Levels] = []
    for of in (lambda session: session.values.get(name), lambda session: session.against.get(name)):
        levels = before.by_level(distance_ns, of)
        if sum(map(len, levels)) < FEWEST_SESSIONS or spread_of(levels) is None:
            break
        sides.append(levels)
    return sides


def power_of(sides: Sequence[Levels], allowance: Allowance, cases: int) -> Power:
    """Returns what a session finds beside the values of earlier ones. ``cases`` share the session's error rate."""
    return _power(_spreads(sides), allowance, cases)


def power_before(before: Entry, allowed: Allowed, cases: int) -> Power:
    """Returns what a session finds beside a baseline's entry, in the state of its newest session."""
    return power_of(levels_of(allowed.name, before, before.distance_ns), allowed.allowance, cases)


def more_sessions(sides: Sequence[Levels], allowance: Allowance, cases: int) -> int | None:
    """Returns how many more sessions in the baseline make a session strong enough; None if all it keeps do not."""
    known = _spreads(sides)
    for more in range(1, MOST_SESSIONS - min((count for _, count in known), default=MOST_SESSIONS) + 1):
        later = [(replace(spread, freedom=spread.freedom + more), count + more) for spread, count in known]
        if not _power(later, allowance, cases).weak:
            return more
    return None


def _spreads(sides: Sequence[Levels]) -> list[tuple[Spread, int]]:
    return [(spread, len(levels[-1])) for levels in sides if (spread := spread_of(levels)) is not None]


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


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case that is going to be measured.

    Attributes:
        placement: None where it is not known yet.
        controlled: whether the reference link is launched beside it.
        margins: the losses that are allowed.
    """

    dimension: str
    case: str
    placement: str | None
    controlled: bool
    margins: Margins = field(default_factory=Margins)


def foresee(
    baseline: Baseline,
    planned: Sequence[PlannedCase],
    identity: Mapping[str, Any],
    now: str,
    patterns: Sequence[str] = circumstances.DEFAULT,
) -> list[str]:
    """Returns what the session would find, and a sentence for each thing that keeps cases from being judged.

    Args:
        identity: the facts of this host.
        now: the time in UTC, as entries have it.
        patterns: facts that have to be the same; see ``circumstances.matches``.
    """
    of, kept = f"baseline {baseline.name}", []
    others: list[list[str]] = []
    for case in planned:
        entries = baseline.about((case.dimension, case.case))
        about = [(_differing(identity, case, entry, patterns), entry) for entry in entries]
        here = [entry for differing, entry in about if not differing]
        if here:
            kept.append((case, max(here, key=lambda entry: entry.measured)))
        elif about:
            others.append(min((differing for differing, _ in about), key=len))
    lines = []
    if others:
        facts, cases = ", ".join(min(others, key=lambda facts: len(list(facts)))), counted(len(others), "case")
        lines.append(f"{of}: {cases} of another host, layout or placement ({facts}): save one here, --icbench-save")
    allowed = [(case.case, entry, case.margins.of(case.dimension)) for case, entry in kept]
    powers = [(case, power_before(entry, fig[0], len(planned) * len(fig))) for case, entry, fig in allowed]
    return [*lines, *sentences(powers, before=True), *_of_sessions(of, kept, now)]


def _of_sessions(of: str, kept: Sequence[tuple[PlannedCase, Entry]], now: str) -> list[str]:
    lines = []
    without = sum(case.controlled and entry.control is None for case, entry in kept)
    if without:
        lines.append(
            f"{of}: {counted(without, 'case')} without the reference link beside, so a change of the host is not told"
            " from one of the software: save sessions anew"
        )
    later = [moment for _, entry in kept for moment in (*entry.earlier, entry.measured) if moment > now]
    if later:
        lines.append(
            f"{of}: a session of {max(later)} lies ahead of the clock, which went back: set it right, or drop the"
            " session (icbench baseline)"
        )
    gap = timedelta(seconds=GAP_S)
    stale = [entry.measured for _, entry in kept if entry.measured < utc(datetime.fromisoformat(now) - gap)]
    if stale:
        lines.append(
            f"{of}: {counted(len(stale), 'case')} last saved more than {gap.days} days ago ({max(stale)[:10]}), and the"
            " host may have changed since: add a session of the old version (--icbench-save)"
        )
    return lines


def of_history(name: str, newest: float, now: float) -> str | None:
    """Returns a sentence on what keeps a history from telling where a change lies; None if nothing does.

    Args:
        name: of its file.
        newest: the time of its newest result; like ``now`` in seconds since the epoch.
    """
    if newest > now:
        ahead = f"a result lies {span(newest - now)} ahead of the clock, which went back"
        return f"history {name}: {ahead}: set it right, or the results of this run stand before it"
    gap = f"{(now - newest) / 86400:.0f} days without a result, so a change that this run shows may lie anywhere in"
    tell = "icbench bisect tells an old version from this one"
    return f"history {name}: {gap} them: {tell}" if now - newest > GAP_S else None


def utc(moment: datetime) -> str:
    """Returns a time in UTC as entries have it: ``2026-01-31T12:00:00Z``."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _differing(identity: Mapping[str, Any], case: PlannedCase, entry: Entry, patterns: Sequence[str]) -> list[str]:
    """Returns the facts of host and placement that differ and must not, in words."""
    facts = {name: (identity.get(name), entry.identity.get(name)) for name in sorted({*identity, *entry.identity})}
    differing = [
        f"{name} is {here} here and {there} there"
        for name, (here, there) in facts.items()
        if here != there and circumstances.matches(f"identity.{name}", patterns)
    ]
    if case.placement not in (None, entry.placement):
        differing.append(f"placement is {case.placement} here and {entry.placement} there")
    return differing
