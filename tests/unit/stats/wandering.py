# SPDX-License-Identifier: BSD-3-Clause
"""Series whose level stays and whose disturbance lasts: each value inherits a share of the one before."""

from __future__ import annotations

import math
from random import Random


def wandering(random: Random, count: int, correlation: float, deviation: float) -> list[float]:
    """Returns values around 100; neighbours correlate, and ``deviation`` is their standard deviation as a share."""
    values, now = [], random.gauss(0, 1)
    for _ in range(count):
        values.append(100 * math.exp(deviation * now))
        now = correlation * now + random.gauss(0, math.sqrt(1 - correlation * correlation))
    return values
