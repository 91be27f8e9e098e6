# SPDX-License-Identifier: BSD-3-Clause
"""Intervals over launches: interpolated ranks, a line left in."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.intervals import estimate_over_rounds, interpolated, over_launches
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, Estimate, student_quantile

values = st.lists(st.floats(min_value=1, max_value=1e8), min_size=6, max_size=40)


# The sign test's table: the rank whose interval covers 95 % at least.
@pytest.mark.parametrize(("n", "rank"), [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (30, 10), (50, 18)])
def test_interpolated_ends_lie_between_the_two_ranks_that_cover_more_and_less(n: int, rank: int) -> None:
    estimate = interpolated([float(i) for i in range(1, n + 1)])
    assert estimate.low is not None
    assert rank <= estimate.low <= rank + 1
    assert estimate.high == pytest.approx(n + 1 - estimate.low)
    assert interpolated([1.0] * (FEWEST_LAUNCHES - 1)).low is None


# Hettmansperger and Sheather's 1986 paper: endpoints' weight for n = 10 and 95 %, ranks 2 (97.9 %) and 3 (89.1 %).
def test_the_weight_is_that_of_the_paper() -> None:
    excess = (1 - 2 * 11 / 1024 - 0.95) / (2 * 45 / 1024)
    weight = 8 * excess / (2 + 6 * excess)
    assert interpolated([float(i) for i in range(1, 11)]).low == pytest.approx(2 + weight)


@pytest.mark.parametrize("n", [6, 7, 8, 10, 20])
def test_coverage_of_the_interpolated_interval_is_what_was_asked_for(n: int) -> None:
    generator, trials, hits = random.Random(n), 4000, 0
    for _ in range(trials):
        estimate = interpolated([generator.gauss(5, 1) for _ in range(n)])
        assert estimate.low is not None
        assert estimate.high is not None
        hits += estimate.low <= 5 <= estimate.high
    assert hits / trials == pytest.approx(0.95, abs=0.012)


def test_six_launches_are_the_fewest_with_an_interval() -> None:
    assert over_launches([3, 1, 2, 5, 4]) == Estimate(3)
    assert over_launches([3, 1, 2, 5, 4, 6]).coverage == 0.95
    six = interpolated([3, 1, 2, 5, 4, 6], 0.966)
    assert (six.value, six.coverage) == (3.5, 0.966)
    assert six.low == pytest.approx(1, abs=0.1)
    assert six.high == pytest.approx(6, abs=0.1)
    assert over_launches([7.0] * 6) == Estimate(7, 7, 7, 0.95)


def test_a_line_is_left_in_the_interval() -> None:
    noise = [0.1, -0.2, 0.15, -0.05, 0.2, -0.1, -0.15, 0.05]
    estimate = over_launches([100 + 2 * index + each for index, each in enumerate(noise)])
    assert estimate.value == pytest.approx(107, abs=0.2)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < 101
    assert estimate.high > 113


@given(values)
def test_an_interval_holds_its_value_and_is_not_wider_than_the_values_need(series: list[float]) -> None:
    estimate = over_launches(series)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= estimate.value <= estimate.high
    plain = interpolated(series)
    assert plain.low is not None
    assert plain.high is not None
    assert min(series) <= plain.low
    assert plain.high <= max(series)


@given(values, st.floats(min_value=1e-3, max_value=1e3))
def test_the_unit_does_not_matter(series: list[float], factor: float) -> None:
    plain = interpolated(series).scaled(factor)
    scaled = interpolated([value * factor for value in series])
    assert (scaled.low, scaled.value, scaled.high) == pytest.approx((plain.low, plain.value, plain.high))


# Tables of Student's distribution.
@pytest.mark.parametrize(
    ("freedom", "q", "t"), [(4, 0.975, 2.776), (5, 0.975, 2.571), (10, 0.995, 3.169), (38, 0.975, 2.024)]
)
def test_students_quantiles_are_those_of_the_tables(freedom: int, q: float, t: float) -> None:
    assert student_quantile(freedom, q) == pytest.approx(t, rel=0.005)


def test_rounds_hold_what_their_launches_share() -> None:
    """Each round has a level of its own: an interval that takes launches as independent misses the truth."""
    generator = random.Random(4)
    held = {True: 0, False: 0}
    sessions = 1000
    for _ in range(sessions):
        rounds = []
        for _ in range(5):
            level = 100 * math.exp(generator.gauss(0, 0.05))
            rounds.append([level * (1 + generator.gauss(0, 0.01)) for _ in range(5)])
        for in_rounds in held:
            flat = [value for launches in rounds for value in launches]
            estimate = estimate_over_rounds(rounds) if in_rounds else interpolated(flat)
            assert estimate.low is not None
            assert estimate.high is not None
            held[in_rounds] += estimate.low <= 100 <= estimate.high
    assert 0.93 <= held[True] / sessions <= 0.97
    assert held[False] / sessions < 0.8


def test_two_rounds_have_no_interval() -> None:
    assert estimate_over_rounds([[1.0, 2.0], [1.0, 2.0]]).low is None
    assert estimate_over_rounds([[1.0], [0.0], [2.0]]).value == 1.0  # no logarithm: launches are the units
