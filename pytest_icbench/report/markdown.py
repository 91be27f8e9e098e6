# SPDX-License-Identifier: BSD-3-Clause
"""A run in Markdown, for a CI's summary page or a comment on a merge request. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pytest_icbench.display.table import In
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import NOTABLE, ORDER, Verdict
from pytest_icbench.report import remarks
from pytest_icbench.report.columns import columns, judged, shown_verdict
from pytest_icbench.report.decisions import candidates, error_rates, power
from pytest_icbench.report.headline import warnings
from pytest_icbench.report.overview import failed_otherwise, in_common_states, rankings
from pytest_icbench.report.plain import with_plain
from pytest_icbench.report.reported_intervals import with_sessions
from pytest_icbench.report.value_changes import Comparison, changed
from pytest_icbench.wording import counted, grouped, printable

#: Ids of cases and tests that may stand in a code span as they are.
_PLAIN = re.compile(r"[\w:+.,/\[\]-]+", re.ASCII)
#: The most listed reasons of skips, and the most listed tests of a reason.
MOST_REASONS, MOST_TESTS = 50, 5

Escape = Callable[[str], str]


def code(name: str, escape: Escape) -> str:
    """Returns an id as a code span; a text that could end the span is escaped instead."""
    return f"`{name}`" if _PLAIN.fullmatch(name) else escape(name)


def host_line(results: Sequence[Result], escape: Escape) -> str:
    """Returns a line about the machine and the versions on it; several machines are counted."""
    if not results:
        return ""
    machines = {str(result.identity.get("machine")) for result in results}
    if len(machines) > 1:
        return f"{len(machines)} machines: results of different ones are not comparable"
    identity, treatment = results[0].identity, results[0].treatment
    parts = [str(identity.get("cpu_model") or ""), f"{identity['cpus']} CPUs" if identity.get("cpus") else ""]
    names = {"kernel": "Linux", "dpdk": "DPDK", "pytest_icbench": "pytest-icbench"}
    parts += [f"{name} {treatment[key]}" for key, name in names.items() if treatment.get(key)]
    switches: dict[str, str] = {}
    for result in results:
        switch = result.treatment.get("switch")
        version = switch.get("version") if isinstance(switch, dict) else None
        # A kernel path has the kernel's version, and a DPDK example has DPDK's.
        if version and version not in (treatment.get("kernel"), treatment.get("dpdk")):
            switches.setdefault(result.switch, str(version))
    parts += [f"{name} {version}" for name, version in switches.items()]
    parts += sorted({f"{result.placement} placement" for result in results if result.placement})
    return escape(printable(", ".join(filter(None, parts))))


def answer(results: Sequence[Result], escape: Escape) -> list[str]:
    """Returns a line for each traffic: the fastest path and its lead, or that it is undecided and why."""
    lines = []
    for ranking in rankings(results):
        if len(ranking.ranks) < 2:
            continue
        text = ", ".join(filter(None, (ranking.winner, ranking.lead)))
        lines.append(f"* {escape(ranking.question)}: **{escape(text)}** ({escape('; '.join(ranking.ranks))})")
    return lines


def skip_lines(skipped: Sequence[tuple[str, str]], escape: Escape) -> list[str]:
    """Returns a line for each reason, with the number of its tests and the first of them."""
    lines, reasons = [], grouped(skipped, lambda skip: skip[1])
    for reason, tests in list(reasons.items())[:MOST_REASONS]:
        named = ", ".join(code(test, escape) for test, _ in tests[:MOST_TESTS])
        more = f" and {len(tests) - MOST_TESTS} more" if len(tests) > MOST_TESTS else ""
        lines.append(f"* {counted(len(tests), 'test')}: {escape(reason)} ({named}{more})")
    rest = len(reasons) - MOST_REASONS
    return [*lines, f"* {rest} more reasons, not shown here"] if rest > 0 else lines


#: Greatest number of rows: a GitLab comment holds a million characters, a GitHub comment 65,536.
MOST_ROWS = 200
#: With more disturbed cases than this, the list of what disturbed them is folded.
MOST_OPEN = 4
#: What is markup anywhere: a backslash, code, emphasis, links, cells, HTML, mentions; an underscore, but not in a word.
_SPECIAL = re.compile(r"[\\`*\[\]<&|~@]|(?<![^\W_])_+|_+(?![^\W_])")
#: What is markup at the beginning of a line: headings, quotes, rules, lists.
_FIRST = re.compile(r"^(\d*)(>|#(?=[#\s]|$)|[-+](?=\s|-+$)|(?<=\d)[.)](?=\s|$))")
_ENTITIES = {"<": "&lt;", "&": "&amp;"}


def summary(results: Sequence[Result], skipped: Sequence[tuple[str, str]], failed: Sequence[tuple[str, str]]) -> str:
    """Returns counts, host, warnings, notable cases, the answer, a table of all cases (PASS folded), and skips.

    Args:
        skipped: each test with its reason.
        failed: each failed test with the first line of its message.
    """
    results = with_plain(with_sessions(in_common_states(results)))
    lines = ["## icbench", "", _counts(results, skipped, failed), ""]
    if host := host_line(results, escape):
        lines += [host, ""]
    if doubts := warnings(results):
        lines += [f"**Warning:** {' '.join(map(escape, doubts))}", ""]
    for candidate in candidates(results):
        lines += [f"**{escape(candidate.sentence)}**", ""]
    for sentence in (*error_rates(results), *power(results)):
        lines += [escape(sentence), ""]
    sentences = _sentences(results, failed)
    lines += _limited(sentences) + ([""] if sentences else [])
    if reported := answer(results, escape):
        lines += [*_limited(reported), ""]
    or_base = " or the version side by side" if candidates(results) else ""
    passed = [result for result in results if result.verdict == Verdict.PASS]
    lines += _table([result for result in _ordered(results) if result.verdict != Verdict.PASS], or_base)
    lines += _folded(f"{len(passed)} {Verdict.PASS}", _table(passed, or_base)) if passed else []
    lines += _hindrances(results)
    changes = sorted({change for result in results for change in _changes(result)})
    if changes:
        lines += [f"Unlike the {'base' if candidates(results) else 'baseline'}:", "", *_limited(changes), ""]
    lines += _folded(f"{len(skipped)} skipped", [*skip_lines(skipped, escape), ""]) if skipped else []
    return "\n".join(lines)


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    """Returns lines that a reader unfolds."""
    return [f"<details><summary>{title}</summary>", "", *lines, "</details>", ""]


def _sentences(results: Sequence[Result], failed: Sequence[tuple[str, str]]) -> list[str]:
    """Returns a sentence for each notable result and each failed test."""
    notable = [result for result in results if result.verdict in NOTABLE]
    sentences = [f"* **{escape(judged(result))}** {_reason(result)}" for result in _ordered(notable)]
    # A test that failed by its verdict is listed with the result.
    others = failed_otherwise(failed, results)
    return sentences + [f"* **failed** {code(test, escape)}: {escape(text)}" for test, text in others]


def compare_markdown(comparison: Comparison) -> str:
    """Returns a comparison: counts, what was compared, and a table of the changes, the worst first."""
    lines = [f"## {escape(comparison.title)}", "", f"**{escape(comparison.counts or 'nothing in common')}**", ""]
    lines += [*(f"* {escape(fact)}" for fact in comparison.facts), ""]
    heads, rows = comparison.table()
    lines += [f"| {' | '.join(heads).lower()} |", f"{'| --- ' * len(heads)}|"]
    lines += [f"| {' | '.join(map(escape, row))} |" for row in rows[:MOST_ROWS]]
    if len(comparison.changes) > MOST_ROWS:
        lines += ["", f"{len(comparison.changes) - MOST_ROWS} more, not shown here: the least bad ones"]
    return "\n".join([*lines, ""])


def _counts(results: Sequence[Result], skipped: Sequence[object], failed: Sequence[object]) -> str:
    verdicts = [shown_verdict(result) or "not judged" for result in results]
    order = [*ORDER, "not judged"]
    parts = [f"{verdicts.count(verdict)} {escape(verdict)}" for verdict in order if verdict in verdicts]
    # Tests are no results: a test can fail with a result, and has none if it is skipped.
    tests = [f"{counted(len(of), 'test')} {word}" for word, of in (("failed", failed), ("skipped", skipped)) if of]
    verdict_counts = f"{counted(len(results), 'result')}: {', '.join(parts)}" if parts else "no results"
    return "; ".join([verdict_counts, *tests])


def _ordered(results: Sequence[Result]) -> list[Result]:
    order: list[str] = list(ORDER)
    return sorted(results, key=lambda result: order.index(str(result.verdict)) if result.verdict in order else 99)


def _limited(lines: Sequence[str]) -> list[str]:
    if len(lines) <= MOST_ROWS:
        return list(lines)
    rest = f"{len(lines) - MOST_ROWS} more, not shown here; all of them are in results.jsonl"
    last = f"| {rest} {'| ' * len(columns(In.MARKDOWN))}|" if lines[0].startswith("| ") else f"* {rest}"
    return [*lines[:MOST_ROWS], last]


def _table(results: Sequence[Result], or_base: str) -> list[str]:
    """Returns a table of results and an empty line; nothing without results."""
    if not results:
        return []
    heads = ["case", *(column.head(or_base=or_base) for column in columns(In.MARKDOWN))]
    head = [f"| {' | '.join(heads)} |", f"{'| --- ' * len(heads)}|"]
    return [*head, *_limited([_row(result) for result in results]), ""]


def _row(result: Result) -> str:
    cells = [escape(column.text(result)) for column in columns(In.MARKDOWN)]
    return f"| {' | '.join([code(result.case, escape), *cells])} |"


def _reason(result: Result) -> str:
    """Returns the case as a code span and the escaped sentence on it, without the case's name."""
    text = (result.reason or "").removeprefix(f"{result.case}: ")
    if not result.is_number and result.evidence:
        text += f", {result.evidence.splitlines()[0]}"
    text += f" (waived {result.waiver})" if result.waiver else ""
    return f"{code(result.case, escape)}: {escape(text)}"


def _changes(result: Result) -> list[str]:
    """Returns versions and configurations that differ from the baseline's, without the CPUs of threads."""
    return [
        f"* {escape(sentence)}"
        for name, (before, now) in result.treatment_changes.items()
        if not name.startswith("cpus.") and (sentence := changed(name, before, now))
    ]


def _hindrances(results: Sequence[Result]) -> list[str]:
    """Returns the disturbed cases, each with what disturbed it most, and an empty line; a long list is folded."""
    reported = [(result, text) for result in results if (text := remarks.disturbance(result))]
    lines = _limited([f"* {code(result.case, escape)}: {escape(text)}" for result, text in reported])
    if len(lines) > MOST_OPEN:
        lines = [f"<details><summary>{len(reported)} disturbed</summary>", "", *lines, "", "</details>"]
    return [*lines, ""] if lines else []


def escape(text: str) -> str:
    """Escapes foreign text for Markdown: one line, no markup, no HTML, no mention of users."""
    line = printable(" ".join(text.split()))
    marked = _SPECIAL.sub(lambda match: _ENTITIES.get(match[0]) or "".join(f"\\{char}" for char in match[0]), line)
    return _FIRST.sub(r"\1\\\2", marked)
