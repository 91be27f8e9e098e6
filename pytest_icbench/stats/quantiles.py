# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles, intervals and histograms. Pure: numbers in, numbers out.

All intervals are distribution-free: launches of one case come in bands, not in bell curves. None is wider or narrower
than its data: an interval that the number of values cannot give at the confidence asked for is None, not a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Self

#: Confidence of every interval unless another is asked for.
CONFIDENCE = 0.95
#: The fewest values whose range is a 95 % interval of the median (1 - 2 / 2**6 = 96.9 %).
FEWEST_LAUNCHES = 6
#: A percentile wants at least this many samples beyond it.
SAMPLES_BEYOND = 10
#: Pairs of values up to which Mann and Whitney's distribution is counted out; beyond, the normal one is as good.
MOST_EXACT_PAIRS = 10_000
FEWEST_FOR_NORMAL = 20


class Estimate(float):
    """A number with its interval: it compares, counts and is shown as the number; it equals another with its interval.

    Attributes:
        low, high: the interval, None where there is none.
        coverage: the interval's exact confidence, None where there is no interval, or where nobody says it.
    """

    __slots__ = ("coverage", "high", "low")
    low: float | None
    high: float | None
    coverage: float | None

    def __new__(
        cls, value: float, low: float | None = None, high: float | None = None, coverage: float | None = None
    ) -> Self:
        self = super().__new__(cls, value)
        self.low, self.high, self.coverage = low, high, coverage
        return self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Estimate):
            return self._parts == other._parts
        return float.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = float.__hash__

    @property
    def _parts(self) -> tuple[float | None, ...]:
        return self.value, self.low, self.high, self.coverage

    @property
    def value(self) -> float:
        """The plain number."""
        return float(self)

    @property
    def relative_half_width(self) -> float | None:
        """Half the interval's width over the value; None without an interval, infinite around 0."""
        if self.low is None or self.high is None:
            return None
        if self.high == self.low:
            return 0.0
        return (self.high - self.low) / 2 / abs(self.value) if self.value else math.inf

    def scaled(self, factor: float) -> Estimate:
        """The estimate in another unit; ``factor`` is positive."""
        return Estimate(
            self.value * factor,
            None if self.low is None else self.low * factor,
            None if self.high is None else self.high * factor,
            self.coverage,
        )


def quantile(values: Sequence[float], q: float) -> float:
    """Sample quantile by linear interpolation, 0 ≤ q ≤ 1 (type 7 of Hyndman and Fan, "Sample Quantiles", 1996)."""
    if not values:
        raise ValueError("quantile of no values")
    if not 0 <= q <= 1:
        raise ValueError(f"q is {q}, not within 0 and 1")
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    share = position - below
    if share == 0 or ordered[below] == ordered[above]:
        return ordered[below]
    return ordered[below] * (1 - share) + ordered[above] * share


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


def median_rank(n: int, confidence: float = CONFIDENCE) -> tuple[int, float] | None:
    """Rank r such that [r-th least, r-th greatest] of n values covers the median, and its exact coverage.

    The interval of the sign test: coverage is 1 - 2 P(B < r) with B binomial(n, 1/2) (David and Nagaraja, "Order
    Statistics", 3rd ed., 7.1). None when even the range (r = 1) covers less than ``confidence``.
    """
    best: tuple[int, float] | None = None
    below = 0
    for rank in range(1, n // 2 + 1):
        below += math.comb(n, rank - 1)
        coverage = 1 - 2 * below / 2**n
        if coverage < confidence:
            break
        best = rank, coverage
    return best


def median_estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Median with its order-statistic interval; no interval below six values at 95 %."""
    ordered = sorted(values)
    found = median_rank(len(ordered), confidence)
    if found is None:
        return Estimate(median(ordered))
    rank, coverage = found
    return Estimate(median(ordered), ordered[rank - 1], ordered[-rank], coverage)


def quotients(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Ratios of values measured next to each other: what moves both is in neither.

    Raises:
        ValueError: other lengths, or a denominator that is not positive.
    """
    if len(numerators) != len(denominators):
        raise ValueError(f"{len(numerators)} values cannot be paired with {len(denominators)}")
    if any(value <= 0 for value in denominators):
        raise ValueError("a ratio needs positive denominators")
    return [above / below for above, below in zip(numerators, denominators, strict=True)]


@cache
def mann_whitney_rank(n: int, m: int, confidence: float = CONFIDENCE) -> tuple[int, float] | None:
    """Rank k such that [k-th least, k-th greatest] of all n·m pairwise ratios covers the ratio, and its coverage.

    Exact null distribution of Mann and Whitney's U (its counts are the coefficients of the Gaussian binomial);
    coverage is 1 - 2 P(U < k) (Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 3rd ed., 4.3). With
    more than 10,000 pairs of many on both sides the normal approximation of the same section.
    """
    if n * m > MOST_EXACT_PAIRS and min(n, m) >= FEWEST_FOR_NORMAL:
        spread = math.sqrt(n * m * (n + m + 1) / 12)
        rank = math.floor(n * m / 2 - NormalDist().inv_cdf((1 + confidence) / 2) * spread)
        return (rank, confidence) if rank >= 1 else None
    counts = [1]
    for step in range(1, n + 1):
        counts = _times_one_minus(counts, m + step)
        counts = _over_one_minus(counts, step)
    total = math.comb(n + m, n)
    best: tuple[int, float] | None = None
    below = 0
    for rank in range(1, n * m // 2 + 1):
        below += counts[rank - 1]
        coverage = 1 - 2 * below / total
        if coverage < confidence:
            break
        best = rank, coverage
    return best


def _times_one_minus(polynomial: list[int], power: int) -> list[int]:
    """polynomial · (1 - q**power)"""
    product = polynomial + [0] * power
    for index, coefficient in enumerate(polynomial):
        product[index + power] -= coefficient
    return product


def _over_one_minus(polynomial: list[int], power: int) -> list[int]:
    """polynomial / (1 - q**power), which leaves no remainder here"""
    quotient = polynomial[: len(polynomial) - power]
    for index in range(power, len(quotient)):
        quotient[index] += quotient[index - power]
    return quotient


def unpaired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate:
    """Ratio of two independent samples: median of all pairwise ratios (Hodges and Lehmann's estimate of a factor).

    The interval is Mann and Whitney's; it assumes distributions of one shape that differ by a factor.

    Raises:
        ValueError: no values, or one that is not positive in the denominators.
    """
    if not numerators or not denominators:
        raise ValueError("a ratio needs values on both sides")
    if any(value <= 0 for value in denominators):
        raise ValueError("a ratio needs positive denominators")
    ratios = sorted(above / below for above in numerators for below in denominators)
    found = mann_whitney_rank(len(numerators), len(denominators), confidence)
    if found is None:
        return Estimate(median(ratios))
    rank, coverage = found
    return Estimate(median(ratios), ratios[rank - 1], ratios[-rank], coverage)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Samples in buckets, as the workload counts them.

    Attributes:
        counts: (value, number) in ascending order; ``value`` is the highest that the bucket stands for.
        minimum, maximum, mean: of the samples themselves, not of the buckets; None without samples.
        significant_digits: relative resolution of the buckets is 10 ** -significant_digits.
        lost: requests that were never answered: slower than every sample.
    """

    counts: tuple[tuple[int, int], ...]
    minimum: int | None
    maximum: int | None
    mean: float | None
    significant_digits: int
    lost: int = 0

    @property
    def count(self) -> int:
        """Samples, without the lost ones."""
        return sum(number for _, number in self.counts)

    def percentile(self, q: float) -> int | None:
        """Value that the part q of all requests (0 < q < 1) did not exceed; lost ones exceed every value.

        None when fewer than ten requests lie beyond it (``SAMPLES_BEYOND``), or when it falls among the lost ones.
        """
        if not 0 < q < 1:
            raise ValueError(f"q is {q}, not between 0 and 1")
        requests = self.count + self.lost
        if round(requests * (1 - q), 6) < SAMPLES_BEYOND:
            return None
        rank = math.ceil(round(requests * q, 6))
        seen = 0
        for value, number in self.counts:
            seen += number
            if seen >= rank:
                return value if self.maximum is None else min(value, self.maximum)
        return None

    def less_minimum(self) -> Histogram:
        """The same samples less the least of them (delay to delay variation); buckets keep the delays' resolution."""
        if self.minimum is None or self.maximum is None or self.mean is None:
            return self
        least = self.minimum
        return Histogram(
            counts=tuple((max(min(value, self.maximum) - least, 0), number) for value, number in self.counts),
            minimum=0,
            maximum=self.maximum - least,
            mean=self.mean - least,
            significant_digits=self.significant_digits,
            lost=self.lost,
        )

    def variation(self, q: float) -> int | None:
        """Delay variation that the part q of all requests did not exceed: the delay less the least one.

        This is PDV (RFC 5481, section 4.2) with the least delay of the stream as its reference. None as in
        ``percentile``.
        """
        found = self.percentile(q)
        return None if found is None or self.minimum is None else found - self.minimum


def merge(histograms: Iterable[Histogram]) -> Histogram | None:
    """All samples in one histogram: percentiles of several launches come from here and are never averaged.

    None for no histograms. The resolution is that of the coarsest.
    """
    every = list(histograms)
    if not every:
        return None
    sums: dict[int, int] = {}
    for histogram in every:
        for value, number in histogram.counts:
            sums[value] = sums.get(value, 0) + number
    filled = [histogram for histogram in every if histogram.count]
    samples = sum(histogram.count for histogram in filled)
    return Histogram(
        counts=tuple(sorted((value, number) for value, number in sums.items() if number)),
        minimum=min((h.minimum for h in filled if h.minimum is not None), default=None),
        maximum=max((h.maximum for h in filled if h.maximum is not None), default=None),
        mean=math.fsum(h.mean * h.count for h in filled if h.mean is not None) / samples if samples else None,
        significant_digits=min(histogram.significant_digits for histogram in every),
        lost=sum(histogram.lost for histogram in every),
    )
