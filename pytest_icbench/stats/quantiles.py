# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles, intervals and histograms. Pure: numbers in, numbers out.

All intervals are distribution-free: launches of one case follow no bell curve. No interval is a guess: if there are too
few values for the confidence, the interval is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from statistics import NormalDist
from typing import Self

#: Confidence of an interval unless another is given.
CONFIDENCE = 0.95
#: The fewest values whose range is a 95 % interval of the median (1 - 2 / 2**6 = 96.9 %).
FEWEST_LAUNCHES = 6
#: A percentile takes at least this many samples beyond it.
SAMPLES_BEYOND = 10
#: Greatest logarithm of the end of an interval: with two units it could overflow.
MOST = 700.0
#: Halvings of the interval in which a quantile lies: more than a float's precision needs.
_HALVINGS = 80
#: The most pairs of values for which Mann and Whitney's distribution is counted exactly. Beyond them the normal one is
#: as good if both sides have at least ``FEWEST_FOR_NORMAL`` values.
MOST_EXACT_PAIRS = 10_000
FEWEST_FOR_NORMAL = 20


class Estimate(float):
    """A number with its interval.

    It compares, counts and prints as the number. It equals another estimate only if the intervals are equal, too.

    Attributes:
        low, high: the interval, None where there is none.
        coverage: the interval's exact confidence; None without an interval, or where it is not known.
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
        """The half of the interval's width over the value; None without an interval, infinite around 0."""
        if self.low is None or self.high is None:
            return None
        if self.high == self.low:
            return 0.0
        return (self.high - self.low) / 2 / abs(self.value) if self.value else math.inf

    def scaled(self, factor: float) -> Estimate:
        """Returns the estimate in another unit; ``factor`` is positive."""
        return Estimate(
            self.value * factor,
            None if self.low is None else self.low * factor,
            None if self.high is None else self.high * factor,
            self.coverage,
        )


def quantile(values: Sequence[float], q: float) -> float:
    """Returns the sample quantile by linear interpolation (type 7 of Hyndman and Fan, "Sample Quantiles", 1996).

    Raises:
        ValueError: no values, or ``q`` is not within 0 and 1.
    """
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


def quotients(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Returns the ratios of values measured next to each other; what affects both cancels.

    Raises:
        ValueError: the lengths differ, or a denominator is not positive.
    """
    if len(numerators) != len(denominators):
        raise ValueError(f"{len(numerators)} values cannot be paired with {len(denominators)}")
    if any(value <= 0 for value in denominators):
        raise ValueError("a ratio needs positive denominators")
    return [above / below for above, below in zip(numerators, denominators, strict=True)]


@cache
def stratified_rank(sizes: tuple[tuple[int, int], ...], confidence: float = CONFIDENCE) -> tuple[int, float] | None:
    """Returns the rank k such that [k-th least, k-th greatest] of the ratios within all strata covers the ratio.

    The statistic is the sum of Mann and Whitney's U over the strata. Its null distribution is exact: that of a stratum
    has the coefficients of the Gaussian binomial, that of the sum is their product, and coverage, returned too, is
    1 - 2 P(sum < k) (Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 3rd ed., 4.3; van Elteren, "On
    the combination of independent two sample tests of Wilcoxon", 1960, weighs the strata otherwise). Beyond
    ``MOST_EXACT_PAIRS`` the normal approximation of the same section takes its place.

    Args:
        sizes: the numbers of values on both sides of each stratum.
    """
    ratios = sum(n * m for n, m in sizes)
    if ratios > MOST_EXACT_PAIRS and min(map(min, sizes)) >= FEWEST_FOR_NORMAL:
        spread = math.sqrt(sum(n * m * (n + m + 1) for n, m in sizes) / 12)
        rank = math.floor(ratios / 2 - NormalDist().inv_cdf((1 + confidence) / 2) * spread)
        return (rank, confidence) if rank >= 1 else None
    counts = [1]
    for n, m in sizes:
        for step in range(1, n + 1):
            counts = _times_one_minus(counts, m + step)
            counts = _over_one_minus(counts, step)
    return deepest_rank(counts, math.prod(math.comb(n + m, n) for n, m in sizes), confidence)


def deepest_rank(counts: Sequence[int], total: int, confidence: float) -> tuple[int, float] | None:
    """Returns the greatest rank k for which 1 - 2 P(T < k) is at least ``confidence``, and that coverage; else None.

    Args:
        counts: of the ways to each value of T, from 0 upwards; as many below the middle as above.
        total: of all ways.
    """
    best: tuple[int, float] | None = None
    below = 0
    for rank, count in enumerate(counts[: len(counts) // 2], start=1):
        below += count
        coverage = 1 - 2 * below / total
        if coverage < confidence:
            break
        best = rank, coverage
    return best


def _times_one_minus(polynomial: list[int], power: int) -> list[int]:
    """Returns polynomial · (1 - q**power)."""
    product = polynomial + [0] * power
    for index, coefficient in enumerate(polynomial):
        product[index + power] -= coefficient
    return product


def _over_one_minus(polynomial: list[int], power: int) -> list[int]:
    """Returns polynomial / (1 - q**power), which leaves no remainder here."""
    quotient = polynomial[: len(polynomial) - power]
    for index in range(power, len(quotient)):
        quotient[index] += quotient[index - power]
    return quotient


def stratified_ratio(
    strata: Sequence[tuple[Sequence[float], Sequence[float]]], confidence: float = CONFIDENCE
) -> Estimate:
    """Returns the ratio of two samples whose values can be compared within strata only, as within a state of the host.

    It is the median of all ratios within strata (Hodges and Lehmann's estimate). The interval is Mann and Whitney's
    over the strata; it assumes that both distributions of a stratum have one shape and differ by the same factor.

    Args:
        strata: numerators and denominators of each.

    Raises:
        ValueError: no stratum has values on both sides, or a denominator is not positive.
    """
    if any(value <= 0 for _, denominators in strata for value in denominators):
        raise ValueError("a ratio needs positive denominators")
    ratios = sorted(
        above / below for numerators, denominators in strata for above in numerators for below in denominators
    )
    if not ratios:
        raise ValueError("a ratio needs values on both sides")
    sizes = [(len(numerators), len(denominators)) for numerators, denominators in strata]
    ranked = stratified_rank(tuple(size for size in sizes if all(size)), confidence)
    if ranked is None:
        return Estimate(median(ratios))
    rank, coverage = ranked
    return Estimate(median(ratios), ratios[rank - 1], ratios[-rank], coverage)


#: The number of a bucket's samples.
_NUMBER: Callable[[tuple[int, int]], int] = itemgetter(1)


@dataclass(frozen=True, slots=True)
class Histogram:
    """The samples of a launch or of several in buckets, as the workload counts them.

    Attributes:
        counts: (value, number) in ascending order; ``value`` is the highest that the bucket stands for.
        minimum, maximum, mean: of the samples themselves, not of the buckets; None without samples.
        significant_digits: relative resolution of the buckets is 10 ** -significant_digits.
        lost: requests that were never answered; they count as slower than every sample.
    """

    counts: tuple[tuple[int, int], ...]
    minimum: int | None
    maximum: int | None
    mean: float | None
    significant_digits: int
    lost: int = 0

    @property
    def count(self) -> int:
        """The number of samples, without the lost ones."""
        return sum(map(_NUMBER, self.counts))

    def percentile(self, q: float) -> int | None:
        """Returns the value that the share q of all requests (0 < q < 1) did not exceed; lost ones exceed every value.

        None if fewer than ten requests lie beyond it (``SAMPLES_BEYOND``), or if it falls among the lost ones.

        Raises:
            ValueError: ``q`` is not between 0 and 1.
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
        """Returns the samples less the least of them (delay to delay variation); the buckets keep their resolution."""
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


def merge(histograms: Iterable[Histogram]) -> Histogram | None:
    """Returns all samples in one histogram: percentiles of several launches come from here and are never averaged.

    None without histograms. The resolution is that of the coarsest one.
    """
    parts = list(histograms)
    if not parts:
        return None
    sums: dict[int, int] = {}
    for histogram in parts:
        for value, number in histogram.counts:
            sums[value] = sums.get(value, 0) + number
    filled = [histogram for histogram in parts if histogram.count]
    samples = sum(histogram.count for histogram in filled)
    return Histogram(
        counts=tuple(sorted((value, number) for value, number in sums.items() if number)),
        minimum=min((h.minimum for h in filled if h.minimum is not None), default=None),
        maximum=max((h.maximum for h in filled if h.maximum is not None), default=None),
        mean=math.fsum(h.mean * h.count for h in filled if h.mean is not None) / samples if samples else None,
        significant_digits=min(histogram.significant_digits for histogram in parts),
        lost=sum(histogram.lost for histogram in parts),
    )
