# SPDX-License-Identifier: BSD-3-Clause
"""Student's distribution, and its intervals over a few units, and for a figure of all launches together. Pure.

``estimate_over_merged`` is for a percentile of all round trips, or their mean. It differs from the median over
launches, since the slowest launches determine a high percentile. The contribution of a launch is found by leaving it
out (the grouped jackknife: Tukey, "Bias and confidence in not-quite large samples", Annals of Mathematical Statistics
29, 1958; Shao and Tu, "The Jackknife and Bootstrap", 2.3), on the scale of logarithms, since such figures are positive
and skewed. A sample seldom has the slowest possible launches, so the upper half-width is ``UPWARD`` times the lower
one, a factor chosen by the simulations of ``benchmarks/validation``. Both ends lie within the range of all samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from pytest_icbench.stats.dependence import widening
from pytest_icbench.stats.quantiles import CONFIDENCE, FEWEST_LAUNCHES, Estimate

#: The fewest units (rigs, rounds) that have a spread.
FEWEST_UNITS = 3
#: The upper half-width over the lower one.
UPWARD = 1.3
#: Greatest logarithm of the end of an interval: with two units it could overflow.
MOST = 700.0
#: Halvings of the interval in which a quantile lies: more than a float's precision needs.
_HALVINGS = 80


@cache
def student_quantile(freedom: int, q: float) -> float:
    """Returns a quantile of Student's distribution, exact but for rounding.

    Args:
        freedom: degrees of freedom, at least 1.
        q: the probability below it, from 0.5 to below 1.
    """
    low, high = 0.0, math.pi / 2  # angles whose tangent is t / sqrt(freedom)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(freedom, middle) < 2 * q - 1 else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _within(freedom: int, angle: float) -> float:
    """Returns the probability of a value between -t and t, by the finite series for a whole number of degrees.

    The series are those of Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.
    """
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for step in range(1 + odd, freedom, 2):
        total += term
        term *= step / (step + 1) * cosine * cosine
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


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
    whole: float,
    without: Sequence[float],
    samples: tuple[float, float] = (0.0, math.inf),
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Returns the figure of all launches with its interval; without one below six launches, and if some are 0.

    Args:
        whole: the figure of all launches together.
        without: the figure of all launches but one, for each launch in the order of time.
        samples: the least and the greatest sample of all launches.
    """
    n = len(without)
    if n >= FEWEST_LAUNCHES and min(without) == max(without) == whole:
        return Estimate(whole, whole, whole, confidence)
    if n < FEWEST_LAUNCHES or min(whole, *without) <= 0:
        return Estimate(whole)
    logs = [math.log(value) for value in without]
    centre = math.log(whole)
    # Around the whole instead of the mean: a percentile of counts moves to one side only.
    error = math.sqrt((n - 1) / n * math.fsum((value - centre) ** 2 for value in logs))
    arm = student_quantile(n - 1, (1 + confidence) / 2) * error * widening([-value for value in logs])
    least, greatest = samples
    low = max(math.exp(centre - arm), min(least, whole))
    return Estimate(whole, low, min(math.exp(min(centre + UPWARD * arm, MOST)), max(greatest, whole)), confidence)
