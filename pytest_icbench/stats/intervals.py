# SPDX-License-Identifier: BSD-3-Clause
"""Computes the interval of a figure over launches, in the order in which they ran. Pure.

The estimate is the median over launches of one case on one host during the time of the case. The launches need neither
follow a bell curve nor lie in one band, nor be independent of each other:

* The interval is that of the sign test. It is interpolated between order statistics, so that its coverage is as stated
  for any number of launches, not only where the binomial distribution happens to come near (Hettmansperger and
  Sheather, "Confidence intervals based on interpolated order statistics", Statistics & Probability Letters 4, 1986).
* Launches in two bands are not interpolated, because no launch lies between the bands.
* Launches that seem to depend on each other widen it (``stats.dependence``). So do a drift and a level that wanders:
  nobody knows from one case's time what the level would have been later, so none of them is taken out.

``benchmarks/validation`` shows the coverage by simulation, stopping rule included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from pytest_icbench.stats.bands import Bands, find_bands
from pytest_icbench.stats.dependence import Dependence, find_dependence, widened
from pytest_icbench.stats.drift import find_slope
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate, median, median_estimate, median_rank
from pytest_icbench.stats.student import over_units

#: Confidence, at a fixed number, of an interval whose width decides when to stop, where few looks would be enough:
#: repeated looks cost up to three points of coverage.
LOOKED_CONFIDENCE = 0.966


@dataclass(frozen=True, slots=True)
class LaunchEstimate:
    """A median over launches, with the bands and the dependence in them.

    Attributes:
        estimate: with an interval from six launches on; ``coverage`` is nominal but for two bands.
        bands: the two bands into which the launches fall, or None.
        dependence: how launches depend on those before them; None below six launches, and for equal ones.
    """

    estimate: Estimate
    bands: Bands | None = None
    dependence: Dependence | None = None


def over_launches(values: Sequence[float], confidence: float = CONFIDENCE) -> LaunchEstimate:
    """Returns the median of a figure over launches with its interval.

    Args:
        values: the figure of each launch, in order of time.
        confidence: of the interval at a fixed number of launches; at most 31/32, else six launches have none.

    Raises:
        ValueError: no values.
    """
    bands = find_bands(values)
    plain = interpolated(values, confidence) if bands is None else median_estimate(values, confidence)
    dependence = find_dependence(values)
    if dependence is None:
        return LaunchEstimate(plain, bands)
    return LaunchEstimate(widened(plain, dependence.widening), bands, dependence)


def over_rounds(rounds: Sequence[Sequence[float]], confidence: float = CONFIDENCE) -> LaunchEstimate:
    """Returns a figure over the launches of several rounds, apart in time and on rigs of their own.

    What a round draws, all its launches share: the unit is the round, which counts by the median of its launches. The
    estimate is their geometric mean with Student's interval, from three rounds on.

    Raises:
        ValueError: no values.
    """
    values = [value for launches in rounds for value in launches]
    if min(values) <= 0:
        return over_launches(values, confidence)
    dependence = find_dependence(values)
    if dependence is not None:  # the rounds hold what launches share, so it widens nothing
        dependence = replace(dependence, widening=1.0)
    estimate = over_units([median(launches) for launches in rounds if launches], confidence)
    return LaunchEstimate(estimate, find_bands(values), dependence)


def drift_over_launches(values: Sequence[float]) -> float | None:
    """Returns the change from the first launch to the last over the level, if the launches drift along a line."""
    slope = find_slope(values)
    level = median(values) if values else 0.0
    return None if slope is None or not level else slope * (len(values) - 1) / abs(level)


def median_over_launches(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Returns the estimate of ``over_launches`` alone."""
    return over_launches(values, confidence).estimate


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
