# SPDX-License-Identifier: BSD-3-Clause
"""A session's time over its cases: the budget of each host that takes part, and what ``--icbench-plan`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, Unsupported, UsageError
from pytest_icbench.measure.estimate import launch_estimate_s
from pytest_icbench.model.case import Case
from pytest_icbench.plugin.items import Benchmark, benchmarks
from pytest_icbench.plugin.plan import Planned, plan_lines
from pytest_icbench.plugin.schedule.budget import Budget, Entry
from pytest_icbench.plugin.schedule.forecast import estimates, has_neighbour
from pytest_icbench.wording import clock

if TYPE_CHECKING:
    from pytest_icbench.model.settings import Settings
    from pytest_icbench.testbed.testbed import Testbed


def is_adaptive(case: Case, settings: Settings) -> bool:
    """Whether more time makes the case more precise; a fixed number of launches, or a search, takes what it takes."""
    return settings.repeats is None and not case.rate.is_search and not case.rate.is_sweep


def hosts_of(config: pytest.Config) -> int:
    """How many hosts share the session's cases: that many workers xdist has."""
    return int(getattr(config, "workerinput", {}).get("icbench_hosts", 1))


def budget_of(
    bench: Testbed, total_s: float, planned: Sequence[Benchmark], soak_s: float | None = None, hosts: int = 1
) -> Budget:
    """The budget of a session, in the order in which its cases run on one host."""
    entries = []
    for benchmark, least_s in zip(planned, estimates(bench, planned, soak_s), strict=True):
        settings, case = benchmark.settings, benchmark.case
        reference = least_s > 0 and has_neighbour(bench, benchmark)
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


def make_budget(bench: Testbed, options: Options, planned: Sequence[Benchmark], hosts: int) -> Budget | None:
    """None without ``--icbench-budget``. Raises UsageError if the cases take longer at least."""
    if options.budget is None:
        return None
    budget = budget_of(bench, options.budget, planned, options.soak_duration, hosts)
    if budget.least_s > budget.total_s:
        over = f" on {hosts} hosts" if hosts > 1 else ""
        raise UsageError(
            f"--icbench-budget: {len(planned)} cases take at least {clock(budget.least_s)}{over}, more than"
            f" {clock(budget.total_s)}; give more time, or select fewer cases"
        )
    return budget


def plan(bench: Testbed, options: Options, items: Sequence[pytest.Item], hosts: int) -> list[str]:
    """What ``--icbench-plan`` prints: every case with its time, as far as this host can tell, and the sums.

    Args:
        items: benchmarks.
        hosts: that would share them.
    """
    asked, total_s, soak_s = benchmarks(items), options.budget, options.soak_duration
    seconds = estimates(bench, asked, soak_s)
    allotted: list[float] | list[None] = [None] * len(seconds)
    if total_s is not None:
        allotted = budget_of(bench, total_s, asked, soak_s, hosts).allotments()
    planned = []
    for item, each, given, benchmark in zip(items, seconds, allotted, asked, strict=True):
        reason = None
        try:
            bench.placement(benchmark.case)
        except (Unsupported, ProvisionError) as error:
            reason = str(error)
        planned.append(Planned(item.nodeid, each, reason, given))
    return plan_lines(planned, bench.policy, total_s, hosts)
