# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a run's summary in Markdown: host and versions, the answer, skips by reason. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pytest_icbench.model.result import Result
from pytest_icbench.report.overview import rankings
from pytest_icbench.wording import counted, printable

#: Ids of cases and tests that may stand in a code span as they are.
_PLAIN = re.compile(r"[\w:+.,/\[\]-]+", re.ASCII)
#: Reasons of skips, and tests of a reason, that are listed.
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
        # A path of the kernel has the kernel's version, and an example of DPDK has DPDK's.
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
    lines = []
    reasons: dict[str, list[str]] = {}
    for test, reason in skipped:
        reasons.setdefault(reason, []).append(test)
    for reason, tests in list(reasons.items())[:MOST_REASONS]:
        named = ", ".join(code(test, escape) for test in tests[:MOST_TESTS])
        more = f" and {len(tests) - MOST_TESTS} more" if len(tests) > MOST_TESTS else ""
        lines.append(f"* {counted(len(tests), 'test')}: {escape(reason)} ({named}{more})")
    rest = len(reasons) - MOST_REASONS
    return [*lines, f"* {rest} more reasons, not shown here"] if rest > 0 else lines
