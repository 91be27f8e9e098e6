# SPDX-License-Identifier: BSD-3-Clause
"""Tells whether launches of one case fall into two bands. Pure.

On many machines a launch draws a level that it then keeps: where its memory lies, how its threads are woken. The test
is Engelman and Hartigan's ("Percentage points of a test for clusters", Journal of the American Statistical Association
64, 1969): of all ways to cut the sorted values in two, the greatest ratio of the sum of squares between the parts to
that within them. Its percentage points here are not those of the normal distribution alone, but the greatest over a
normal, a uniform and an exponential one: neither a flat nor a skewed distribution, nor a drift, is taken for two bands
more often than the rate of false alarms says. ``benchmarks/validation`` simulates that rate again.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_icbench.stats.quantiles import median

#: Share of the series with one band that are taken for two.
FALSE_ALARMS = 0.01
#: The fewest launches of a band: a single launch far off is an outlier.
FEWEST_OF_A_BAND = 2
#: Bands closer together than this share of the figure do not matter (and can be the steps of a histogram).
LEAST_GAP = 0.01
#: Number of values, and the ratio that one band exceeds with probability ``FALSE_ALARMS``, from 400,000 series.
_CRITICAL = (
    *((6, 53.2), (7, 35.2), (8, 27.0), (9, 22.0), (10, 18.6), (11, 15.9), (12, 14.2), (14, 11.7), (16, 10.1)),
    *((18, 8.96), (20, 8.20), (25, 7.09), (30, 6.42), (35, 6.01), (40, 5.70), (60, 4.97)),
)


@dataclass(frozen=True, slots=True)
class Bands:
    """The two bands of launches.

    Attributes:
        low, high: the median of each band, in the figure's unit.
        launches_low, launches_high: the number of launches in each band.
    """

    low: float
    high: float
    launches_low: int
    launches_high: int


def critical_ratio(n: int) -> float:
    """Returns the ratio above which ``n`` ≥ 6 values are taken for two bands; linear between the simulated numbers."""
    place = bisect_left(_CRITICAL, (n, 0.0))
    if place == len(_CRITICAL):
        return _CRITICAL[-1][1]  # the true ratio is lower, so there are fewer false alarms
    (n1, high) = _CRITICAL[place]
    if n1 == n or place == 0:
        return high
    n0, low = _CRITICAL[place - 1]
    return low + (high - low) * (n - n0) / (n1 - n0)


def find_bands(values: Sequence[float]) -> Bands | None:
    """Returns the two bands; None for fewer than six values, for one band, and for bands that nearly touch."""
    n = len(values)
    if n < _CRITICAL[0][0]:
        return None
    ordered = sorted(values)
    cut, ratio = best_cut(ordered)
    if ratio <= critical_ratio(n) or ordered[cut] - ordered[cut - 1] < LEAST_GAP * abs(median(ordered)):
        return None
    return Bands(median(ordered[:cut]), median(ordered[cut:]), cut, n - cut)


def best_cut(ordered: Sequence[float]) -> tuple[int, float]:
    """Returns the size of the lower part at the best cut, and there the ratio of squares between to squares within."""
    n = len(ordered)
    mean = math.fsum(ordered) / n
    total = math.fsum((value - mean) ** 2 for value in ordered)
    best, between, below = FEWEST_OF_A_BAND, -1.0, 0.0
    for size, value in enumerate(ordered[: n - FEWEST_OF_A_BAND], start=1):
        below += value - mean
        squares = below * below * (1 / size + 1 / (n - size))
        if size >= FEWEST_OF_A_BAND and squares > between:
            best, between = size, squares
    within = total - between
    if within <= 1e-12 * total:  # zero but for rounding
        return best, math.inf if between > 0 else 0.0
    return best, between / within
