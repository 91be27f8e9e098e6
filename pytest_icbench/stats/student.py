# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles of Student's distribution. Pure."""

from __future__ import annotations

import math
from functools import cache

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
