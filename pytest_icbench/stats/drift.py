# SPDX-License-Identifier: BSD-3-Clause
"""Finds whether a series drifts along a line. Pure.

The slope is the median of the slopes between all two values (Theil 1950; Sen, "Estimates of the regression coefficient
based on Kendall's tau", Journal of the American Statistical Association 63, 1968), and it counts if Kendall's test
is significant (Mann, "Nonparametric tests against trend", Econometrica 13, 1945). Both are robust to outliers. The
series has to drift without its first value too, since a first launch is often slow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import NormalDist

from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, median

#: Greatest share of false alarms among series without drift.
FALSE_ALARMS = 0.05
#: A line describes the series badly if its residuals are correlated: if von Neumann's ratio ("Distribution of the
#: ratio of the mean square successive difference to the variance", Annals of Mathematical Statistics 12, 1941) is this
#: many standard deviations below its mean.
WANDERING = 0.5


def drift(values: Sequence[float]) -> float | None:
    """Returns the change from the first value to the last over the level, if the values drift along a line.

    None if not, or below six values. A level that wanders is no drift.
    """
    n = len(values)
    level = median(values) if values else 0.0
    if n < FEWEST_LAUNCHES or not level or not (_climbs(values) and _climbs(values[1:])):
        return None
    slope = median([(values[last] - values[first]) / (last - first) for first, last in combinations(range(n), 2)])
    residuals = [value - slope * index for index, value in enumerate(values)]
    mean = math.fsum(residuals) / n
    squares = math.fsum((residual - mean) ** 2 for residual in residuals)
    if squares > 1e-18 * math.fsum(value * value for value in values):  # else zero but for rounding
        successive = math.fsum((after - before) ** 2 for before, after in pairwise(residuals))
        if successive / squares < 2 - WANDERING * 2 * math.sqrt((n - 2) / (n * n - 1)):
            return None
    return slope * (n - 1) / abs(level)


def _climbs(values: Sequence[float]) -> bool:
    """Whether the values rise or fall significantly along the series (two-sided, ``FALSE_ALARMS``)."""
    score = sum((after > before) - (after < before) for before, after in combinations(values, 2))
    return abs(score) >= critical_score(len(values))


def critical_score(n: int) -> int:
    """Returns the critical value of Kendall's score: rises less falls among all pairs of n values.

    It is the normal approximation with a continuity correction of one, as scores differ by two. From five values on it
    is never below the exact one.
    """
    spread = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return math.ceil(NormalDist().inv_cdf(1 - FALSE_ALARMS / 2) * spread + 1)
