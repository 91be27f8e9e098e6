# SPDX-License-Identifier: BSD-3-Clause
"""The page of ``icbench compare``: the changes as charts and as a table, the worst first. Pure."""

from __future__ import annotations

from dataclasses import replace

from pytest_icbench.report.changes import Comparison
from pytest_icbench.report.figure.forest import forest_figures
from pytest_icbench.report.html.parts import table, text
from pytest_icbench.report.html.plain import PlainSection, plain_page

#: Number of rows of the table above which the rest is folded.
MOST_ROWS = 200


def compare_page(comparison: Comparison) -> str:
    """Returns the page of a comparison."""
    facts = "".join(f"<li>{text(fact)}</li>" for fact in comparison.facts)
    counts = comparison.counts or "nothing in common"
    lead = f'<p><b>{text(counts)}</b></p><ul class="ic-dim">{facts}</ul>'
    heads, rows = comparison.table()
    every = table(heads, rows[:MOST_ROWS]) if rows else ""
    if rest := rows[MOST_ROWS:]:
        every += f"<details><summary>{len(rest)} more</summary>{table(heads, rest)}</details>"
    charts = forest_figures([replace(comparison, title="", facts=())])  # the page says them once
    sections = [
        PlainSection("changes", "Changes, the worst first", "", charts),
        PlainSection("cases", "All cases", every, ()),
    ]
    return plain_page(comparison.title, lead, sections)
