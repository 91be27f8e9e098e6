# SPDX-License-Identifier: BSD-3-Clause
"""The time of a session: the budget of each host that takes part, and the lines of ``--icbench-plan``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, Unsupported, UsageError
from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.measure.estimate import launch_estimate_s
from pytest_icbench.model.case import Case
from pytest_icbench.model.case_id import rig_group
from pytest_icbench.model.settings import Settings
from pytest_icbench.plugin.fitness_check import check_baseline, check_history
from pytest_icbench.plugin.items import Benchmark, benchmarks
from pytest_icbench.plugin.schedule.budget import Budget, Entry
from pytest_icbench.plugin.schedule.forecast import estimates, has_noisy_neighbour, quickest_retest_s
from pytest_icbench.store.baselines import load as load_baseline
from pytest_icbench.testbed.testbed import Testbed
from pytest_icbench.wording import clock, counted, printable, wrapped

#: The share of a budget that is kept back for retests of possible regressions, at least one, where the cases leave it.
RETESTS = 0.2
#: Width of a line with a reason; a plan indents it.
REASON_WIDTH = 92


def is_adaptive(case: Case, settings: Settings) -> bool:
    """Whether more time makes the case more precise; it does not for a search or a fixed number of launches."""
    return settings.repeats is None and not case.rate.varies


def longest_s(benchmark: Benchmark, least_s: float) -> float:
    """Returns the most seconds of a case that takes ``least_s`` at least: it may go on until it is precise."""
    settings, rate = benchmark.settings, benchmark.case.rate
    if least_s and rate.is_search:
        return max(least_s, settings.search_limit_s)
    if least_s and is_adaptive(benchmark.case, settings) and benchmark.measures is None:
        return max(least_s, settings.max_duration_s)
    return least_s


def count_hosts(config: pytest.Config) -> int:
    """Returns how many hosts share the session's cases: the number of xdist's workers."""
    return int(getattr(config, "workerinput", {}).get("icbench_hosts", 1))


def plan_budget(
    testbed: Testbed, total_s: float, planned: Sequence[Benchmark], soak_s: float | None = None, hosts: int = 1
) -> Budget:
    """Returns the budget of a session.

    Args:
        total_s: the time of the session.
        planned: the cases in the order in which one host runs them.
        soak_s: the user's length of a long run in seconds; None: the tests say it.
        hosts: the number of hosts that share the cases.
    """
    entries = []
    for benchmark, least_s in zip(planned, estimates(testbed, planned, soak_s, budgeted=True), strict=True):
        settings, case = benchmark.settings, benchmark.case
        reference = least_s > 0 and has_noisy_neighbour(testbed, benchmark)
        entries.append(
            Entry(
                least_s=least_s,
                launch_s=launch_estimate_s(settings, reference=reference),
                launches=settings.min_launches + 1,
                precision=settings.precision,
                adaptive=is_adaptive(case, settings) and benchmark.measures is None,
                group=(case.dimension, case.switch),
            )
        )
    return Budget(total_s, entries, hosts)


def make_budget(testbed: Testbed, options: Options, planned: Sequence[Benchmark], hosts: int) -> Budget | None:
    """Returns the budget, or None without ``--icbench-budget``. Raises UsageError if the cases take longer at least."""
    if options.budget is None:
        return None
    budget = plan_budget(testbed, options.budget, planned, options.soak_duration, hosts)
    if budget.least_s > budget.total_s:
        over = f" on {hosts} hosts" if hosts > 1 else ""
        take = f"{counted(len(planned), 'case')} {'takes' if len(planned) == 1 else 'take'}"
        raise UsageError(
            f"--icbench-budget: {take} at least {clock(budget.least_s)}{over}, more than"
            f" {clock(budget.total_s)}; give more time, or select fewer cases"
        )
    kept_back_s = _kept_back_s(options, budget, planned)
    return plan_budget(testbed, options.budget - kept_back_s, planned, options.soak_duration, hosts)


def _kept_back_s(options: Options, budget: Budget, planned: Sequence[Benchmark]) -> float:
    """Returns the seconds of a budget that are kept back for retests; 0 where the cases leave none."""
    if options.compare is None:
        return 0.0
    wanted_s = max(RETESTS * budget.total_s, quickest_retest_s(planned))
    return wanted_s if budget.least_s <= budget.total_s - wanted_s else 0.0


def explain_missing_retests(options: Options, budget: Budget, planned: Sequence[Benchmark]) -> str | None:
    """Returns a sentence if a comparison's budget keeps nothing back for retests; None if it does, or has none."""
    total_s = options.budget
    if options.compare is None or total_s is None or budget.total_s < total_s or budget.least_s > total_s:
        return None
    enough_s = max(budget.least_s / (1 - RETESTS), budget.least_s + quickest_retest_s(planned))
    return (
        f"budget {clock(total_s)}: no time for a retest, without which nothing is called a regression: give"
        f" {clock(math.ceil(enough_s))}, or select fewer cases"
    )


def plan(
    testbed: Testbed, options: Options, items: Sequence[pytest.Item], hosts: int, *, by_case: bool = False
) -> list[str]:
    """Returns the lines of ``--icbench-plan``: the cases with their time, as this host forecasts it, and the sums.

    Args:
        items: benchmarks.
        hosts: the number of hosts that would share them.
        by_case: a line for each case, not for each switch of a test.
    """
    cases, total_s, soak_s = benchmarks(items), options.budget, options.soak_duration
    forecast = estimates(testbed, cases, soak_s, budgeted=total_s is not None)
    allotted: list[float] | list[None] = [None] * len(forecast)
    sentences = check_history(options)
    if total_s is not None:
        kept_back_s = _kept_back_s(options, plan_budget(testbed, total_s, cases, soak_s, hosts), cases)
        budget = plan_budget(testbed, total_s - kept_back_s, cases, soak_s, hosts)
        allotted = budget.allotments()
        sentences += filter(None, [explain_missing_retests(options, budget, cases)])
    planned = []
    for item, least_s, allotted_s, benchmark in zip(items, forecast, allotted, cases, strict=True):
        reason, fails, where = None, False, ""
        try:
            where = testbed.placement(benchmark.case).where
        except (Unsupported, ProvisionError) as error:
            reason, fails = str(error), not isinstance(error, Unsupported)
        planned.append(Planned(item.nodeid, least_s, reason, allotted_s, fails, where))
    lines = plan_lines(planned, testbed.policy, total_s, hosts, by_case=by_case)
    if options.compare is not None:
        baseline = load_baseline(options.baselines, options.compare)
        sentences += check_baseline(testbed, cases, Comparer(baseline, options.must_match))
    return lines + [line for sentence in sentences for line in wrapped(printable(sentence))]


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
            lines.append(f"{'fail' if entry.fails else 'skip':>8}  {name}: {_first_line(entry.skipped)}")
    return lines


def _by_switch(planned: Sequence[Planned]) -> list[str]:
    """Returns a head for each test with a case that runs, and below it a line for each switch."""
    tests: dict[str, dict[str, list[Planned]]] = {}
    for entry in planned:
        if entry.skipped is None:
            switches = tests.setdefault(entry.nodeid.partition("[")[0], {})
            switches.setdefault(_switch(entry.nodeid), []).append(entry)
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
        found = [
            (entry.nodeid, entry.skipped) for entry in planned if entry.skipped is not None and entry.fails == fails
        ]
        lines += [head, *(f"{'':8}{line}" for line in reason_lines(found))] if found else []
    return lines


def reason_lines(found: Iterable[tuple[str, str]]) -> list[str]:
    """Returns a line for each reason, wrapped: the number of its cases, and their switches.

    Args:
        found: node ids of cases, with their reasons.
    """
    reasons: dict[str, list[str]] = {}
    for nodeid, reason in found:
        reasons.setdefault(_first_line(reason), []).append(nodeid)
    lines = []
    for reason, nodeids in reasons.items():
        switches = ", ".join(dict.fromkeys(map(_switch, nodeids)))
        lines += wrapped(f"  {counted(len(nodeids), 'case'):>9}  {printable(switches)}: {reason}", REASON_WIDTH)
    return lines


def _time(entries: Sequence[Planned]) -> str:
    """Returns the least time of cases, and with a budget the time that it gives them."""
    text = f"{clock(sum(entry.seconds for entry in entries)):>8}"
    if any(entry.allotted is None for entry in entries):
        return text
    return f"{text} of {clock(sum(entry.allotted or 0.0 for entry in entries)):>7}"


def _switch(nodeid: str) -> str:
    """Returns the switch of a case, with its port, mode and cores, as far as the id shows it."""
    group = rig_group(nodeid)
    return str(group[0]) if group is not None else nodeid.partition("[")[2].removesuffix("]")


def _cases(entries: Sequence[Planned]) -> str:
    return counted(len(entries), "case")


def _first_line(reason: str) -> str:
    return printable(reason.partition("\n")[0])


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
