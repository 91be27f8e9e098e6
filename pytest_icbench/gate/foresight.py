# SPDX-License-Identifier: BSD-3-Clause
"""What can be said of a comparison with a baseline before anything is measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pytest_icbench.gate.entry import Baseline, Entry
from pytest_icbench.gate.margins import Margins
from pytest_icbench.gate.power import power_before, sentences
from pytest_icbench.model import circumstances
from pytest_icbench.wording import counted, span

#: From this time on, in seconds, a history has a gap in which the host may have become another.
GAP_S = 14 * 86400.0


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
    of = f"baseline {baseline.name}"
    about: dict[tuple[str, str], list[Entry]] = {}
    for entry in baseline.entries:
        about.setdefault(entry.about, []).append(entry)
    known = [(case, about[case.dimension, case.case]) for case in planned if (case.dimension, case.case) in about]
    here = [
        (case, [entry for entry in entries if not _differing(identity, entry, patterns)]) for case, entries in known
    ]
    elsewhere = [entries for (_, entries), (_, kept) in zip(known, here, strict=True) if not kept]
    lines = []
    if elsewhere:
        facts = ", ".join(_nearest(identity, [entry for entries in elsewhere for entry in entries], patterns))
        cases = counted(len(elsewhere), "case")
        lines.append(f"{of}: {cases} of another host or layout ({facts}): save one here, --icbench-save")
    placed = [(case, [entry for entry in kept if case.placement in (None, entry.placement)]) for case, kept in here]
    moved = [case for (case, kept), (_, alike) in zip(here, placed, strict=True) if kept and not alike]
    if moved:
        there = "dedicated" if moved[0].placement == "cooperative" else "cooperative"
        lines.append(
            f"{of}: {counted(len(moved), 'case')} saved with placement {there}, and {moved[0].placement} here:"
            f" give --icbench-placement {there}, or save one here"
        )
    kept = [(case, max(entries, key=lambda entry: entry.measured)) for case, entries in placed if entries]
    return [*lines, *_powers(kept, len(planned)), *_of_sessions(of, kept, now)]


def _powers(kept: Sequence[tuple[PlannedCase, Entry]], cases: int) -> list[str]:
    """Returns what the session finds, by the spread of the baseline's sessions."""
    allowed = [(case.case, entry, case.margins.of(case.dimension)) for case, entry in kept]
    return sentences(
        [(case, power_before(entry, figures[0], cases * len(figures))) for case, entry, figures in allowed], before=True
    )


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
            " host may have changed since: add a session of the old version (--icbench-save, or icbench accept"
            " --unchanged of its run)"
        )
    return lines


def of_history(name: str, newest: float, now: float) -> str | None:
    """Returns a sentence on what keeps a history from telling where a change lies; None if nothing does.

    Args:
        name: of its file.
        newest: the time of its newest result; like ``now`` in seconds since the epoch.
    """
    if newest > now:
        return (
            f"history {name}: a result lies {span(newest - now)} ahead of the clock, which went back: set it right, or"
            " the results of this run stand before it"
        )
    if now - newest > GAP_S:
        return (
            f"history {name}: {(now - newest) / 86400:.0f} days without a result, so a change that this run shows may"
            " lie anywhere in them: icbench bisect tells an old version from this one"
        )
    return None


def utc(moment: datetime) -> str:
    """Returns a time in UTC as entries have it: ``2026-01-31T12:00:00Z``."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _differing(identity: Mapping[str, Any], entry: Entry, patterns: Sequence[str]) -> list[str]:
    """Returns the facts of the host that differ and must not, in words."""
    return [
        f"{name} is {identity.get(name)} here and {entry.identity.get(name)} there"
        for name in sorted({*identity, *entry.identity})
        if identity.get(name) != entry.identity.get(name) and circumstances.matches(f"identity.{name}", patterns)
    ]


def _nearest(identity: Mapping[str, Any], entries: Sequence[Entry], patterns: Sequence[str]) -> list[str]:
    """Returns the facts that differ from the entry that is most alike."""
    return min((_differing(identity, entry, patterns) for entry in entries), key=len)
