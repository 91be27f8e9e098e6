# SPDX-License-Identifier: BSD-3-Clause
"""Where a rate has become stationary: ramps, steps, noise, and series that never do."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.measure.launch.stationarity import SteadyPart, settle
from pytest_icbench.stats.warmup import FEWEST_WINDOWS, truncation

MEASURED, MOST = 10, 20


def course(shape: Callable[[int], float], noise: float = 1.0, seed: int = 1) -> tuple[SteadyPart, list[float]]:
    """A launch that goes on, window by window, until it is over."""
    generator = random.Random(seed)
    rates: list[float] = []
    while (found := settle(rates, MEASURED, MOST)) is None:
        rates.append(shape(len(rates)) + generator.gauss(0, noise))
    return found, rates


def test_a_steady_rate_is_measured_from_the_start() -> None:
    found = [course(lambda _: 100.0, seed=seed)[0] for seed in range(300)]
    assert sum(each == SteadyPart(0, MEASURED, True) for each in found) >= 0.93 * 300
    assert max(each.last for each in found) < MEASURED + 5


@pytest.mark.parametrize("slow", [1, 3, 5, 8])
def test_a_slow_start_is_cut_off(slow: int) -> None:
    """As long as two windows of the measured part already show what follows."""
    found = [course(lambda index: 80.0 if index < slow else 100.0, seed=seed)[0] for seed in range(100)]
    assert all(each.stationary and each.discard >= slow for each in found)
    assert statistics.median(each.discard for each in found) <= slow + 1
    assert all(each.last - each.discard >= MEASURED for each in found)


@pytest.mark.parametrize(
    "shape",
    [lambda i: 100 - 3.0 * max(12 - i, 0), lambda i: 100 + 40.0 * max(8 - i, 0), lambda i: 100 - 40 * math.exp(-i / 2)],
    ids=["up", "down", "exponential"],
)
def test_a_ramp_is_cut_off(shape: Callable[[int], float]) -> None:
    for seed in range(100):
        found, rates = course(shape, seed=seed)
        assert found.stationary
        assert statistics.fmean(rates[found.discard : found.last]) == pytest.approx(100, rel=0.02)


def test_what_never_becomes_stationary_ends_and_says_so() -> None:
    found, rates = course(lambda index: 100.0 + 2 * index)
    assert found == SteadyPart(MOST, MOST + MEASURED, False)
    assert len(rates) == MOST + MEASURED


def test_dips_here_and_there_are_part_of_the_rate() -> None:
    """The mean of the measured part stays within half a per cent of the truth, 98.5."""
    generator = random.Random(3)
    means = []
    for _ in range(1500):
        rates: list[float] = []
        while (found := settle(rates, MEASURED, MOST)) is None:
            rates.append(100 + generator.gauss(0, 1) - (30 if generator.random() < 0.05 else 0))
        means.append(statistics.fmean(rates[found.discard : found.last]))
    assert statistics.fmean(means) == pytest.approx(98.5, abs=0.5)


def test_a_small_change_is_not_cut_off() -> None:
    assert truncation([99.0] * 5 + [100.0] * 10) == 0
    assert truncation([98.0] * 5 + [100.0] * 10) == 5


def test_a_path_that_falls_silent_is_cut_into_two() -> None:
    assert truncation([100.0] * 6 + [0.0] * 12) == 6


@given(st.lists(st.floats(min_value=0, max_value=1e8), max_size=40))
def test_at_least_two_windows_are_left_and_no_data_breaks_it(rates: list[float]) -> None:
    cut = truncation(rates)
    assert 0 <= cut <= max(len(rates) - 2, 0)
    found = settle(rates, MEASURED, MOST)
    assert (found is None) <= (len(rates) < MEASURED + MOST)
    if found is not None:
        assert 0 <= found.discard < found.last == len(rates)
        assert found.last - found.discard >= MEASURED or not found.stationary


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=12, max_size=30))
def test_the_unit_does_not_matter(rates: list[float]) -> None:
    exact = [float(round(rate)) for rate in rates]
    assert truncation([rate * 4 for rate in exact]) == truncation(exact)


def test_few_windows_are_not_judged() -> None:
    assert settle([1.0, 2.0, 3.0], 2, 5) is None
    assert settle([5.0] * FEWEST_WINDOWS, 2, 5) == SteadyPart(0, FEWEST_WINDOWS, True)
