# SPDX-License-Identifier: BSD-3-Clause
"""A run in Markdown, for a CI's summary page or a comment on a merge request. Pure: results in, text out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pytest_icbench.model.result import Result
from pytest_icbench.model.verdict import GOOD, ORDER
from pytest_icbench.report import longruns
from pytest_icbench.report.axes import is_latency, main_figure, main_unit
from pytest_icbench.report.remarks import bounds, is_search
from pytest_icbench.report.versions import candidates, error_rates
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import percent, printable, show

#: Rows at most: a GitLab comment holds a million characters, a GitHub comment 65,536.
MOST_ROWS = 200
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@-])")


def summary(results: Sequence[Result], skipped: Sequence[tuple[str, str]], failed: Sequence[tuple[str, str]]) -> str:
    """Counts, what is not as it should be, a table of all cases, and what was skipped.

    Args:
        skipped: test and reason. failed: test and the first line of what it says; without those that have a result.
    """
    lines = ["## icbench", "", _counts(results, skipped, failed), ""]
    for candidate in candidates(results):
        lines += [f"**{escape(candidate.sentence)}**", ""]
    for sentence in error_rates(results):
        lines += [escape(sentence), ""]
    notable = [result for result in results if result.verdict not in (*GOOD, "NO_BASELINE", None)]
    sentences = [f"* **{_verdict(result)}** {escape(_reason(result))}" for result in _ordered(notable)]
    # A test that failed by a verdict is told by its result.
    sentences += [f"* **failed** {escape(test)}: {escape(text)}" for test, text in failed if not _told(test, notable)]
    lines += _limited(sentences) + ([""] if sentences else [])
    if results:
        against = "against the baseline" + (" or the version beside it" if candidates(results) else "")
        lines += [f"| case | figure | interval | {against} | limit by | verdict |", "| --- " * 6 + "|"]
        lines += _limited([_row(result) for result in _ordered(results)])
        lines.append("")
    changes = sorted({change for result in results for change in _changes(result)})
    if changes:
        lines += ["Changed since the baseline:", "", *_limited(changes), ""]
    if skipped:
        lines += ["<details><summary>Skipped</summary>", ""]
        lines += _limited([f"* {escape(test)}: {escape(reason)}" for test, reason in skipped])
        lines += ["", "</details>", ""]
    return "\n".join(lines)


def _counts(results: Sequence[Result], skipped: Sequence[object], failed: Sequence[object]) -> str:
    verdicts = [result.verdict or "not judged" for result in results]
    order = [*ORDER, "not judged"]
    parts = [f"{verdicts.count(one)} {escape(one)}" for one in order if one in verdicts]
    parts += [f"{len(skipped)} skipped"] if skipped else []
    parts += [f"{len(failed)} failed"] if failed else []
    return f"{len(results)} result{'' if len(results) == 1 else 's'}: {', '.join(parts)}" if parts else "no results"


def _ordered(results: Sequence[Result]) -> list[Result]:
    order: list[str] = list(ORDER)
    return sorted(results, key=lambda one: order.index(str(one.verdict)) if one.verdict in order else 99)


def _told(test: str, results: Sequence[Result]) -> bool:
    return any(f"[{result.case}]" in test for result in results)


def _limited(lines: Sequence[str]) -> list[str]:
    if len(lines) <= MOST_ROWS:
        return list(lines)
    rest = f"{len(lines) - MOST_ROWS} more, not shown here; all of them are in results.jsonl"
    last = f"| {rest} | | | | | |" if lines[0].startswith("| ") else f"* {rest}"
    return [*lines[:MOST_ROWS], last]


def _row(result: Result) -> str:
    cells = (result.case, *_figures(result), _change(result), _limit_by(result))
    return "| " + " | ".join([*map(escape, cells), _verdict(result)]) + " |"


def _figures(result: Result) -> tuple[str, str]:
    """The main figure with what it is, and its interval; of a search its relevant bounds."""
    if not result.is_number:
        return "", ""
    if trains := longruns.train(result):
        return f"{trains} frames back to back", ""
    main, (unit, scale) = main_figure(result), main_unit(result)
    if main is None:
        return "", ""
    at_least = "≥ " if result.lower_bound and not is_latency(result) else ""
    shown = f"{at_least}{main * scale:.4g} {unit} {'RTT p50' if is_latency(result) else result.metric}"
    if is_search(result):
        return shown, f"bounds {bounds(result)}" if bounds(result) else ""
    return shown, "" if main.low is None or main.high is None else f"{main.low * scale:.4g} to {main.high * scale:.4g}"


def _change(result: Result) -> str:
    found, ratio = result.side_by_side, result.ratio_to_baseline
    if found is not None:
        ratio = Estimate(found.ratio, found.ratio_low, found.ratio_high)
    if ratio is None:
        return ""
    interval = ""
    if ratio.low is not None and ratio.high is not None:
        interval = f" ({_signed(ratio.low)} to {_signed(ratio.high)})"
    return f"{_signed(ratio)}{interval}"


def _signed(ratio: float) -> str:
    return f"{'-' if ratio < 1 else '+'}{percent(ratio - 1)}"


def _limit_by(result: Result) -> str:
    return result.bottleneck if result.is_number and result.bottleneck != "unknown" else ""


def _verdict(result: Result) -> str:
    waived = ", waived" if result.waiver else ""
    return escape(result.verdict or "-") + waived


def _reason(result: Result) -> str:
    reason = result.reason or ""
    told = reason if result.case in reason else f"{result.case}: {reason}"
    if not result.is_number and result.evidence:
        told += f", {result.evidence.splitlines()[0]}"
    return told + (f" (waived {result.waiver})" if result.waiver else "")


def _changes(result: Result) -> list[str]:
    """Versions and configurations that differ from the baseline's; where threads ran is no change of a version."""
    return [
        f"* {escape(name)}: {escape(_value(before))} → {escape(_value(now))}"
        for name, (before, now) in result.treatment_changes.items()
        if not name.startswith("cpus.")
    ]


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    return show(value) if isinstance(value, float) else str(value)


def escape(text: str) -> str:
    """Foreign text as Markdown that shows it as it is: in one line, no markup, no HTML, nobody is mentioned."""
    return _SPECIAL.sub(r"\\\1", printable(" ".join(text.split()))).replace("\\<", "&lt;").replace("\\&", "&amp;")
