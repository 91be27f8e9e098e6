# SPDX-License-Identifier: BSD-3-Clause
"""Computes the ratio of two versions' figures, launched in adjacent pairs, with its interval. Pure.

Within a pair the machine is the same for both versions, and the version that comes first changes from pair to pair.
Suppose that one version is the other times a factor. Then the logarithm of a pair's quotient is distributed
symmetrically around the logarithm of the factor, whatever the distribution of a launch is. Wilcoxon's signed ranks
assume nothing else. The estimate is Hodges and Lehmann's, the median of the means of all
two quotients (each with itself too), and the interval is the exact one of Tukey (Hollander, Wolfe and Chicken,
"Nonparametric Statistical Methods", 3rd ed., 3.2 and 3.3), both on logarithms. Six pairs are the fewest with an
interval of 95 %: the range of their quotients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate, deepest_rank, median

#: The most pairs with an exact distribution. With more, the normal approximation is as good.
MOST_EXACT = 120


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
