# SPDX-License-Identifier: BSD-3-Clause
"""Computes and reports which losses a comparison with a baseline can find: before, during and after a session. Pure.

A loss has to be found in the value and in its ratio to the reference link, so the less certain of both counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from pytest_icbench.gate.entry import MOST_SESSIONS, Baseline, Entry
from pytest_icbench.gate.margins import FigureAllowance, Margins
from pytest_icbench.model import comparability
from pytest_icbench.stats.sessions import Spread, estimate_spread
from pytest_icbench.stats.verdict_rule import FEWEST_SESSIONS, WEAK_LOSS, Allowance, is_weak, session_finds
from pytest_icbench.wording import counted, percent, span

#: Seconds without a session after which the host may have changed.
GAP_S = 14 * 86400.0

#: A value of each session, level by level, the newest level last.
Levels = list[list[float]]
_MORE_SESSIONS = "save more (--icbench-save), or use --icbench-candidate"


@dataclass(frozen=True, slots=True)
class Power:
    """The losses that a comparison can find.

    Attributes:
        finds: the smallest loss found with 90 % power, as a share; None if unknown.
        weak: whether a loss of ``WEAK_LOSS`` is missed more often than not.
    """

    finds: float | None = None
    weak: bool = True


def collect_levels(name: str, before: Entry, distance_ns: float | None) -> list[Levels]:
    """Returns the values of a baseline's sessions in one state of the host, then their ratios to the reference link.

    Either is left out if too few sessions have it.
    """
    sides: list[Levels] = []
    for of in (lambda session: session.values.get(name), lambda session: session.against.get(name)):
        levels = before.by_level(distance_ns, of)
        if sum(map(len, levels)) < FEWEST_SESSIONS or estimate_spread(levels) is None:
            break
        sides.append(levels)
    return sides


def compute_power(sides: Sequence[Levels], allowance: Allowance, cases: int) -> Power:
    """Returns the power of a comparison with earlier sessions, one of the ``cases`` that share the error rate."""
    return _power(_spreads(sides), allowance, cases)


def compute_power_before(before: Entry, allowed: FigureAllowance, cases: int) -> Power:
    """Returns the power of a comparison with a baseline's entry, in the state of its newest session."""
    return compute_power(collect_levels(allowed.name, before, before.distance_ns), allowed.allowance, cases)


def count_more_sessions(sides: Sequence[Levels], allowance: Allowance, cases: int) -> int | None:
    """Returns how many more sessions a baseline needs for enough power; None if ``MOST_SESSIONS`` are not enough."""
    known = _spreads(sides)
    for more in range(1, MOST_SESSIONS - min((count for _, count in known), default=MOST_SESSIONS) + 1):
        later = [(replace(spread, freedom=spread.freedom + more), count + more) for spread, count in known]
        if not _power(later, allowance, cases).weak:
            return more
    return None


def _spreads(sides: Sequence[Levels]) -> list[tuple[Spread, int]]:
    return [(spread, len(levels[-1])) for levels in sides if (spread := estimate_spread(levels)) is not None]


def _power(known: Sequence[tuple[Spread, int]], allowance: Allowance, cases: int) -> Power:
    if not known:
        return Power()
    found = max(session_finds(spread, count, allowance, cases) for spread, count in known)
    return Power(found, any(is_weak(spread, count, allowance, cases) for spread, count in known))


def sentences(powers: Sequence[tuple[str, Power]], *, before: bool = False, pairs: bool = False) -> list[str]:
    """Returns a sentence on the losses that a session can find, and a warning if it is weak; none without cases.

    Args:
        powers: each case with its power.
        before: whether the session is still to come.
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
    """Returns a sentence on the cases that a baseline cannot judge yet; none if it can judge all of them."""
    margins = Margins()
    lacking = [
        entry for entry in entries if compute_power_before(entry, margins.of(entry.dimension)[0], len(entries)).weak
    ]
    if not lacking:
        return []
    fewest = min(len(entry.in_state(entry.distance_ns)) for entry in lacking)
    missed = f"a loss of {percent(WEAK_LOSS)} would be missed more often than not"
    cases = counted(len(lacking), "case")
    return [f"it cannot judge {cases} of {len(entries)} yet (fewest sessions: {fewest}): {missed}"]


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case of a planned session.

    Attributes:
        placement: None if not decided yet.
        controlled: whether the reference link is launched in turn with it.
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
    patterns: Sequence[str] = comparability.DEFAULT,
) -> list[str]:
    """Returns sentences on the losses that a session can find, and on what prevents cases from being judged.

    Args:
        identity: the facts of this host.
        now: the time in UTC, as entries have it.
        patterns: facts that must match; see ``comparability.matches``.
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
    powers = [(case, compute_power_before(entry, fig[0], len(planned) * len(fig))) for case, entry, fig in allowed]
    return [*lines, *sentences(powers, before=True), *_check_sessions(of, kept, now)]


def _check_sessions(of: str, kept: Sequence[tuple[PlannedCase, Entry]], now: str) -> list[str]:
    """Returns sentences on missing reference links, sessions of the future, and old sessions."""
    lines = []
    without = sum(case.controlled and entry.control is None for case, entry in kept)
    if without:
        lines.append(
            f"{of}: {counted(without, 'case')} without a reference link, so a change of the host looks like one of the"
            " software: save new sessions"
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
    """Returns a sentence if a history cannot show when a change happened: clock set back, or a long gap; else None.

    Args:
        name: of its file.
        newest: the time of its newest result; like ``now`` in seconds since the epoch.
    """
    if newest > now:
        ahead = f"a result lies {span(newest - now)} ahead of the clock, which went back"
        return f"history {name}: {ahead}: set it right, or the results of this run stand before it"
    gap = f"{(now - newest) / 86400:.0f} days without a result, so a change that this run shows may lie anywhere in"
    remedy = "compare with an old version (icbench bisect)"
    return f"history {name}: {gap} them: {remedy}" if now - newest > GAP_S else None


def utc(moment: datetime) -> str:
    """Returns a time in UTC as entries have it: ``2026-01-31T12:00:00Z``."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _differing(identity: Mapping[str, Any], case: PlannedCase, entry: Entry, patterns: Sequence[str]) -> list[str]:
    """Returns a text for each fact of host and placement that must match and differs."""
    facts = {name: (identity.get(name), entry.identity.get(name)) for name in sorted({*identity, *entry.identity})}
    differing = [
        f"{name} is {here} here and {there} there"
        for name, (here, there) in facts.items()
        if here != there and comparability.matches(f"identity.{name}", patterns)
    ]
    if case.placement not in (None, entry.placement):
        differing.append(f"placement is {case.placement} here and {entry.placement} there")
    return differing
