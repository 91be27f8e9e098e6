# SPDX-License-Identifier: BSD-3-Clause
"""Weighs a step of a series against dependence of neighbours, which wanders without any step. Pure.

Where a disturbance outlasts the time between two results, a series stays above its level for a while, and below it for
another. To take that for a step is an error that no test for independent values bounds. The test here is the
likelihood ratio for a step of the mean of correlated values (Kim, "Change-point detection for correlated observations",
Statistica Sinica 6, 1996), with errors of a first-order autoregression. The correlation is estimated with the step and
without it. So what looks like a step may be explained by a greater correlation instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

#: Correlations of neighbours that are tried. With a greater one there is no level from which a step could lead away.
CORRELATIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
#: The least part of a series' squares that is taken for noise.
_LEAST_NOISE = 1e-12


@dataclass(frozen=True, slots=True)
class _Product:
    """The product of two columns, weighed by the inverse covariance of an autoregression of variance 1 - rho²."""

    plain: float
    beside: float
    inner: float

    @classmethod
    def of(cls, one: Sequence[float], other: Sequence[float]) -> _Product:
        both = [a * b for a, b in zip(one, other, strict=True)]
        crossed = (a * d + c * b for (a, c), (b, d) in zip(pairwise(one), pairwise(other), strict=True))
        return cls(math.fsum(both), math.fsum(crossed), math.fsum(both[1:-1]))

    def at(self, correlation: float) -> float:
        return self.plain - correlation * self.beside + correlation * correlation * self.inner


def step_log_likelihood(values: Sequence[float], place: int) -> float:
    """Returns by how much a step makes values likelier: twice the logarithm of the likelihood ratio, at least 0.

    Args:
        values: in the order of time; not all equal.
        place: the index of the first value after the step, 1 to the number of values less 1.
    """
    n = len(values)
    mean = math.fsum(values) / n
    y = [value - mean for value in values]
    before, after = [1.0] * place + [0.0] * (n - place), [0.0] * place + [1.0] * (n - place)
    products = [_Product.of(*columns) for columns in ((y, y), (before, y), (after, y), (before, before))]
    products += [_Product.of(before, after), _Product.of(after, after)]
    noise = _LEAST_NOISE * products[0].plain
    with_step, without = -math.inf, -math.inf
    for correlation in CORRELATIONS:
        yy, ay, by, aa, ab, bb = (product.at(correlation) for product in products)
        one_level = yy - (ay + by) ** 2 / (aa + 2 * ab + bb)
        two_levels = yy - (bb * ay * ay - 2 * ab * ay * by + aa * by * by) / (aa * bb - ab * ab)
        first = math.log(1 - correlation * correlation)
        without = max(without, first - n * math.log(max(one_level, noise)))
        with_step = max(with_step, first - n * math.log(max(two_levels, noise)))
    return max(with_step - without, 0.0)
