# SPDX-License-Identifier: BSD-3-Clause
"""Finds the change points of a series: where its level changes. Pure.

A series is cut in two where a step explains it best, and so is each part, until no significant step is left (binary
segmentation: Scott and Knott, "A cluster analysis method for grouping means in the analysis of
variance", Biometrics 30, 1974). Only nearby points count, so that a later change does not hide an earlier one.
Four things are no change:

* Dependence. If a disturbance lasts longer than the time between two results, the series stays off its level for a
  while. The test is the likelihood ratio for a step of the mean of correlated values (Kim, "Change-point detection for
  correlated observations", Statistica Sinica 6, 1996), with errors of a first-order autoregression. Its correlation is
  estimated with the step and without it, so that a greater correlation may explain an apparent step.
* Outliers. A point far from its neighbours' median is replaced by it (Hampel's identifier, "The influence curve and its
  role in robust estimation", Journal of the American Statistical Association 69, 1974), unless it is among the last
  ones: those may be the beginning of a new level.
* A run within one of two random bands: the measured points of both sides have to differ significantly (Mann and
  Whitney's interval, ``FALSE_ALARMS`` divided by the number of places at which a series can change).
* A step between two medians that is smaller than the least effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations_with_replacement, pairwise

from pytest_icbench.stats.quantiles import median, stratified_ratio

#: A change of the level by less than this share does not matter.
LEAST_EFFECT = 0.03
#: The fewest points of a level: fewer are an outlier, or not yet known to be a change.
FEWEST = 3
#: Points on each side that are compared: for a level that lasts, and for a short one.
REACHES = (40, 10)
#: An outlier is compared with this many neighbours on each side, and is this many of their deviations away.
NEIGHBOURS, FAR = 3, 4.0
#: Greatest share of false alarms among series without a change.
FALSE_ALARMS = 0.05
#: The critical value of twice the log-likelihood ratio: set by simulation, such that ``FALSE_ALARMS`` holds in series
#: of up to ``CRITICAL_LENGTH`` points whose neighbours correlate by up to 0.9 (``benchmarks/validation``).
CRITICAL_VALUE, CRITICAL_LENGTH = 18.0, 50
#: Correlations of neighbours that are tried. With a greater one the series has no level that could change.
CORRELATIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
#: The least part of a series' squares that is taken for noise.
_LEAST_NOISE = 1e-12
#: Factor from the median absolute deviation of a normal distribution to its standard deviation.
_DEVIATIONS = 1.4826


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a series: points ``first`` to ``last`` (both included, from 0) lie around ``value``, their median."""

    first: int
    last: int
    value: float


def levels(values: Sequence[float], least_effect: float = LEAST_EFFECT) -> list[Level]:
    """Returns the levels of a series in order. Each point belongs to one; the next level begins at a change point.

    Args:
        values: in order of time.
        least_effect: a share of the lower of two levels.
    """
    if not values:
        return []
    # Neither squares nor sums of shares of the greatest value overflow.
    greatest = max(map(abs, values)) or 1.0
    shares = [value / greatest for value in values]
    calm, parts, bounds = _calmed(shares), [(0, len(values))], [0, len(values)]
    while parts:
        first, last = parts.pop()
        if (place := _change(shares, calm, first, last)) is not None:
            parts += [(first, place), (place, last)]
            bounds.append(place)
    bounds.sort()
    while True:
        middles = [median(values[a:b]) for a, b in pairwise(bounds)]
        steps = [_step(a, b) for a, b in pairwise(middles)]
        if not steps or min(steps) >= least_effect:
            return [Level(a, b - 1, middle) for (a, b), middle in zip(pairwise(bounds), middles, strict=True)]
        del bounds[steps.index(min(steps)) + 1]


def _calmed(values: Sequence[float]) -> list[float]:
    """Returns the series with its outliers replaced by their neighbours' median."""
    calm = list(values)
    for place in range(len(values) - FEWEST):
        around = [*values[max(place - NEIGHBOURS, 0) : place], *values[place + 1 : place + 1 + NEIGHBOURS]]
        middle = median(around)
        spread = _DEVIATIONS * median([abs(value - middle) for value in around])
        if abs(values[place] - middle) > FAR * spread:
            calm[place] = middle
    return calm


def _change(values: Sequence[float], calm: Sequence[float], first: int, last: int) -> int | None:
    """Returns the likeliest place of a step among values ``first`` to ``last`` - 1; None if it is not significant.

    A longer series has more places for a step by chance, so its critical value is greater (Bonferroni).
    """
    likeliest = _likeliest(calm[first:last])
    if likeliest is None:
        return None
    begin, place, end = (first + index for index in likeliest)
    old, new = values[begin:place], values[place:end]
    if min(*old, *new) > 0:  # else they have no ratio
        ratio = stratified_ratio([(new, old)], 1 - FALSE_ALARMS / len(values))
        if ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
            return None
    critical = CRITICAL_VALUE + 2 * math.log(max(len(values) / CRITICAL_LENGTH, 1.0))
    return place if step_log_likelihood(calm[begin:end], place - begin) > critical else None


def _likeliest(values: Sequence[float]) -> tuple[int, int, int] | None:
    """Returns where a step explains independent values best: the first point compared, its place, and the end."""
    n = len(values)
    mean = math.fsum(values) / n
    sums = [0.0, *accumulate(value - mean for value in values)]
    squares = [0.0, *accumulate((value - mean) ** 2 for value in values)]
    best, found = 0.0, None
    for reach in REACHES:
        for place in range(FEWEST, n - FEWEST + 1):
            first, last = max(place - reach, 0), min(place + reach, n)
            before, after, count = place - first, last - place, last - first
            total = squares[last] - squares[first] - (sums[last] - sums[first]) ** 2 / count
            step = (sums[place] - sums[first]) / before - (sums[last] - sums[place]) / after
            rest = max(total - step * step * before * after / count, _LEAST_NOISE * squares[-1])
            added = count * math.log(total / rest) if total > rest else 0.0
            if added > best:
                best, found = added, (first, place, last)
    return found


def step_log_likelihood(values: Sequence[float], place: int) -> float:
    """Returns twice the log-likelihood ratio of a step; at least 0.

    Args:
        values: in the order of time; not all equal.
        place: the index of the first value after the step, 1 to the number of values less 1.
    """
    n = len(values)
    mean = math.fsum(values) / n
    y = [value - mean for value in values]
    noise = _LEAST_NOISE * _product(y, y)
    without, with_step = -math.inf, -math.inf
    for correlation in CORRELATIONS:
        columns = [1.0] * place + [0.0] * (n - place), [0.0] * place + [1.0] * (n - place), y
        whitened = [_whitened(column, correlation) for column in columns]
        aa, ab, ay, bb, by, yy = (_product(*both) for both in combinations_with_replacement(whitened, 2))
        one_level = yy - (ay + by) ** 2 / (aa + 2 * ab + bb)
        two_levels = yy - (bb * ay * ay - 2 * ab * ay * by + aa * by * by) / (aa * bb - ab * ab)
        first = math.log(1 - correlation * correlation)
        without = max(without, first - n * math.log(max(one_level, noise)))
        with_step = max(with_step, first - n * math.log(max(two_levels, noise)))
    return max(with_step - without, 0.0)


def _whitened(column: Sequence[float], correlation: float) -> list[float]:
    """Returns a column without the correlation of each value with the one before; its variance is 1 - correlation²."""
    first = math.sqrt(1 - correlation * correlation) * column[0]
    return [first, *(after - correlation * before for before, after in pairwise(column))]


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _step(before: float, after: float) -> float:
    """Returns the change between two levels as a share of the lower one."""
    least = min(abs(before), abs(after))
    return abs(after - before) / least if least else float("inf") if before != after else 0.0
