# SPDX-License-Identifier: BSD-3-Clause
"""The lines that ``--icbench-plan`` prints: by test and switch, and case by case with ``-v``. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_icbench.model.case_id import rig_group
from pytest_icbench.wording import clock, counted, printable, wrapped


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned case.

    Attributes:
        nodeid: the id of its test.
        seconds: the time that it takes at least.
        skipped: why it would not be measured; None: it runs.
        allotted: seconds that a budget gives it, as far as is known before anything is measured.
        fails: whether it would fail instead of being skipped: what it takes did not answer.
        where: the L3 caches and NUMA nodes of its threads, in words.
    """

    nodeid: str
    seconds: float
    skipped: str | None
    allotted: float | None = None
    fails: bool = False
    where: str = ""


def plan_lines(
    planned: Sequence[Planned], policy: str, budget_s: float | None = None, hosts: int = 1, *, by_case: bool = False
) -> list[str]:
    """Returns a line for each switch of a test, each reason of skips once, and the sums.

    With a budget the line has the least time and the allotted time.

    Args:
        policy: the placement.
        budget_s: the budget of each host.
        hosts: the number of hosts that share the cases.
        by_case: a line for each case instead.
    """
    lines = _each(planned) if by_case else [*_by_switch(planned), *_reasons(planned)]
    run = [entry for entry in planned if entry.skipped is None]
    total_s = sum(entry.seconds for entry in run)
    failing = sum(entry.fails for entry in planned)
    lines.append(
        f"{len(run)} of {counted(len(planned), 'case')}, at least {clock(total_s)}"
        f" (h:mm:ss or m:ss), placement {policy}; {len(planned) - len(run) - failing} would be skipped"
        + (f", {failing} would fail" if failing else "")
    )
    for where, cases in Counter(entry.where for entry in run if entry.where).items():
        lines += wrapped(f"{counted(cases, 'case')} on {where}")
    if hosts > 1 and run:
        lines.append(_over(run, total_s, hosts))
    if budget_s is not None:
        rest = hosts * budget_s - total_s
        shared = f"{clock(rest)} beyond the least, shared out anew whenever a case begins"
        of = f" of each of {hosts} hosts" if hosts > 1 else ""
        lines.append(f"budget {clock(budget_s)}{of}: " + (shared if rest >= 0 else "too short, nothing would be run"))
    return lines


def _each(planned: Sequence[Planned]) -> list[str]:
    """Returns a line for each case."""
    lines = []
    for entry in planned:
        name = printable(entry.nodeid)
        if entry.skipped is None:
            lines.append(f"{_time([entry])}  {name}")
        else:
            lines.append(f"{'fail' if entry.fails else 'skip':>8}  {name}: {_reason(entry)}")
    return lines


def _by_switch(planned: Sequence[Planned]) -> list[str]:
    """Returns a head for each test with a case that runs, and below it a line for each switch."""
    tests: dict[str, dict[str, list[Planned]]] = {}
    for entry in planned:
        if entry.skipped is None:
            switches = tests.setdefault(entry.nodeid.partition("[")[0], {})
            switches.setdefault(_switch(entry), []).append(entry)
    lines = []
    for test, switches in tests.items():
        lines.append(printable(test))
        for switch, entries in switches.items():
            lines.append(f"{_time(entries)}  {_cases(entries):>9}  {printable(switch)}")
    return lines


def _reasons(planned: Sequence[Planned]) -> list[str]:
    """Returns a line for each reason of skips and then of failures, wrapped."""
    lines = []
    for head, fails in (("skipped", False), ("failing", True)):
        reasons: dict[str, list[Planned]] = {}
        for entry in planned:
            if entry.skipped is not None and entry.fails == fails:
                reasons.setdefault(_reason(entry), []).append(entry)
        lines += [head] if reasons else []
        for reason, entries in reasons.items():
            switches = ", ".join(dict.fromkeys(map(_switch, entries)))
            lines += wrapped(f"{'':8}  {_cases(entries):>9}  {printable(switches)}: {reason}")
    return lines


def _time(entries: Sequence[Planned]) -> str:
    """Returns the least time of cases, and with a budget the time that it gives them."""
    text = f"{clock(sum(entry.seconds for entry in entries)):>8}"
    if any(entry.allotted is None for entry in entries):
        return text
    return f"{text} of {clock(sum(entry.allotted or 0.0 for entry in entries)):>7}"


def _switch(entry: Planned) -> str:
    """Returns the switch of a case, with its port, variant and cores, as far as the id shows it."""
    group = rig_group(entry.nodeid)
    return str(group[0]) if group is not None else entry.nodeid.partition("[")[2].removesuffix("]")


def _cases(entries: Sequence[Planned]) -> str:
    return counted(len(entries), "case")


def _reason(entry: Planned) -> str:
    return printable((entry.skipped or "").splitlines()[0])


def _over(run: Sequence[Planned], total_s: float, hosts: int) -> str:
    """Returns the line about several hosts: they share the time, but a case runs on one host."""
    rigs: dict[object, list[Planned]] = {}
    for entry in run:
        rigs.setdefault(rig_group(entry.nodeid), []).append(entry)
    longest = max(rigs.values(), key=lambda entries: sum(entry.seconds for entry in entries))
    least_s = max(total_s / hosts, *(entry.seconds for entry in run))
    cases = counted(len(longest), "case")
    return (
        f"over {hosts} hosts like this one at least {clock(least_s)}; the longest rig, of {cases}, takes"
        f" {clock(sum(entry.seconds for entry in longest))}: {printable(longest[0].nodeid)}"
    )
