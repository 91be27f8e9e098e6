# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the report within pytest-html's page: a summary above its table, charts, and lines in the rows.

All foreign text (ids, versions, reasons, logs) passes ``text`` on its way into markup, or is in JSON in which ``<`` is
escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.result import Result
from pytest_icbench.model.verdict import NOTABLE, Verdict
from pytest_icbench.report import overview, remarks, versions
from pytest_icbench.report.axes import host_legend, hosts_apart, main_figure, main_unit, number
from pytest_icbench.report.columns import In, columns
from pytest_icbench.report.figure import published, theme, vega
from pytest_icbench.report.figure.figure import Figure
from pytest_icbench.report.figure.registry import Content, case_charts, section_charts
from pytest_icbench.report.figure.series import Windows, for_page
from pytest_icbench.report.figure.windows import WINDOWS
from pytest_icbench.report.html.facts import facts_of
from pytest_icbench.wording import printable

#: Number of rows of a table of the summary above which the rest is folded.
MOST_ROWS = 20

#: A cell of a table: one text, or several lines.
_Cell = str | tuple[str, ...]


def text(value: object) -> str:
    """Escapes a text for markup and replaces its control characters."""
    return escape(printable(str(value)))


@dataclass
class Page:
    """The content of a page. ``results``, ``tests`` and ``windows`` have one entry for each result.

    Attributes:
        tests: ids of the tests that the results belong to.
        repeats: the command that repeats a test, by the test's id.
        skipped: ids of skipped tests with their reasons.
        taken: the run from which a result was taken, by the result's index.
        history: charts of the history.
        sources: sentences on the origin of the results, for the summary.
    """

    results: list[Result] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    windows: list[Windows | None] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    repeats: dict[str, str] = field(default_factory=dict)
    taken: dict[int, str] = field(default_factory=dict)
    history: list[Figure] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    _places: dict[str, list[int]] = field(default_factory=dict)

    def add(self, test: str, result: Result, windows: Windows | None = None) -> None:
        """Adds a result of a test."""
        self._places.setdefault(test, []).append(len(self.results))
        self.results.append(result)
        self.tests.append(test)
        self.windows.append(windows)

    def __bool__(self) -> bool:
        return bool(self.results or self.skipped)

    def places_of(self, test: str) -> list[int]:
        """Returns the indices of a test's results."""
        return self._places.get(test, [])


def add_history(page: Page, file: Path) -> None:
    """Adds charts of the history of the page's cases. Errors are shown on the page and do not stop the report."""
    from pytest_icbench.report.figure.history import history_of

    try:
        page.history, troubles = history_of(file, {result.case for result in page.results})
        page.sources += troubles
    except UsageError as error:
        page.sources.append(f"no history: {error}")


def _word(verdict: str) -> str:
    """Returns a verdict as part of a class that needs no quotes."""
    return "".join(char for char in verdict if char.isascii() and (char.isalnum() or char == "_"))


def _verdict_colours() -> str:
    return "".join(f".ic-{verdict} {{ color: var(--ic-{verdict.colour}); }}\n" for verdict in Verdict)


def row_lines(page: Page, places: Sequence[int]) -> str:
    """Returns the results of a test as lines below its id."""
    lines = []
    several = len({page.results[place].case for place in places}) > 1
    for place in places:
        result = page.results[place]
        verdict = result.verdict or "not judged"
        parts = [f"<b class=ic-{_word(verdict)}>{text(verdict)}</b>"]
        parts += [text(phrase) for column in columns(In.PAGE) if (phrase := column.say(result))]
        if place in page.taken:
            parts.append(f"taken from {text(page.taken[place])}")
        # Without quotes: pytest-html keeps rows in an attribute, where each takes five bytes.
        button = f"<button class=ic-show data-place={place}>windows</button>"
        of = f" of {text(result.case)}" if several else ""
        lines.append(f"<li>{text(result.dimension)}{of}: {' · '.join(parts)} {button}</li>")
    return f"<ul class=ic-lines>{''.join(lines)}</ul>"


def summary(page: Page) -> str:
    """Returns the part above pytest-html's counts: verdicts, rankings, published values, skips."""
    parts = [f"<style>{_resource('page.css')}{_verdict_colours()}</style>"]
    for sentences in (page.sources, host_legend(page.results)):
        if sentences:
            parts.append(f'<p class="ic-dim">{" · ".join(map(text, sentences))}</p>')
    counted = " · ".join(
        f"<b class=ic-{_word(verdict)}>{count} {text(verdict)}</b>"
        for verdict, count in overview.verdicts(page.results)
    )
    parts.append(
        f'<section class="ic-card" aria-label="Verdicts"><h3>Verdicts</h3><p>{counted or "no result"}</p>'
        f"{_notable(page)}</section>"
    )
    parts += [_side_by_side(page), _rankings(page), _statements(page), _skips(page)]
    return "\n".join(part for part in parts if part)


def _notable(page: Page) -> str:
    """Returns a table of the notable verdicts, the worst first."""
    notable = [result for result in page.results if result.verdict in NOTABLE]
    notable.sort(key=lambda result: NOTABLE.index(str(result.verdict)))
    rows = [
        (
            f"{result.verdict}{', waived' if result.waiver else ''}",
            f"{result.case}, {result.dimension}",
            result.reason or "",
        )
        for result in notable
    ]
    return _folded(("Verdict", "Case", "Why"), rows) if rows else ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[_Cell]]) -> str:
    """Returns a table. A narrow screen stacks its cells with their heads, so roles mark it as a table."""
    head_cells = "".join(f'<th scope="col" role="columnheader">{text(head)}</th>' for head in heads)
    body = "".join(f'<tr role="row">{_cells(heads, row)}</tr>' for row in rows)
    return (
        f'<div class="ic-scroll" tabindex="0" role="region" aria-label="{text(", ".join(heads))}">'
        f'<table class="ic ic-stack" role="table"><thead role="rowgroup"><tr role="row">{head_cells}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _cells(heads: Sequence[str], row: Sequence[_Cell]) -> str:
    pairs = zip(heads, row, strict=True)
    return "".join(f'<td role="cell" data-head="{text(head)}">{_lines(cell)}</td>' for head, cell in pairs)


def _lines(cell: _Cell) -> str:
    return text(cell) if isinstance(cell, str) else f"<span>{'<br>'.join(map(text, cell))}</span>"


def _folded(heads: Sequence[str], rows: Sequence[Sequence[_Cell]]) -> str:
    """Returns a table whose rows after the first ``MOST_ROWS`` are folded."""
    more, rest = "", rows[MOST_ROWS:]
    if rest:
        more = f"<details><summary>{len(rest)} more</summary>{_table(heads, rest)}</details>"
    return _table(heads, rows[:MOST_ROWS]) + more


def _side_by_side(page: Page) -> str:
    """Returns the decision on each candidate with its cases; empty without candidates."""
    parts = []
    for candidate in versions.candidates(page.results):
        parts.append(f"<p><b class=ic-{_word(candidate.decision)}>{text(candidate.sentence)}</b></p>")
        rows = [
            (
                result.case,
                versions.decision_of(result),
                ", ".join(filter(None, versions.comparison_of(result))),
            )
            for result in candidate.results
        ]
        parts.append(_folded(("Case", "Decision", "Change against the base (interval)"), rows))
    if not parts:
        return ""
    parts += [f"<p>{text(sentence)}</p>" for sentence in versions.error_rates(page.results)]
    return (
        f'<section class="ic-card" aria-label="Side by side"><h3>Versions side by side</h3>{"".join(parts)}</section>'
    )


def _rankings(page: Page) -> str:
    rankings = overview.rankings(page.results)
    if not rankings:
        return ""
    heads = ("Comparison", "Best", "All paths (95 % interval; of a search its relevant bounds)", "Lead", "Limited by")
    rows = [(ranking.question, ranking.winner, ranking.ranks, ranking.lead, ranking.limits) for ranking in rankings]
    shown = _folded(heads, rows)
    return f'<section class="ic-card" aria-label="What won"><h3>What won, and what limited it</h3>{shown}</section>'


def _statements(page: Page) -> str:
    rows = []
    for result in hosts_apart(page.results):
        case = result.case + (f" ({result.host})" if result.host else "")
        for publication in published.stated(result):
            pps = number(result, result.throughput_pps)
            at_least = "≥ " if result.lower_bound else ""
            measured = "" if pps is None else f"{at_least}{pps / 1e6:.4g} Mpps"
            rows.append((publication.row, case, measured, f"{publication.value / 1e6:.4g} Mpps", publication.source))
    statements = [(row, statement, source) for row, statement, source in published.statements(page.results)]
    if not rows and not statements:
        return ""
    value_table = (
        _table(("Row", "Case", "Measured here", "Published, other hardware", "Source"), rows[:100]) if rows else ""
    )
    statement_table = _table(("Row", "Stated about other hardware", "Source"), statements) if statements else ""
    return (
        '<section class="ic-card" aria-label="Published values"><h3>Published values of the same experiments</h3>'
        f"<p>Other hardware, other versions: orientation, not a limit.</p>{value_table}{statement_table}</section>"
    )


def _skips(page: Page) -> str:
    skips = overview.skips(page.skipped)
    if not skips:
        return ""
    items = []
    for reason, tests in skips:
        names = "".join(f"<li>{text(test)}</li>" for test in tests[:200])
        more = f"<li>and {len(tests) - 200} more</li>" if len(tests) > 200 else ""
        count = f"{len(tests)} test{'s' if len(tests) > 1 else ''}"
        items.append(f"<details><summary>{count}: {text(reason)}</summary><ul>{names}{more}</ul></details>")
    return f'<section class="ic-card" aria-label="Skipped"><h3>Skipped, and why</h3>{"".join(items)}</section>'


def body(page: Page) -> str:
    """Returns the part below the counts: charts, the filter, one case, data and scripts."""
    nothing = "" if vega.available() else f'<p role="note">{text(vega.MISSING)}</p>'
    return f"""
<section aria-labelledby="ic-figures-head">
<h2 id="ic-figures-head">Charts</h2>
{nothing}
<noscript><p>Charts and rows need JavaScript; results.jsonl beside this page has all data.</p></noscript>
<div class="ic-controls"><label for="ic-filter">Show only cases with</label>
<input id="ic-filter" type="search" placeholder="ovs 64B {Verdict.PASS}" autocomplete="off">
<span id="ic-count" role="status"></span></div>
<div id="ic-figures"></div>
</section>
<section id="ic-one-case" class="ic-card" tabindex="-1" aria-labelledby="ic-case-head">
<h3 id="ic-case-head">One case: its windows over time</h3>
<div class="ic-controls"><label for="ic-case">Case</label> <select id="ic-case"></select></div>
<div id="ic-case-body"></div>
</section>
<script type="application/json" id="ic-data">{_json(_data(page))}</script>
<script>{vega.script()}</script>
<script>{_resource("page.js")}</script>
"""


def _data(page: Page) -> dict[str, Any]:
    charts = _Charts()
    sections = [
        {
            "name": section.name,
            "heading": section.heading,
            "place": section.place,
            "charts": list(map(charts.add, drawn)),
        }
        for section, drawn in section_charts(Content.of(page.results, page.history))
    ]
    thin = for_page(page.windows)
    cases = []
    for place, (test, result, windows) in enumerate(zip(page.tests, hosts_apart(page.results), thin, strict=True)):
        main = main_figure(result)
        value, low, high = (None, None, None) if main is None else (main.value, main.low, main.high)
        _, factor = main_unit(result)
        facts = facts_of(result, page.repeats.get(test))
        if place in page.taken:
            facts.insert(0, ("taken from", page.taken[place]))
        cases.append(
            {
                "test": printable(test.rpartition("::")[2]),
                "case": printable(result.case),
                "dimension": result.dimension,
                "verdict": result.verdict or "",
                "value": None if value is None else value * factor,
                "low": None if low is None else low * factor,
                "high": None if high is None else high * factor,
                "band": _band_text(result) if low is not None else "",
                "facts": [[name, printable(value)] for name, value in facts],
                "windows": None if windows is None else windows.to_dict(),
                "charts": list(map(charts.add, case_charts(result))),
            }
        )
    return {
        "config": theme.CONFIG,
        "sections": sections,
        "specs": charts.specs,
        "windows": {"spec": WINDOWS.spec, "columns": [[column.name, column.title] for column in WINDOWS.columns]},
        "cases": cases,
    }


class _Charts:
    """The charts of a page as JSON data; equal specifications are kept once.

    Attributes:
        specs: the specifications; a chart's ``spec`` is an index.
    """

    def __init__(self) -> None:
        self.specs: list[dict[str, Any]] = []
        self._places: dict[str, int] = {}

    def add(self, chart: Figure) -> dict[str, Any]:
        """Returns the data of a chart."""
        place = self._places.setdefault(json.dumps(chart.spec, sort_keys=True), len(self.specs))
        if place == len(self.specs):
            self.specs.append(chart.spec)
        return chart.to_dict() | {"spec": place}


def _band_text(result: Result) -> str:
    band = "reaches to the relevant upper bound" if remarks.is_search(result) else "is its interval"
    return f"The line across is the figure, the band {band}."


def _json(data: Mapping[str, Any]) -> str:
    """Returns JSON that is safe in a script element: it can contain neither the element's end nor a comment."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _resource(name: str) -> str:
    return (files("pytest_icbench.report.html") / name).read_text(encoding="utf-8")
