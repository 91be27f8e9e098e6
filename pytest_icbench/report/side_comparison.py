# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of two runs or baselines: its changes, and a table for each compared value. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from pytest_icbench.gate.baseline_comparison import BaselineComparison, Comparer
from pytest_icbench.gate.entry import Baseline, Entry
from pytest_icbench.gate.margins import MAIN
from pytest_icbench.model import comparability
from pytest_icbench.model.verdict import ORDER, Verdict
from pytest_icbench.report.value_changes import (
    Change,
    Comparison,
    change_tables,
    changed,
    compared,
    in_units,
    of_finding,
)
from pytest_icbench.store.thresholds import Thresholds
from pytest_icbench.wording import printable

WIDTH = 100


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """Two sides compared.

    Attributes:
        comparison: the changes, for charts and pages.
        lines: the table with the differences in what was tested and other notes.
        regressed: whether a case REGRESSED.
    """

    comparison: Comparison
    lines: tuple[str, ...]
    regressed: bool


def compare_sides(
    before: Baseline,
    now: Baseline,
    thresholds: Thresholds,
    patterns: Sequence[str] = comparability.DEFAULT,
    width: int = WIDTH,
) -> ComparedSides:
    """Compares two sides.

    Args:
        patterns: facts that must match.
        width: the most columns of a line.
    """
    comparer = Comparer(before, patterns, len(now.entries))
    changes: list[Change] = []
    verdicts: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    notes: list[str] = []
    for entry in sorted(now.entries, key=lambda entry: (entry.dimension, _in_order(entry.case), entry.placement)):
        margins = thresholds.margins(entry.case)
        comparison = comparer.compare_entry(entry, margins, retest=True)  # nothing can be measured
        verdict = _verdict(comparison)
        verdicts[verdict] += 1
        if verdict != Verdict.NO_BASELINE:
            differing.update(
                sentence
                for difference in comparison.treatment
                if not difference.fact.startswith("treatment.cpus")
                and (sentence := changed(difference.fact.removeprefix("treatment."), difference.there, difference.here))
            )
        notes += [f"{entry.case}: {note}" for note in (comparison.incomparable, *comparison.warnings) if note]
        notes += [
            f"{entry.case}: {in_units(finding.name)[0]}: {finding.outlook()}"
            for finding in comparison.findings
            if finding.outlook()
        ]
        changes += _changes(entry, comparison)
    seen = {entry.about for entry in now.entries}
    gone = [
        f"only in {before.name}: {case}"
        for case in sorted({entry.case for entry in before.entries if entry.about not in seen})
    ]
    lines = change_tables(changes, width)
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ORDER if verdicts[verdict])
    lines.append(f"{_title(before, now)}: {counts or 'nothing in common'}")
    if differing:
        lines += ["what is tested differs:", *(f"  {change}" for change in sorted(differing))]
    facts = [*_sides(before, now), *(sorted(differing) or ["what is tested is the same on both sides"]), *gone]
    remarks = {change.note for change in changes}
    if len(changes) > 1 and len(remarks) == 1:  # one sentence for all of them
        facts += filter(None, remarks)
        changes = [replace(change, note="") for change in changes]
        notes = list(filter(None, remarks)) or notes
    return ComparedSides(
        compared(_title(before, now), facts, changes),
        tuple(printable(line) for line in [*lines, *notes, *gone]),
        verdicts[Verdict.REGRESSED] > 0,
    )


def _in_order(case: str) -> list[tuple[int, str]]:
    """Returns a sort key that puts 64 before 1500."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", case)]


def _title(before: Baseline, now: Baseline) -> str:
    """Returns the title with the two sides. A run is named by its directory without the path, if these names differ."""
    long, short_names = (now.name, before.name), (_short(now), _short(before))
    new, old = long if short_names[0] == short_names[1] else short_names
    return f"{new} against {old}"


def _short(side: Baseline) -> str:
    if not side.is_run:
        return side.title
    path = PurePath(side.name)
    return (path.parent if path.suffix else path).name or side.name


def _sides(before: Baseline, now: Baseline) -> list[str]:
    """Returns a sentence for each side: its name, its versions of switches, and when it was measured."""
    return [_side("before", before), _side("now", now)]


def _side(role: str, side: Baseline) -> str:
    versions = sorted({f"{entry.switch} {version}" for entry in side.entries if (version := _version(entry))})
    days = sorted({entry.measured[:10] for entry in side.entries})
    when = f", measured {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "") if days else ""
    return f"{role}: {side.name}{when}" + (f", {', '.join(versions)}" if versions else "")


def _version(entry: Entry) -> str:
    switch = entry.treatment.get("switch")
    return str(switch.get("version") or "") if isinstance(switch, Mapping) else ""


def _changes(entry: Entry, comparison: BaselineComparison) -> list[Change]:
    """Returns the changes of a case; one that could not be compared has a verdict and a reason only."""
    if comparison.findings:
        return [of_finding(entry.case, finding) for finding in comparison.findings]
    name = MAIN[entry.dimension]
    figure = entry.figures.get(name)
    reason = comparison.incomparable or comparison.missing or ""
    return [Change(entry.case, name, _verdict(comparison), now=figure.value if figure else None, note=reason)]


def _verdict(comparison: BaselineComparison) -> str:
    if comparison.missing is not None:
        return Verdict.NO_BASELINE
    if comparison.incomparable is not None:
        return Verdict.INCOMPARABLE
    return min((finding.verdict for finding in comparison.findings), key=ORDER.index, default=Verdict.INCONCLUSIVE)
