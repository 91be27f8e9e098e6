# SPDX-License-Identifier: BSD-3-Clause
"""Forecasts how long the cases of a session will take, in the order in which they run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.kinds.runs import estimate_s
from pytest_icbench.kinds.startup.startup_run import startup_estimate_s
from pytest_icbench.kinds.throughput.throughput_run import TRAINS_S
from pytest_icbench.measure.estimate import RIG_OVERHEAD_S, comparison_estimate_s, launch_estimate_s
from pytest_icbench.measure.soak import SOAK_S, soak_estimate_s
from pytest_icbench.measure.stopping import fewest_launches
from pytest_icbench.model.case import Case
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.plugin.items import Benchmark
from pytest_icbench.testbed.testbed import Testbed


def estimates(
    testbed: Testbed, planned: Sequence[Benchmark], soak_s: float | None = None, *, budgeted: bool = False
) -> list[float]:
    """Returns the seconds that each case takes at least; 0 for one that is skipped.

    A test's marker says what it measures besides the rate of its case: a long run, trains, a sweep, a search.

    Args:
        planned: the cases in their order.
        soak_s: the user's length of a long run in seconds; None: the tests say it.
        budgeted: a budget may end a case with the fewest launches that have an interval, before its precision is known.
    """
    forecast, compared = [], count_comparisons(planned)
    previous: object = None
    searched = set[Case]()
    for benchmark in planned:
        try:
            testbed.placement(benchmark.case)
        except (Unsupported, ProvisionError):
            forecast.append(0.0)
            continue
        key = benchmark.case.rig_key
        if benchmark.case.candidate is not None:
            seconds = benchmark.request.comparisons * comparison_estimate_s(benchmark.settings, compared)
        else:
            seconds = _without_search_s(testbed, benchmark, build=key != previous, soak_s=soak_s, budgeted=budgeted)
        whole = _looked_for(benchmark)
        if whole is not None and whole not in searched:  # searched for once per run
            searched.add(whole)
            seconds += estimate_s(benchmark.settings, reference=False, build=False, rate=whole.rate)
        forecast.append(seconds)
        previous = key
    return forecast


def count_comparisons(planned: Iterable[Benchmark]) -> int:
    """Returns the number of comparisons with a base, which keep the session's error rate together."""
    return sum(benchmark.request.comparisons for benchmark in planned if benchmark.case.candidate is not None)


def _without_search_s(
    testbed: Testbed, benchmark: Benchmark, *, build: bool, soak_s: float | None, budgeted: bool
) -> float:
    """Returns the seconds without the search for a rate that the load is a share of."""
    settings, rate, request = benchmark.settings, benchmark.case.rate, benchmark.request
    launches = settings.min_launches + 1 if budgeted else None
    if (crowd := benchmark.case.load.crowd) is not None:
        return startup_estimate_s(crowd)
    if request.measure == "soak":
        return soak_estimate_s(settings, soak_s or request.soak_duration or SOAK_S, build=build)
    if request.measure == "back_to_back":
        return TRAINS_S + (RIG_OVERHEAD_S if build else 0.0)
    if request.measure == "sweep" and rate.is_max:
        return estimate_s(settings, reference=False, build=build, rate=Rate(loads=()), launches=launches)
    if request.measure == "search" and not rate.is_search:
        rate = Rate(loss_ratio=0.0)
    noisy_neighbour, in_turn = has_noisy_neighbour(testbed, benchmark), benchmark.case.remote
    rounds = testbed.options.rounds if benchmark.takes_part else 1
    if rounds > 1:
        launches = rounds * math.ceil((launches or fewest_launches(settings)) / rounds)
    seconds = estimate_s(
        settings, reference=noisy_neighbour, build=build, rate=rate, in_turn=in_turn, launches=launches
    )
    return seconds + (rounds - 1) * RIG_OVERHEAD_S * (2 if noisy_neighbour else 1) * build


def _looked_for(benchmark: Benchmark) -> Case | None:
    """Returns the case whose rate is searched for first; None if no search is needed."""
    case, measure = benchmark.case, benchmark.request.measure
    if measure == "soak":
        return None
    if measure == "back_to_back":
        return case.sending(rate=Rate(loss_ratio=0.0))
    return None if case.rate.share is None else case.search


def has_noisy_neighbour(testbed: Testbed, benchmark: Benchmark) -> bool:
    """Whether each launch has a second one: of a candidate's base, of the reference link, or without a noisy
    neighbour.
    """
    if benchmark.case.candidate is not None:
        return True
    wanted = benchmark.settings.reference or benchmark.case.noisy_neighbour is not None
    return wanted and testbed.reference(benchmark.case) is not None


def retest_settings(settings: Settings, seconds: float, rate: Rate) -> Settings:
    """Returns the settings of a retest: each launch has its own rigs, and so has a search.

    Args:
        seconds: the most time for it.
        rate: of the case.
    """
    if rate.is_search:
        return replace(settings, search_time_s=min(settings.search_limit_s, seconds))
    fresh = replace(settings, rebuild=True)
    return replace(fresh, max_duration_s=min(max(fresh.max_duration_s, 2 * retest_least_s(fresh, rate)), seconds))


def retest_least_s(settings: Settings, rate: Rate) -> float:
    """Returns the seconds of a retest with the fewest launches, or with another search."""
    if rate.is_search:
        return estimate_s(settings, reference=settings.reference, rate=rate)
    fresh = replace(settings, rebuild=True)
    return (fresh.min_launches + 1) * launch_estimate_s(fresh, reference=fresh.reference)


def quickest_retest_s(planned: Sequence[Benchmark]) -> float:
    """Returns the seconds of the quickest retest of these cases; 0 if none is compared."""
    compared = [one for one in planned if one.case.candidate is None and one.measures is None]
    return min((retest_least_s(one.settings, one.case.rate) for one in compared), default=0.0)
