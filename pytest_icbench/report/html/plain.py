# SPDX-License-Identifier: BSD-3-Clause
"""A page of charts without tests: one offline file, with the report's style. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report.figure import theme, vega
from pytest_icbench.report.figure.figure import Figure
from pytest_icbench.wording import printable

_SCRIPT = """
const page = JSON.parse(document.getElementById("ic-data").textContent);
async function draw(chart) {
  const place = document.getElementById(chart.id);
  const rows = chart.rows.map((row) => Object.fromEntries(chart.columns.map(([name], at) => [name, row[at]])));
  const width = Math.max(place.clientWidth, 240);
  const spec = Object.assign({}, chart.spec, { data: { values: rows }, width: width, config: page.config,
    autosize: { type: "fit-x", contains: "padding" } });
  const options = { mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, logLevel: 1 };
  if (chart.view) chart.view.finalize();
  chart.view = await window.icbenchVega.embed(place, spec, options);
  chart.width = width;
}
async function drawAll() {
  for (const chart of page.charts) await draw(chart);
  document.documentElement.dataset.icReady = "yes";
}
let resizing = 0;
function resized() {
  clearTimeout(resizing);
  resizing = setTimeout(() => page.charts
    .filter((chart) => Math.abs(document.getElementById(chart.id).clientWidth - chart.width) > 8).forEach(draw), 150);
}
if (window.icbenchVega) { drawAll(); window.addEventListener("resize", resized); }
"""


class PlainSection(NamedTuple):
    """A section of a page: its anchor, its heading, markup below it, and its charts."""

    anchor: str
    heading: str
    markup: str
    charts: Sequence[Figure]


def text(value: object) -> str:
    """Escapes a text for markup and replaces its control characters."""
    return escape(printable(str(value)))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table. A narrow screen stacks its cells with their heads, so roles mark it as a table."""
    head = "".join(f'<th scope="col" role="columnheader">{text(name)}</th>' for name in heads)
    body = "".join(
        '<tr role="row">'
        + "".join(
            f'<td role="cell" data-head="{text(name)}">{text(cell)}</td>' for name, cell in zip(heads, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="ic-scroll" tabindex="0" role="region" aria-label="{text(", ".join(heads))}">'
        f'<table class="ic ic-stack" role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def plain_page(title: str, lead: str, sections: Sequence[PlainSection]) -> str:
    """Returns a page.

    Args:
        title: its heading, as text.
        lead: markup below the heading.
    """
    parts, charts = [], []
    for section in sections:
        boxes = []
        for chart in section.charts:
            id_ = f"{section.anchor}-{chart.id}"
            label = text(f"{chart.title}. {chart.text}")
            boxes.append(
                f'<figure class="ic-figure ic-card"><figcaption><b>{text(chart.title)}</b></figcaption>'
                f'<div class="ic-plot" id="{id_}" role="img" aria-label="{label}"></div>'
                f'<p class="ic-dim">{text(chart.text)}</p></figure>'
            )
            charts.append(chart.to_dict() | {"id": id_})
        parts.append(
            f'<section id="{section.anchor}" aria-labelledby="{section.anchor}-head">'
            f'<h2 id="{section.anchor}-head">{text(section.heading)}</h2>{section.markup}'
            f'<div class="ic-figures">{"".join(boxes)}</div></section>'
        )
    data = json.dumps({"config": theme.CONFIG, "charts": charts}, allow_nan=False).replace("<", "\\u003c")
    style = (files("pytest_icbench.report.html") / "page.css").read_text(encoding="utf-8")
    verdicts = "".join(f".ic-{verdict} {{ color: var(--ic-{verdict.colour}); }}" for verdict in Verdict)
    missing = "" if vega.available() else f'<p role="note">{text(vega.MISSING)}</p>'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}{verdicts} figure {{ margin: 0; }}</style></head>"
        f"<body><main><h1>{text(title)}</h1>{missing}{lead}{''.join(parts)}</main>"
        f'<script type="application/json" id="ic-data">{data}</script><script>{vega.script()}</script>'
        f"<script>{_SCRIPT}</script></body></html>\n"
    )
