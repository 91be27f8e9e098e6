# SPDX-License-Identifier: BSD-3-Clause
"""Computes intervals: of a figure over launches in the order of time, of a ratio over pairs, of one more session. Pure.

The estimate is the median over a case's launches. They need neither be normally distributed nor independent:

* The interval is that of the sign test. It is interpolated between order statistics, so that its coverage is as stated
  for any number of launches, not only where the binomial distribution comes close (Hettmansperger and
  Sheather, "Confidence intervals based on interpolated order statistics", Statistics & Probability Letters 4, 1986).
* Dependence between launches widens it (``stats.dependence``). So do a drift and a wandering level. None of them is
  removed, since a case does not show what its level would have been later.

A percentile of all round trips, or their mean, differs from the median over launches, since the slowest launches
determine a high percentile (``estimate_over_merged``). The contribution of a launch is found by leaving it out (the
grouped jackknife: Tukey, "Bias and confidence in not-quite large samples", Annals of Mathematical Statistics 29, 1958;
Shao and Tu, "The Jackknife and Bootstrap", 2.3), on logarithms, since such figures are positive and skewed.
A sample seldom has the slowest possible launches, so the upper half-width is ``UPWARD`` times the lower one, a factor
chosen by simulation. Both ends lie within the range of all samples.

Two versions are launched in adjacent pairs (``estimate_ratio``). Within a pair the machine is the same for both, and
the version that comes first changes from pair to pair. Suppose that one version is the other times a factor. Then the
logarithm of a pair's ratio is distributed symmetrically around the logarithm of the factor, whatever the distribution
of a launch is. Wilcoxon's signed ranks assume nothing else. The estimate is Hodges and Lehmann's, the median of the
means of all two ratios (each with itself too), and the interval is the exact one of Tukey (Hollander, Wolfe and
Chicken, "Nonparametric Statistical Methods", 3rd ed., 3.2 and 3.3), both on logarithms. Six pairs are the fewest with
an interval of 95 %: the range of their ratios.

Each session has another level, by the placement of memory, other processes, the host's temperature. Its launches do
not show that, however many there are, so the unit is the session (Kalibera and Jones, "Rigorous benchmarking in
reasonable time", International Symposium on Memory Management 2013), and counts by the median of its launches. The
interval of a change is a prediction interval for one more session: Student's, over the logarithms of these values (Hahn
and Meeker, "Statistical Intervals", 4.7). It takes two sessions, and is wide then. An accepted change begins a new
level. The sessions before it still contribute to the spread, but not to the mean.

``benchmarks/validation`` shows the coverage by simulation, stopping rule included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean

from pytest_icbench.stats.dependence import widened, widening
from pytest_icbench.stats.quantiles import (
    CONFIDENCE,
    FEWEST_LAUNCHES,
    MOST,
    Estimate,
    deepest_rank,
    median,
    student_quantile,
)

#: The fewest units (rigs, rounds) that have a spread.
FEWEST_UNITS = 3
#: The upper half-width over the lower one of ``estimate_over_merged``.
UPWARD = 1.3
#: The most pairs with an exact distribution. With more, the normal approximation is as good.
MOST_EXACT = 120


def over_launches(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Returns the median of a figure over launches with its interval, from six launches on.

    Args:
        values: the figure of each launch, in order of time.
        confidence: at a fixed number of launches; at most 31/32, else six launches have no interval.

    Raises:
        ValueError: no values.
    """
    return widened(interpolated(values, confidence), widening(values))


def estimate_over_rounds(rounds: Sequence[Sequence[float]]) -> Estimate:
    """Returns a figure over several rounds, each at another time and on rebuilt rigs.

    Launches of a round share its level, so the unit is the round, which counts by the median of its launches. The
    estimate is the geometric mean of the rounds with Student's interval, from three rounds on.

    Raises:
        ValueError: no values.
    """
    values = [value for launches in rounds for value in launches]
    if min(values) <= 0:
        return over_launches(values)
    return estimate_over_units([median(launches) for launches in rounds if launches])


def estimate_over_units(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Returns the geometric mean of the units' values with Student's interval on logarithms; below three without one.

    Raises:
        ValueError: there is no value, or one is not positive.
    """
    if not values or min(values) <= 0:
        raise ValueError("a level takes positive values of one unit at least")
    logs, n = [math.log(value) for value in values], len(values)
    level = math.fsum(logs) / n
    if n < FEWEST_UNITS:
        return Estimate(math.exp(level))
    variance = math.fsum((value - level) ** 2 for value in logs) / (n - 1)
    arm = student_quantile(n - 1, (1 + confidence) / 2) * math.sqrt(variance / n)
    return Estimate(math.exp(level), math.exp(level - arm), math.exp(min(level + arm, MOST)), confidence)


def estimate_over_merged(
    whole: float, without: Sequence[float], samples: tuple[float, float] = (0.0, math.inf)
) -> Estimate:
    """Returns the figure of all launches with its interval; without one below six launches, and if some are 0.

    Args:
        whole: the figure of all launches together.
        without: the figure of all launches but one, for each launch in the order of time.
        samples: the least and the greatest sample of all launches.
    """
    n = len(without)
    if n >= FEWEST_LAUNCHES and min(without) == max(without) == whole:
        return Estimate(whole, whole, whole, CONFIDENCE)
    if n < FEWEST_LAUNCHES or min(whole, *without) <= 0:
        return Estimate(whole)
    logs = [math.log(value) for value in without]
    centre = math.log(whole)
    # Around the whole instead of the mean: a percentile of counts moves to one side only.
    error = math.sqrt((n - 1) / n * math.fsum((value - centre) ** 2 for value in logs))
    arm = student_quantile(n - 1, (1 + CONFIDENCE) / 2) * error * widening([-value for value in logs])
    least, greatest = samples
    low = max(math.exp(centre - arm), min(least, whole))
    return Estimate(whole, low, min(math.exp(min(centre + UPWARD * arm, MOST)), max(greatest, whole)), CONFIDENCE)


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
    """Returns the outer rank, and the position of the interval's end from it (0) to the next inner rank (1).

    From the r-th least to the r-th greatest value the sign test covers 1 - 2 P(B < r) with B binomial(n, 1/2) (David
    and Nagaraja, "Order Statistics", 3rd ed., 7.1). None when even the range covers less than the confidence.
    """
    rank, coverage = 0, 1.0
    while rank < n // 2 and (less := coverage - 2 * math.comb(n, rank) / 2**n) >= confidence:
        rank, coverage = rank + 1, less
    if rank in (0, n // 2):
        return (rank, 0.0) if rank else None
    excess = (coverage - confidence) / (2 * math.comb(n, rank) / 2**n)
    return rank, (n - rank) * excess / (rank + (n - 2 * rank) * excess)


def estimate_ratio(ratios: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Returns now over before for adjacent pairs, by their ratios.

    The estimate has no interval if there are too few pairs for the confidence (see ``fewest_pairs``).

    Raises:
        ValueError: there are no ratios, or one is not positive.
    """
    if not ratios or min(ratios) <= 0:
        raise ValueError("a change needs pairs of positive values")
    logs = [math.log(ratio) for ratio in ratios]
    means = sorted((a + b) / 2 for place, a in enumerate(logs) for b in logs[place:])
    ranked = signed_rank(len(logs), confidence)
    if ranked is None:
        return Estimate(math.exp(median(means)))
    rank, coverage = ranked
    return Estimate(math.exp(median(means)), math.exp(means[rank - 1]), math.exp(means[-rank]), coverage)


@cache
def signed_rank(n: int, confidence: float = CONFIDENCE) -> tuple[int, float] | None:
    """Returns the rank k such that [k-th least, k-th greatest] of the n(n + 1)/2 means covers the centre.

    Its coverage, returned too, is 1 - 2 P(T < k) with T Wilcoxon's statistic, exact up to ``MOST_EXACT`` pairs. None
    when even the range (k = 1) covers less than ``confidence``.
    """
    total = n * (n + 1) // 2
    if n > MOST_EXACT:
        spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        rank = math.floor(total / 2 - NormalDist().inv_cdf((1 + confidence) / 2) * spread)
        return (rank, confidence) if rank >= 1 else None
    counts = [1]  # of the subsets of 1 … n by their sum, from 0
    for rank in range(1, n + 1):
        counts = [a + b for a, b in zip(counts + [0] * rank, [0] * rank + counts, strict=True)]
    return deepest_rank(counts, 2**n, confidence)


def fewest_pairs(confidence: float) -> int:
    """Returns the fewest pairs with an interval of this confidence: the range of n covers 1 - 2 / 2**n."""
    return max(math.ceil(math.log2(2 / (1 - confidence)) - 1e-9), 1)


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of sessions: the standard deviation of their logarithms, and its degrees of freedom."""

    deviation: float
    freedom: int


def estimate_spread(levels: Sequence[Sequence[float]]) -> Spread | None:
    """Returns the spread of sessions within their levels, pooled; None if no level has two sessions."""
    freedom, squares = 0, 0.0
    for level in levels:
        logarithms = [math.log(value) for value in level]
        mean = fmean(logarithms)
        freedom += len(logarithms) - 1
        squares += math.fsum((value - mean) ** 2 for value in logarithms)
    return Spread(math.sqrt(squares / freedom), freedom) if freedom else None


def change_half_width(spread: Spread, sessions: int, confidence: float) -> float:
    """Returns the half-width of the interval of a change, on the scale of logarithms.

    Args:
        sessions: the number of sessions at the newest level.
        confidence: two-sided, from 0 to below 1.
    """
    quantile = student_quantile(spread.freedom, (1 + confidence) / 2)
    return quantile * spread.deviation * math.sqrt(1 + 1 / sessions)


def estimate_change_of_level(now: float, levels: Sequence[Sequence[float]]) -> Estimate:
    """Returns a new session's value over the geometric mean of the newest level; a single session has no interval.

    Args:
        now: the value of the new session.
        levels: the value of each earlier session, level by level, the newest level last; no level is empty.

    Raises:
        ValueError: a value is not positive.
    """
    if min(now, *(value for level in levels for value in level)) <= 0:
        raise ValueError("a change needs positive medians")
    change, spread = math.log(now) - fmean(math.log(value) for value in levels[-1]), estimate_spread(levels)
    if spread is None:
        return Estimate(math.exp(change))
    reach = change_half_width(spread, len(levels[-1]), CONFIDENCE)
    low, high = (math.exp(min(max(end, -MOST), MOST)) for end in (change - reach, change + reach))
    return Estimate(math.exp(change), low, high, CONFIDENCE)


def widen_like(value: Estimate, change: Estimate) -> Estimate:
    """Returns a value with an interval that is relatively at least as wide as that of its change.

    The interval over a session's launches does not include the spread of sessions; that of a change over sessions
    (``estimate_change_of_level``) does. So the wider one holds the value of another session.
    """
    if value.low is None or value.high is None or change.low is None or change.high is None:
        return value
    low, high = (value.value * (end / change.value) for end in (change.low, change.high))
    return Estimate(value.value, min(value.low, low), max(value.high, high), value.coverage)
