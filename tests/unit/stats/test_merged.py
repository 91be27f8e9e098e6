# SPDX-License-Identifier: BSD-3-Clause
"""The interval of a figure of all launches together is about that figure, not about the median launch."""

from __future__ import annotations

import math
import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.intervals import UPWARD, estimate_over_merged, over_launches
from pytest_icbench.stats.quantiles import Estimate

positive = st.lists(st.integers(32, 128).map(lambda part: part / 64), min_size=6, max_size=30)


def mean_of_tails(generator: random.Random, launches: int) -> list[float]:
    """The mean of each launch: 10 µs and a tail of which the length differs from launch to launch."""
    return [10 + 5 * math.exp(generator.gauss(0, 1)) for _ in range(launches)]


@pytest.mark.parametrize("launches", [7, 20])
def test_the_mean_is_held_where_the_stretched_interval_of_the_median_misses_it(launches: int) -> None:
    generator, truth, sessions = random.Random(launches), 10 + 5 * math.exp(0.5), 800
    held = stretched = 0
    for _ in range(sessions):
        means = mean_of_tails(generator, launches)
        total = sum(means)
        found = estimate_over_merged(fmean(means), [(total - mean) / (launches - 1) for mean in means])
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
        before = over_launches(means)
        assert before.low is not None
        assert before.high is not None
        # Widened by dependence, too, but about another quantity.
        stretched += min(before.low, fmean(means)) <= truth <= max(before.high, fmean(means))
    assert held / sessions >= 0.9 - 3 * math.sqrt(0.09 / sessions)
    if launches == 20:
        assert stretched < held


def test_it_takes_six_launches_and_a_positive_figure() -> None:
    assert estimate_over_merged(5.0, [5.0] * 5) == Estimate(5.0)
    assert estimate_over_merged(0.0, [0.0] * 6) == Estimate(0.0, 0.0, 0.0, 0.95)
    assert estimate_over_merged(1.0, [1.0] * 5 + [0.0]) == Estimate(1.0)
    assert estimate_over_merged(5.0, [5.0] * 6) == Estimate(5.0, 5.0, 5.0, 0.95)


def test_both_ends_lie_within_the_samples() -> None:
    without = [300.0] * 11 + [30.0]  # a single launch makes the figure
    free, held = estimate_over_merged(300.0, without), estimate_over_merged(300.0, without, (20.0, 400.0))
    assert free.low is not None
    assert free.high is not None
    assert free.low < 20 < 400 < free.high
    assert (held.low, held.high) == (20.0, 400.0)


@given(positive, st.floats(min_value=1e-3, max_value=1e6))
def test_the_interval_holds_its_figure_in_any_unit(without: list[float], unit: float) -> None:
    found, scaled = estimate_over_merged(1.0, without), estimate_over_merged(unit, [value * unit for value in without])
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 1 <= found.high
    assert math.log(found.high) == pytest.approx(-UPWARD * math.log(found.low), abs=1e-9)
    assert scaled.low == pytest.approx(found.low * unit, rel=1e-6)
