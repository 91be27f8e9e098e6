# SPDX-License-Identifier: BSD-3-Clause
"""The report as pytest-html shows it: a summary above its table, figures, and lines in the rows. Self-contained.

All text from outside (ids, versions, reasons, logs) passes ``text`` on its way into markup, or stands in JSON in which
``<`` is escaped.
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
from pytest_icbench.report.axes import host_legend, hosts_apart, is_latency, main_figure, main_unit, number
from pytest_icbench.report.columns import In, columns
from pytest_icbench.report.figure import published, theme, vega
from pytest_icbench.report.figure.figure import Figure
from pytest_icbench.report.figure.figures import KINDS, all_series, rate_figures
from pytest_icbench.report.figure.latency import latency_figures
from pytest_icbench.report.figure.series import Windows, curve_of, for_page
from pytest_icbench.report.figure.windows import WINDOWS
from pytest_icbench.report.html.facts import facts_of
from pytest_icbench.wording import printable

#: Rows of a table of the summary before the rest folds away.
MOST_ROWS = 20


def text(value: object) -> str:
    """Any text as markup that shows it: escaped, control characters replaced."""
    return escape(printable(str(value)))


@dataclass
class Page:
    """What a page shows. ``results``, ``tests`` and ``windows`` go together: one entry a result.

    Attributes:
        tests: ids of the tests that the results belong to.
        repeats: commands that repeat a test, by its id.
        skipped: ids of skipped tests with their reasons.
        taken: from which run a result was taken, by place.
        history: further figures.
        sources: where the results are from, told in the summary.
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
        self._places.setdefault(test, []).append(len(self.results))
        self.results.append(result)
        self.tests.append(test)
        self.windows.append(windows)

    def __bool__(self) -> bool:
        return bool(self.results or self.skipped)

    def places_of(self, test: str) -> list[int]:
        """Places of a test's results."""
        return self._places.get(test, [])


def add_history(page: Page, file: Path) -> None:
    """Figures of the history of the page's cases. What goes wrong is told on the page: the report is worth more."""
    from pytest_icbench.report.figure.history import history_of

    try:
        page.history, troubles = history_of(file, {result.case for result in page.results})
        page.sources += troubles
    except UsageError as error:
        page.sources.append(f"no history: {error}")


def figures(page: Page) -> list[Figure]:
    """All figures of a page, in the order of ``KINDS``."""
    results = hosts_apart(page.results)
    order = all_series(results)
    curves = {place: curve_of(result) for place, result in enumerate(results) if is_latency(result)}
    return [*rate_figures(results, order), *latency_figures(results, order, curves), *page.history]


def _word(verdict: str) -> str:
    """Of a verdict as a class: an attribute without quotes."""
    return "".join(char for char in verdict if char.isascii() and (char.isalnum() or char == "_"))


def _verdict_colours() -> str:
    return "".join(f".ic-{verdict} {{ color: var(--ic-{verdict.colour}); }}\n" for verdict in Verdict)


def row_lines(page: Page, places: Sequence[int]) -> str:
    """The results of a test as lines below its id."""
    lines = []
    several = len({page.results[place].case for place in places}) > 1
    for place in places:
        result = page.results[place]
        verdict = result.verdict or "not judged"
        parts = [f"<b class=ic-{_word(verdict)}>{text(verdict)}</b>"]
        parts += [text(said) for column in columns(In.PAGE) if (said := column.say(result))]
        if place in page.taken:
            parts.append(f"taken from {text(page.taken[place])}")
        # Without quotes: pytest-html keeps rows in an attribute, where each takes five bytes.
        button = f"<button class=ic-show data-place={place}>windows</button>"
        of = f" of {text(result.case)}" if several else ""
        lines.append(f"<li>{text(result.dimension)}{of}: {' · '.join(parts)} {button}</li>")
    return f"<ul class=ic-lines>{''.join(lines)}</ul>"


def summary(page: Page) -> str:
    """The part above pytest-html's counts: what won, verdicts, skips, what publications state."""
    parts = [f"<style>{_resource('page.css')}{_verdict_colours()}</style>"]
    for told in (page.sources, host_legend(page.results)):
        if told:
            parts.append(f'<p class="ic-dim">{" · ".join(text(each) for each in told)}</p>')
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
    """The cases that are not as they should be, the worst first, and why."""
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


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """On a narrow screen cells stand below each other, each with its head; roles say that it is a table still."""
    head = "".join(f'<th scope="col" role="columnheader">{text(each)}</th>' for each in heads)
    body = "".join(f'<tr role="row">{_cells(heads, row)}</tr>' for row in rows)
    return (
        f'<div class="ic-scroll" tabindex="0" role="region" aria-label="{text(", ".join(heads))}">'
        f'<table class="ic ic-stack" role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _cells(heads: Sequence[str], row: Sequence[str]) -> str:
    pairs = zip(heads, row, strict=True)
    return "".join(f'<td role="cell" data-head="{text(head)}">{text(cell)}</td>' for head, cell in pairs)


def _folded(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose rows beyond a number are folded away."""
    more, rest = "", rows[MOST_ROWS:]
    if rest:
        more = f"<details><summary>{len(rest)} more</summary>{_table(heads, rest)}</details>"
    return _table(heads, rows[:MOST_ROWS]) + more


def _side_by_side(page: Page) -> str:
    """What is decided of each candidate, and what that stands on; empty without candidates."""
    told = []
    for each in versions.candidates(page.results):
        told.append(f"<p><b class=ic-{_word(each.decision)}>{text(each.sentence)}</b></p>")
        rows = [
            (
                result.case,
                versions.decision_of(result),
                ", ".join(filter(None, versions.comparison_of(result))),
            )
            for result in each.results
        ]
        told.append(_folded(("Case", "Decision", "Beside what there is (interval)"), rows))
    if not told:
        return ""
    told += [f"<p>{text(sentence)}</p>" for sentence in versions.error_rates(page.results)]
    return f'<section class="ic-card" aria-label="Side by side"><h3>Versions side by side</h3>{"".join(told)}</section>'


def _rankings(page: Page) -> str:
    found = overview.rankings(page.results)
    if not found:
        return ""
    heads = ("Of", "Best", "Figure (95 % interval; of a search its relevant bounds)", "By how much", "Limited by")
    rows = [(each.question, each.winner, each.figure, each.lead, each.limit) for each in found]
    shown = _folded(heads, rows)
    return f'<section class="ic-card" aria-label="What won"><h3>What won, and what limited it</h3>{shown}</section>'


def _statements(page: Page) -> str:
    rows = []
    for result in hosts_apart(page.results):
        case = result.case + (f" ({result.host})" if result.host else "")
        for each in published.stated(result):
            pps = number(result, result.throughput_pps)
            measured = "" if pps is None else f"{pps / 1e6:.4g} Mpps"
            rows.append((each.row, case, measured, f"{each.value / 1e6:.4g} Mpps", each.source))
    said = [(row, statement, source) for row, statement, source in published.statements(page.results)]
    if not rows and not said:
        return ""
    shown = _table(("Row", "Case", "Measured here", "Published, other hardware", "Source"), rows[:100]) if rows else ""
    told = _table(("Row", "Stated about other hardware", "Source"), said) if said else ""
    return (
        '<section class="ic-card" aria-label="Published figures"><h3>Published figures of the same experiments</h3>'
        f"<p>Other hardware, other versions: orientation, not a limit.</p>{shown}{told}</section>"
    )


def _skips(page: Page) -> str:
    found = overview.skips(page.skipped)
    if not found:
        return ""
    items = []
    for reason, tests in found:
        names = "".join(f"<li>{text(test)}</li>" for test in tests[:200])
        more = f"<li>and {len(tests) - 200} more</li>" if len(tests) > 200 else ""
        count = f"{len(tests)} test{'s' if len(tests) > 1 else ''}"
        items.append(f"<details><summary>{count}: {text(reason)}</summary><ul>{names}{more}</ul></details>")
    return f'<section class="ic-card" aria-label="Skipped"><h3>Skipped, and why</h3>{"".join(items)}</section>'


def body(page: Page) -> str:
    """The part below the counts: figures, the filter, one case, data and scripts."""
    drawn = figures(page)
    nothing = "" if vega.available() else f'<p role="note">{text(vega.MISSING)}</p>'
    return f"""
<section aria-labelledby="ic-figures-head">
<h2 id="ic-figures-head">Figures</h2>
{nothing}
<noscript><p>Figures and rows need JavaScript; results.jsonl beside this page has all data.</p></noscript>
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
<script type="application/json" id="ic-data">{_json(_data(page, drawn))}</script>
<script>{vega.script()}</script>
<script>{_resource("page.js")}</script>
"""


def _data(page: Page, drawn: Sequence[Figure]) -> dict[str, Any]:
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
            }
        )
    return {
        "config": theme.CONFIG,
        "kinds": list(KINDS.items()),
        "figures": [figure.to_dict() for figure in drawn],
        "windows": {"spec": WINDOWS.spec, "columns": [[column.name, column.title] for column in WINDOWS.columns]},
        "cases": cases,
    }


def _band_text(result: Result) -> str:
    band = "reaches to the relevant upper bound" if remarks.is_search(result) else "is its interval"
    return f"The line across is the figure, the band {band}."


def _json(data: Mapping[str, Any]) -> str:
    """JSON within a script element: neither its end nor a comment can be written in it."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _resource(name: str) -> str:
    return (files("pytest_icbench.report.html") / name).read_text(encoding="utf-8")
