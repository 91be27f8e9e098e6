# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the page around pytest-html's table: the first screen, the charts' places, tables, and data. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.display.case_names import host_legend, hosts_apart, value_text
from pytest_icbench.model.verdict import NOTABLE, Verdict
from pytest_icbench.report import headline, overview
from pytest_icbench.report.answer import answer
from pytest_icbench.report.figure import published
from pytest_icbench.report.html.data import page_data
from pytest_icbench.report.html.page import Page
from pytest_icbench.report.html.parts import Link, chart_script, folded, missing_note, resource, table, text
from pytest_icbench.report.reported_intervals import deciding
from pytest_icbench.wording import counted

#: The page's scripts, in the order in which they need each other.
_SCRIPTS = ("charts.js", "cases.js", "page.js")
#: The most tests that the list of a reason names.
_MOST_NAMED = 200


def summary(page: Page) -> str:
    """Returns the part above pytest-html's counts: the first screen."""
    facts = [*headline.facts(page.results, page.runs), *host_legend(page.results)]
    parts = [
        f"<style>{resource('page.css')}{_verdict_colours()}</style>",
        f'<div id="ic-head"><p class="ic-dim">{" · ".join(map(text, facts))}</p></div>',
        _section("ic-answer", "Answer", _tiles(page) + _warnings(page) + _sentences(page)),
        '<div id="ic-first"></div>',
        _notable(page),
        _rankings(page),
    ]
    return "\n".join(part for part in parts if part)


def body(page: Page) -> str:
    """Returns the part below the counts: charts, the filter, one case, what was not measured, data and scripts."""
    sources = f'<p class="ic-dim" id="ic-sources">{" · ".join(map(text, page.sources))}</p>' if page.sources else ""
    scripts = "\n".join(f"<script>{resource(name)}</script>" for name in _SCRIPTS)
    return f"""
{missing_note()}
<noscript><p>Charts and rows need JavaScript; results.jsonl, next to this page, has all data.</p></noscript>
<div id="ic-figures"></div>
<section id="ic-cases" aria-labelledby="ic-cases-head">
<h2 id="ic-cases-head">Cases ({len(page.results):,})</h2>
<div class="ic-controls"><label for="ic-filter">Show only cases with</label>
<input id="ic-filter" type="search" placeholder="ovs 64B {Verdict.PASS}" autocomplete="off">
<span id="ic-count" role="status"></span></div>
<div class="ic-scroll" tabindex="0" role="group" aria-label="All cases"><table class="ic" id="ic-table"></table></div>
<details id="ic-tests"><summary>Tests, with their output and details</summary></details>
</section>
<section id="ic-one-case" class="ic-card" tabindex="-1" aria-labelledby="ic-case-head">
<h2 id="ic-case-head">One case</h2>
<div class="ic-controls"><label for="ic-case">Case</label> <select id="ic-case"></select></div>
<div id="ic-case-body"></div>
</section>
{_skips(page)}
{_statements(page)}
{sources}
<script type="application/json" id="ic-data">{page_data(page)}</script>
<script>{chart_script()}</script>
{scripts}
"""


def _verdict_colours() -> str:
    return "".join(f".ic-{verdict} {{ color: var(--ic-{verdict.colour}); }}\n" for verdict in Verdict)


def _tiles(page: Page) -> str:
    items = []
    for tile in headline.tiles(page.results, page.skipped, page.failed):
        detail = f"{': ' if tile.name else ' '}<span class=ic-detail>{text(tile.detail)}</span>" if tile.detail else ""
        inner = f'<b style="color: var(--ic-{tile.colour})">{text(tile.number)}</b> {text(tile.name)}{detail}'
        link = f'<a href="#{tile.target}">{inner}</a>' if tile.target else inner
        items.append(f"<li>{link}</li>")
    return f'<ul class="ic-tiles" aria-label="Verdicts">{"".join(items)}</ul>'


def _warnings(page: Page) -> str:
    warnings = headline.warnings(page.results)
    return f'<p class="ic-warning" role="note">{" ".join(map(text, warnings))}</p>' if warnings else ""


def _sentences(page: Page) -> str:
    items = []
    for sentence in answer(deciding(page.results)):
        colour = f" class=ic-{sentence.verdict}" if sentence.verdict else ""
        items.append(f"<li><b{colour}>{text(sentence.lead)}</b> {text(sentence.text)}</li>")
    if items:
        return f'<ul class="ic-sentences">{"".join(items)}</ul>'
    return "" if any(result.is_number for result in page.results) else "<p>No case gave a number.</p>"


def _notable(page: Page) -> str:
    """Returns a table of the tests that failed without a verdict, and of the notable verdicts, the worst first."""
    notable = [place for place, result in enumerate(page.results) if result.verdict in NOTABLE]
    notable.sort(key=lambda place: NOTABLE.index(str(page.results[place].verdict)))
    rows: list[tuple[str, ...]] = [
        ("failed", test, why) for test, why in overview.failed_otherwise(page.failed, page.results)
    ]
    for place in notable:
        result = page.results[place]
        verdict = f"{result.verdict}{', waived' if result.waiver else ''}"
        evidence = result.evidence.splitlines()[:1] if result.evidence and not result.is_number else []
        why = ", ".join(filter(None, [(result.reason or "").removeprefix(f"{result.case}: "), *evidence]))
        rows.append((verdict, Link(f"{result.case}, {result.dimension}", page.anchors[place]), why))
    return _section("ic-notable", "Needs attention", folded(("Verdict", "Case", "Why"), rows)) if rows else ""


def _section(name: str, heading: str, content: str) -> str:
    head = f'<h2 id="{name}-head">{text(heading)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-head">{head}{content}</section>'


def _rankings(page: Page) -> str:
    """Returns who wins each comparison, folded: the first ones are drawn on the first screen."""
    rankings = overview.rankings(deciding(page.results))
    if len(rankings) < 2:
        return ""
    rows = [(ranking.question, ranking.winner, ranking.ranks[0], ranking.lead) for ranking in rankings]
    shown = table(("Comparison", "Fastest", "Best value", "Lead, or who may be faster"), rows)
    return (
        f"<details class=ic-rankings><summary>Who wins each of {len(rankings)} comparisons</summary>{shown}</details>"
    )


def _skips(page: Page) -> str:
    skips = overview.skips(page.skipped)
    if not skips:
        return ""
    items = []
    for reason, tests in skips:
        names = "".join(f"<li>{text(test)}</li>" for test in tests[:_MOST_NAMED])
        more = f"<li>and {len(tests) - _MOST_NAMED} more</li>" if len(tests) > _MOST_NAMED else ""
        count = counted(len(tests), "test")
        items.append(f"<details><summary>{count}: {text(reason)}</summary><ul>{names}{more}</ul></details>")
    return _section("ic-skipped", f"Not measured ({len(page.skipped):,})", "".join(items))


def _statements(page: Page) -> str:
    rows: list[Sequence[str]] = []
    for result, anchor in zip(hosts_apart(page.results), page.anchors, strict=True):
        case = Link(result.case + (f" ({result.host})" if result.host else ""), anchor)
        for publication in published.stated(result):
            measured = f"{value} Mpps" if (value := value_text(result, "{:.4g}".format)) else ""
            rows.append((publication.row, case, measured, f"{publication.value / 1e6:.4g} Mpps", publication.source))
    statements = [(row, statement, source) for row, statement, source in published.statements(page.results)]
    if not rows and not statements:
        return ""
    heads = ("Row", "Case", "Measured here", "Published, other hardware", "Source")
    value_table = table(heads, rows[:100]) if rows else ""
    statement_table = table(("Row", "Stated about other hardware", "Source"), statements) if statements else ""
    origin = "From the same experiments on other hardware, with other versions: for orientation, not a limit."
    content = f"<p>{origin}</p>{value_table}{statement_table}"
    return _section("ic-published", "Published values", content)
