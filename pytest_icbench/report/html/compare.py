# SPDX-License-Identifier: BSD-3-Clause
"""The page of ``icbench compare``: the changes as charts and as a table, the worst first. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_icbench.display.chart import Figure
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report.figure.forest import forest_figures
from pytest_icbench.report.html.data import Charts, chart_settings
from pytest_icbench.report.html.parts import chart_script, missing_note, resource, table, text
from pytest_icbench.report.value_changes import Comparison

_SCRIPT = """
const page = JSON.parse(document.getElementById("ic-data").textContent);
icCharts.start(page);
for (const section of page.sections) {
  document.getElementById(`ic-place-${section.name}`).append(icCharts.addSection(section, section.charts.length));
}
icCharts.drawRest().then(() => { document.documentElement.dataset.icReady = "yes"; });
window.addEventListener("beforeprint", icCharts.drawRest);
"""


class PlainSection(NamedTuple):
    """A section of a page: its anchor, its heading, markup below it, and its charts."""

    anchor: str
    heading: str
    markup: str
    charts: Sequence[Figure]


def plain_page(title: str, lead: str, sections: Sequence[PlainSection]) -> str:
    """Returns a page.

    Args:
        title: its heading, as text.
        lead: markup below the heading.
    """
    charts, data, parts = Charts(), [], []
    for section in sections:
        name = section.anchor
        drawn = [replace(chart, id=f"{name}-{chart.id}") for chart in section.charts]
        heading = f'<h2 id="{name}-head">{text(section.heading)}</h2>{section.markup}'
        parts.append(
            f'<section id="{name}" aria-labelledby="{name}-head">{heading}<div id="ic-place-{name}"></div></section>'
        )
        if drawn:
            facts = {"name": name, "heading": "", "place": "charts"}
            data.append({**facts, "charts": list(map(charts.add, drawn))})
    page = {**chart_settings(()), "sections": data, "specs": charts.specs}
    json_data = json.dumps(page, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    verdicts = "".join(f".ic-{verdict} {{ color: var(--ic-{verdict.colour}); }}" for verdict in Verdict)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{resource('page.css')}{verdicts} main {{ overflow-wrap: anywhere; }}"
        " main td, main th { overflow-wrap: break-word; }</style></head>"
        f"<body><main><h1>{text(title)}</h1>{missing_note()}{lead}{''.join(parts)}</main>"
        f'<script type="application/json" id="ic-data">{json_data}</script><script>{chart_script()}</script>'
        f"<script>{resource('charts.js')}</script><script>{_SCRIPT}</script></body></html>\n"
    )


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
