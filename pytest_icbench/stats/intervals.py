# SPDX-License-Identifier: BSD-3-Clause
"""Computes the interval of a figure over launches, in the order in which they ran. Pure.

The estimate is the median over launches of one case on one host during the time of the case. The launches need neither
follow a bell curve nor lie in one band:

* The interval is that of the sign test. It is interpolated between order statistics, so that its coverage is as stated
  for any number of launches, not only where the binomial distribution happens to come near (Hettmansperger and
  Sheather, "Confidence intervals based on interpolated order statistics", Statistics & Probability Letters 4, 1986).
* Launches in two bands are not interpolated, because no launch lies between the bands.
* A drift along a straight line is removed first. It would widen the interval although the level in the middle of the
  case's time is no less certain. A level that wanders is left as it is, and widens the interval.

``benchmarks/validation`` shows the coverage by simulation, stopping rule included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import NormalDist

from pytest_icbench.stats.bands import Bands, find_bands
from pytest_icbench.stats.quantiles import CONFIDENCE, FEWEST_LAUNCHES, Estimate, median, median_rank

#: Coverage, at a fixed number of launches, of intervals whose width decides when to stop; six launches can have it.
#: Repeated looks cost up to three points of it, so that the simulated machines lie evenly around 95 %.
LOOKED_CONFIDENCE = 0.966
#: Share of the series without any drift in which one is found.
DRIFT_FALSE_ALARMS = 0.05
#: A line describes the series badly if its residuals follow each other: if von Neumann's ratio is this many standard
#: deviations below its mean.
WANDERING = 0.5


@dataclass(frozen=True, slots=True)
class LaunchEstimate:
    """A median over launches, with the bands or the drift in them.

    Attributes:
        estimate: with an interval from six launches on; ``coverage`` is nominal.
        bands: the two bands into which the launches fall, or None.
        drift: change of the level from the first to the last launch, over the level; None without a straight drift.
    """

    estimate: Estimate
    bands: Bands | None = None
    drift: float | None = None


def over_launches(values: Sequence[float], confidence: float = CONFIDENCE) -> LaunchEstimate:
    """Returns the median of a figure over launches with its interval.

    Args:
        values: the figure of each launch, in order of time.
        confidence: of the interval at a fixed number of launches; at most 31/32, else six launches have none.

    Raises:
        ValueError: no values.
    """
    bands = find_bands(values)
    if bands is not None:
        return LaunchEstimate(_by_rank(values, CONFIDENCE), bands)
    slope = find_slope(values)
    if slope is None:
        return LaunchEstimate(interpolated(values, confidence))
    level, residuals = _residuals(values, slope)
    # A fitted line lies nearer to its points than the true one.
    widened = math.sqrt((len(values) - 1) / (len(values) - 2))
    estimate = interpolated([level + residual * widened for residual in residuals], confidence)
    return LaunchEstimate(estimate, drift=slope * (len(values) - 1) / abs(level) if level else None)


def median_over_launches(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Returns the estimate of ``over_launches`` alone."""
    return over_launches(values, confidence).estimate


def _by_rank(values: Sequence[float], confidence: float) -> Estimate:
    ordered = sorted(values)
    ranked = median_rank(len(ordered), confidence)
    if ranked is None:
        return Estimate(median(ordered))
    rank, _ = ranked
    return Estimate(median(ordered), ordered[rank - 1], ordered[-rank], confidence)


def interpolated(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Returns the median with Hettmansperger and Sheather's interval; below six values at 95 % without one."""
    ordered = sorted(values)
    weights = _weights(len(ordered), confidence)
    if weights is None:
        return Estimate(median(ordered))
    rank, share = weights
    low = _between(ordered[rank - 1], ordered[rank], share)
    high = _between(ordered[-rank], ordered[-rank - 1], share)
    return Estimate(median(ordered), low, high, confidence)


def _between(outer: float, inner: float, share: float) -> float:
    return outer if outer == inner else outer + (inner - outer) * share


@cache
def _weights(n: int, confidence: float) -> tuple[int, float] | None:
    """Returns the outer rank, and how far the interval's ends lie from it towards the next inner rank, from 0 to 1."""
    ranked = median_rank(n, confidence)
    if ranked is None:
        return None
    rank, coverage = ranked
    if rank >= n // 2:
        return rank, 0.0
    inner = coverage - 2 * math.comb(n, rank) / 2**n
    excess = (coverage - confidence) / (coverage - inner)
    return rank, (n - rank) * excess / (rank + (n - 2 * rank) * excess)


def find_slope(values: Sequence[float]) -> float | None:
    """Returns the change from launch to launch if the values drift along a line, else None.

    The least squares line counts if its slope is significant (two-sided t-test, ``DRIFT_FALSE_ALARMS``) and if its
    residuals follow no pattern (von Neumann, "Distribution of the ratio of the mean square successive difference
    to the variance", Annals of Mathematical Statistics 12, 1941). It takes six values.
    """
    n = len(values)
    if n < FEWEST_LAUNCHES or min(values) == max(values):
        return None
    centre = (n - 1) / 2
    squares = n * (n * n - 1) / 12
    slope = math.fsum((index - centre) * value for index, value in enumerate(values)) / squares
    _, residuals = _residuals(values, slope)
    error = math.fsum(residual * residual for residual in residuals)
    if error == 0:
        return slope
    if abs(slope) <= student_quantile(n - 2, 1 - DRIFT_FALSE_ALARMS / 2) * math.sqrt(error / (n - 2) / squares):
        return None
    successive = math.fsum((after - before) ** 2 for before, after in pairwise(residuals))
    wanders = successive / error < 2 - WANDERING * 2 * math.sqrt((n - 2) / (n * n - 1))
    return None if wanders else slope


def _residuals(values: Sequence[float], slope: float) -> tuple[float, list[float]]:
    """Returns the level in the middle of the series, and the distance of each value from the line."""
    centre = (len(values) - 1) / 2
    level = math.fsum(values) / len(values)
    return level, [value - level - slope * (index - centre) for index, value in enumerate(values)]


@cache
def student_quantile(freedom: int, q: float) -> float:
    """Returns a quantile of Student's distribution, within 0.5 % for ``freedom`` ≥ 4 and 0.9 ≤ q ≤ 0.995.

    The formula is an expansion around the normal quantile (Abramowitz and Stegun, "Handbook of Mathematical Functions",
    26.7.5).
    """
    z = NormalDist().inv_cdf(q)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))
