# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of two runs or baselines, as lines of at most 100 columns. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_icbench.gate.against import BaselineComparison, Comparer
from pytest_icbench.gate.entry import Baseline, Entry
from pytest_icbench.gate.margins import MAIN
from pytest_icbench.gate.thresholds import Thresholds
from pytest_icbench.model import circumstances
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.verdict import ORDER, Verdict
from pytest_icbench.store.side import ComparisonSource
from pytest_icbench.wording import plain_name, printable, quantity

WIDTH = 100
_HEADS = ("case", "figure", "before", "now", "change", "interval", "verdict")


def compare_sides(
    before: ComparisonSource,
    now: ComparisonSource,
    thresholds: Thresholds,
    patterns: Sequence[str] = circumstances.DEFAULT,
) -> tuple[list[str], bool]:
    """Compares two sides.

    Args:
        patterns: facts that have to be the same.

    Returns:
        The table with the differences in what was tested and other notes; and whether a case REGRESSED.
    """
    comparer = Comparer(Baseline(before.name, before.entries), patterns)
    rows: list[tuple[str, ...]] = []
    verdicts: Counter[str] = Counter()
    changes: Counter[str] = Counter()
    notes: list[str] = []
    for entry in sorted(now.entries, key=lambda entry: entry.key):
        comparison = comparer.compare_entry(entry, thresholds.margins(entry.case))
        verdict = _verdict(comparison)
        verdicts[verdict] += 1
        if verdict != Verdict.NO_BASELINE:
            changes.update(
                str(difference)
                for difference in comparison.treatment
                if not difference.fact.startswith("treatment.cpus")
            )
        notes += [f"{entry.case}: {note}" for note in (comparison.incomparable, *comparison.warnings) if note]
        notes += [
            f"{entry.case}: {finding.name}: {finding.outlook()}" for finding in comparison.findings if finding.outlook()
        ]
        rows += _rows(entry, comparison)
    seen = {entry.about for entry in now.entries}
    gone = sorted({entry.case for entry in before.entries if entry.about not in seen})
    lines = [*_table(rows), ""] if rows else []
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ORDER if verdicts[verdict])
    lines.append(f"{now.name} now against {before.name} before: {counts or 'nothing in common'}")
    if changes:
        lines += ["what is tested differs (here: now, there: before):", *(f"  {change}" for change in sorted(changes))]
    lines += notes
    lines += [f"only in {before.name}: {case}" for case in gone]
    return [printable(line) for line in lines], verdicts[Verdict.REGRESSED] > 0


def _verdict(comparison: BaselineComparison) -> str:
    if comparison.missing is not None:
        return Verdict.NO_BASELINE
    if comparison.incomparable is not None:
        return Verdict.INCOMPARABLE
    return min((finding.verdict for finding in comparison.findings), key=ORDER.index, default=Verdict.INCONCLUSIVE)


def _rows(entry: Entry, comparison: BaselineComparison) -> list[tuple[str, ...]]:
    if not comparison.findings:
        name = MAIN[entry.dimension]
        figure = entry.figures.get(name)
        now = quantity(name, figure.value) if figure else ""
        return [(entry.case, plain_name(name), "", now, "", "", _verdict(comparison))]
    return [(entry.case, *_cells(finding)) for finding in comparison.findings]


def _cells(finding: Finding) -> tuple[str, ...]:
    before, now = (
        "" if value is None else quantity(finding.name, value) for value in (finding.baseline_value, finding.value)
    )
    interval = ""
    if finding.ratio_low is not None and finding.ratio_high is not None:
        interval = f"{_change(finding.ratio_low)}..{_change(finding.ratio_high)}"
    change = _change(finding.ratio) + " %" if finding.ratio is not None else ""
    return plain_name(finding.name), before, now, change, interval, finding.verdict


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f}"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    texts = [_HEADS, *rows]
    widths = [max(len(row[place]) for row in texts) for place in range(len(_HEADS))]
    widths[0] = max(min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(_HEADS) - 1)), 12)
    lines = []
    for row in texts:
        cells = [_middle(row[0], widths[0]).ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [text.rjust(width) for text, width in zip(row[2:6], widths[2:6], strict=True)]
        lines.append("  ".join([*cells, row[6]]).rstrip())
    return lines


def _middle(text: str, width: int) -> str:
    head = (width - 1) // 2
    return text if len(text) <= width else text[:head] + "…" + text[len(text) - (width - 1 - head) :]
