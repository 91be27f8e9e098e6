# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles of Student's distribution, and its interval over a few units. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate

#: The fewest units (rigs, rounds) that tell how far units lie apart.
FEWEST_UNITS = 3
#: Halvings of the interval in which a quantile lies: beyond a float's precision.
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


def over_units(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
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
    return Estimate(math.exp(level), math.exp(level - arm), math.exp(min(level + arm, 700.0)), confidence)
