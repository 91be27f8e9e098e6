# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles of Student's distribution. Pure."""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist


@cache
def student_quantile(freedom: int, q: float) -> float:
    """Returns a quantile of Student's distribution, within 1 % for 0.9 ≤ q ≤ 0.995, and 0.5 % for ``freedom`` ≥ 4.

    The formula is exact for one and two degrees, else an expansion around the normal quantile (Abramowitz and Stegun,
    "Handbook of Mathematical Functions", 26.7.5).
    """
    if freedom == 1:
        return math.tan(math.pi * (q - 0.5))
    if freedom == 2:
        return (2 * q - 1) / math.sqrt(2 * q * (1 - q))
    z = NormalDist().inv_cdf(q)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))
