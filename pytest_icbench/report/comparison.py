# SPDX-License-Identifier: BSD-3-Clause
"""Two runs or baselines beside each other, as lines of at most 100 columns. Pure."""

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
from pytest_icbench.wording import printable, show

WIDTH = 100
_HEADS = ("case", "figure", "before", "now", "change", "interval", "verdict")


def compare_sides(
    before: ComparisonSource,
    now: ComparisonSource,
    thresholds: Thresholds,
    patterns: Sequence[str] = circumstances.DEFAULT,
) -> tuple[list[str], bool]:
    """The table of now against before, what differs in what was tested, and whether a case REGRESSED."""
    comparer = Comparer(Baseline(before.name, before.entries), patterns)
    rows: list[tuple[str, ...]] = []
    verdicts: Counter[str] = Counter()
    changes: Counter[str] = Counter()
    notes: list[str] = []
    for entry in sorted(now.entries, key=lambda each: each.key):
        found = comparer.compare_entry(entry, thresholds.margins(entry.case))
        verdict = _verdict(found)
        verdicts[verdict] += 1
        if verdict != Verdict.NO_BASELINE:
            changes.update(str(each) for each in found.treatment if not each.fact.startswith("treatment.cpus"))
        notes += [f"{entry.case}: {note}" for note in (found.incomparable, *found.warnings) if note]
        notes += [f"{entry.case}: {each.name}: {each.outlook()}" for each in found.findings if each.outlook()]
        rows += _rows(entry, found)
    seen = {entry.about for entry in now.entries}
    gone = sorted({entry.case for entry in before.entries if entry.about not in seen})
    lines = [*_table(rows), ""] if rows else []
    counts = ", ".join(f"{verdicts[one]} {one}" for one in ORDER if verdicts[one])
    lines.append(f"{now.name} now against {before.name} before: {counts or 'nothing in common'}")
    if changes:
        lines += ["what is tested differs (here: now, there: before):", *(f"  {each}" for each in sorted(changes))]
    lines += notes
    lines += [f"only in {before.name}: {case}" for case in gone]
    return [printable(line) for line in lines], verdicts[Verdict.REGRESSED] > 0


def _verdict(found: BaselineComparison) -> str:
    if found.missing is not None:
        return Verdict.NO_BASELINE
    if found.incomparable is not None:
        return Verdict.INCOMPARABLE
    return min((each.verdict for each in found.findings), key=ORDER.index, default=Verdict.INCONCLUSIVE)


def _rows(entry: Entry, found: BaselineComparison) -> list[tuple[str, ...]]:
    if not found.findings:
        name = MAIN[entry.dimension]
        figure = entry.figures.get(name)
        now = show(figure.value) if figure else ""
        return [(entry.case, name, "", now, "", "", _verdict(found))]
    return [(entry.case, *_cells(each)) for each in found.findings]


def _cells(found: Finding) -> tuple[str, ...]:
    before, now = (show(value) if value is not None else "" for value in (found.baseline_value, found.value))
    interval = ""
    if found.ratio_low is not None and found.ratio_high is not None:
        interval = f"{_change(found.ratio_low)}..{_change(found.ratio_high)}"
    change = _change(found.ratio) + " %" if found.ratio is not None else ""
    return found.name, before, now, change, interval, found.verdict


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
