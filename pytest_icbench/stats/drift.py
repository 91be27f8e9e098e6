# SPDX-License-Identifier: BSD-3-Clause
"""Finds whether a series drifts along a line. Pure.

The slope is the median of the slopes between all two values (Theil 1950; Sen, "Estimates of the regression coefficient
based on Kendall's tau", Journal of the American Statistical Association 63, 1968), and it counts if Kendall's test
says so (Mann, "Nonparametric tests against trend", Econometrica 13, 1945). Neither follows a few outlying values. The
series has to drift without its first value too: a first launch is often slow, and no line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from statistics import NormalDist

from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, median

#: Greatest share of the series without any drift in which one is found.
FALSE_ALARMS = 0.05
#: A line describes the series badly if its residuals follow each other: if von Neumann's ratio ("Distribution of the
#: ratio of the mean square successive difference to the variance", Annals of Mathematical Statistics 12, 1941) is this
#: many standard deviations below its mean.
WANDERING = 0.5
#: The most values for which Kendall's distribution is counted exactly; beyond them the normal one is as good.
MOST_EXACT = 60


def find_slope(values: Sequence[float]) -> float | None:
    """Returns the change from value to value if the series drifts along a line, else None. It takes six values.

    A level that wanders without a line is none.
    """
    n = len(values)
    if n < FEWEST_LAUNCHES or not (_climbs(values) and _climbs(values[1:])):
        return None
    slope = theil_sen(values)
    residuals = [value - slope * index for index, value in enumerate(values)]
    level = math.fsum(residuals) / n
    squares = math.fsum((residual - level) ** 2 for residual in residuals)
    if squares <= 1e-18 * math.fsum(value * value for value in values):  # zero but for rounding
        return slope
    successive = math.fsum((after - before) ** 2 for before, after in pairwise(residuals))
    wanders = successive / squares < 2 - WANDERING * 2 * math.sqrt((n - 2) / (n * n - 1))
    return None if wanders else slope


def theil_sen(values: Sequence[float]) -> float:
    """Returns the median slope between any two of at least two values, per place."""
    n = len(values)
    return median([(values[last] - values[first]) / (last - first) for last in range(n) for first in range(last)])


def _climbs(values: Sequence[float]) -> bool:
    """Whether the values go one way along the series, up or down (two-sided, ``FALSE_ALARMS``)."""
    n = len(values)
    score = sum(
        (after > before) - (after < before) for place, before in enumerate(values) for after in values[place + 1 :]
    )
    return abs(score) >= critical_score(n)


@cache
def critical_score(n: int) -> int:
    """Returns the least score of Kendall (rises less falls among all pairs of n values) that is no chance.

    Beyond ``n (n - 1) / 2``, which no series reaches, if even a series that always climbs can be one.
    """
    pairs = n * (n - 1) // 2
    if n > MOST_EXACT:
        spread = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
        return math.ceil(NormalDist().inv_cdf(1 - FALSE_ALARMS / 2) * spread + 1)
    counts = [1]  # of the orders of values, by the number of their falls
    for length in range(2, n + 1):
        longer = [0] * (len(counts) + length - 1)
        for falls, count in enumerate(counts):
            for more in range(length):
                longer[falls + more] += count
        counts = longer
    total, beyond = math.factorial(n), 0
    for falls, count in enumerate(counts):
        beyond += count
        if 2 * beyond > FALSE_ALARMS * total:
            return pairs - 2 * falls + 2
    return pairs + 2
