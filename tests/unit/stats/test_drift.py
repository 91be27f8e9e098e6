# SPDX-License-Identifier: BSD-3-Clause
"""A line is found where there is one, by a slope and a test that a few launches cannot bend."""

from __future__ import annotations

import math
import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.dependence import FALSE_ALARMS, critical_score, drift


def test_a_drift_is_found_with_its_slope() -> None:
    noise = [0.1, -0.2, 0.15, -0.05, 0.2, -0.1, -0.15, 0.05]
    assert drift([100 + 2 * index + more for index, more in enumerate(noise)]) == pytest.approx(14 / 107, rel=0.05)
    assert drift([10.0, 11.0, 12.0, 13.0, 14.0, 15.0]) == pytest.approx(5 / 12.5)
    assert drift([]) is None


@pytest.mark.parametrize(
    "launches",
    [[6.0, 14.0, 18.2, 14.9, 18.6, 19.6], [50.0, 100.0, 100.1, 99.9, 100.2, 99.8, 100.1, 100.0, 99.9]],
)
def test_a_first_slow_launch_is_no_line(launches: list[float]) -> None:
    assert drift(launches) is None


def test_one_launch_far_off_does_not_hide_a_line() -> None:
    series = [100.0 + index + (-1) ** index * 0.1 for index in range(12)]
    series[10] = 20.0
    assert drift(series) == pytest.approx(11 / 105, rel=0.1)


def test_a_level_that_wanders_is_no_line() -> None:
    assert drift([100, 100.5, 101, 103, 106, 107, 107.5, 107, 107.3, 107.2, 107.4, 107.1]) is None


def test_lines_are_seldom_found_where_there_is_none() -> None:
    generator = random.Random(7)
    found = sum(drift([generator.gauss(0, 1) for _ in range(12)]) is not None for _ in range(2000))
    assert 0.005 < found / 2000 < FALSE_ALARMS + 3 * math.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize("n", [5, 6, 7])
def test_the_critical_score_is_that_of_all_orders(n: int) -> None:
    orders = list(permutations(range(n)))
    scores = [sum(1 if b > a else -1 for i, a in enumerate(order) for b in order[i + 1 :]) for order in orders]
    critical = critical_score(n)
    share = sum(abs(score) >= critical for score in scores) / len(scores)
    less = sum(abs(score) >= critical - 2 for score in scores) / len(scores)
    assert share <= FALSE_ALARMS < less


@given(st.floats(min_value=0.1, max_value=10))
def test_the_unit_does_not_matter(factor: float) -> None:
    series = [100 + index + (-1) ** index * 0.1 for index in range(12)]
    plain = drift(series)
    assert plain is not None
    assert drift([value * factor for value in series]) == pytest.approx(plain)
