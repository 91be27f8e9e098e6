# SPDX-License-Identifier: BSD-3-Clause
"""Two bands of launches: seen where they are, and seldom where they are not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.bands import FALSE_ALARMS, Bands, best_cut, critical_ratio, find_bands

values = st.lists(st.floats(min_value=1, max_value=1e9), min_size=6, max_size=40)


def test_clear_bands_are_named() -> None:
    assert find_bands([100, 94, 100.2, 99.8, 94.1, 100.1, 93.9, 100]) == Bands(94, 100, 3, 5)


@pytest.mark.parametrize(
    "series",
    [
        [100, 94, 100, 94, 100],  # too few to tell
        [100, 100.1, 99.9, 100, 100.1, 50],  # an outlier is no band
        [100] * 8,
        [100, 100, 100, 100, 100.5, 100.5, 100.5, 100.5],  # steps of a histogram, nothing to care about
        [100 + index for index in range(12)],  # a drift
    ],
    ids=["few", "outlier", "equal", "near", "drift"],
)
def test_what_is_no_band(series: list[float]) -> None:
    assert find_bands(series) is None


@given(values)
def test_the_cut_is_the_best_of_all(series: list[float]) -> None:
    def squares(part: list[float]) -> float:
        mean = math.fsum(part) / len(part)
        return math.fsum((value - mean) ** 2 for value in part)

    ordered = sorted(series)
    size, _ = best_cut(ordered)
    within = [squares(ordered[:k]) + squares(ordered[k:]) for k in range(2, len(ordered) - 1)]
    assert within[size - 2] <= min(within) + 1e-6 * squares(ordered) + 1e-6


@given(values, st.floats(min_value=0.001, max_value=1000), st.randoms(use_true_random=False))
def test_neither_unit_nor_order_matters(series: list[float], factor: float, order: random.Random) -> None:
    found, shuffled = find_bands(series), list(series)
    order.shuffle(shuffled)
    assert find_bands(shuffled) == found
    scaled = find_bands([value * factor for value in series])
    if found is not None and scaled is not None:
        assert (scaled.launches_low, scaled.launches_high) == (found.launches_low, found.launches_high)


def test_critical_ratios_fall_with_the_number_of_launches() -> None:
    ratios = [critical_ratio(n) for n in range(6, 80)]
    assert ratios == sorted(ratios, reverse=True)
    assert critical_ratio(13) == pytest.approx((critical_ratio(12) + critical_ratio(14)) / 2)


@pytest.mark.parametrize("n", [6, 9, 15, 40])
@pytest.mark.parametrize("draw", ["gauss", "random", "expovariate"])
def test_one_band_is_seldom_taken_for_two(n: int, draw: str) -> None:
    generator = random.Random(n)
    one: Callable[[], float] = {
        "gauss": lambda: generator.gauss(0, 1),
        "random": generator.random,
        "expovariate": lambda: generator.expovariate(1),
    }[draw]
    alarms = sum(best_cut(sorted(one() for _ in range(n)))[1] > critical_ratio(n) for _ in range(1500))
    assert alarms / 1500 <= FALSE_ALARMS + 3 * math.sqrt(FALSE_ALARMS * (1 - FALSE_ALARMS) / 1500)
