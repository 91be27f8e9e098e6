# SPDX-License-Identifier: BSD-3-Clause
"""Two candidates measured in turn, and the interval of the median of their paired ratios.

Neighbours in time share what the machine does to both, so each ratio is taken within a pair. The interval is the exact
one of order statistics: it assumes independent pairs and nothing about the shape of their distribution.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True)
class Comparison:
    """Paired ratios with the interval of their median, of at least the stated confidence."""

    name: str
    ratios: tuple[float, ...]
    median: float
    low: float
    high: float
    coverage: float

    def sentence(self) -> str:
        """One line for people."""
        interval = f"{self.coverage:.1%} interval {self.low:.3f} to {self.high:.3f}"
        return f"{self.name}: median ratio {self.median:.3f}, {interval}, {len(self.ratios)} pairs"


def median_interval(values: list[float], confidence: float) -> tuple[float, float, float]:
    """Narrowest symmetric pair of order statistics that covers the median, and its exact coverage.

    Raises ValueError if so few values cannot give that confidence.
    """
    ordered, n = sorted(values), len(values)
    tail, rank = 0.0, 0
    # P(fewer than `rank` of n values lie below the median) is a sum of binomials.
    while rank < n // 2 and 2 * (tail + comb(n, rank) / 2**n) <= 1 - confidence:
        tail += comb(n, rank) / 2**n
        rank += 1
    if rank == 0:
        raise ValueError(f"{n} values give no {confidence:.0%} interval of a median")
    return ordered[rank - 1], ordered[n - rank], 1 - 2 * tail


def compare(name: str, ratios: list[float], confidence: float = 0.95) -> Comparison:
    """Median of the ratios and its interval."""
    low, high, coverage = median_interval(ratios, confidence)
    return Comparison(name, tuple(ratios), statistics.median(ratios), low, high, coverage)


@dataclass(frozen=True)
class Plan:
    """How both sides are measured, and how their figures are printed.

    Attributes:
        pairs: number of pairs.
        repeat: launches of a side in a pair.
        unit: unit of the printed figures.
        scale: divisor that brings a figure to that unit.
        confidence: of the interval.
    """

    pairs: int
    repeat: int
    unit: str
    scale: float = 1.0
    confidence: float = 0.95


def alternate(name: str, plan: Plan, ours: Callable[[], float], theirs: Callable[[], float]) -> Comparison:
    """Measures both sides in pairs, and the other side first in every other pair. Prints every pair to stderr.

    A side's figure in a pair is the mean over its launches, which take turns. The first pair is not counted: it warms
    caches, page tables and the processor's clock.
    """
    ratios = []
    for pair in range(-1, plan.pairs):
        first, second = (theirs, ours) if pair % 2 else (ours, theirs)
        launches = [(first(), second()) for _ in range(plan.repeat)]
        means = [statistics.fmean(values) for values in zip(*launches, strict=True)]
        a, b = reversed(means) if pair % 2 else means
        note = " (warm-up)" if pair < 0 else ""
        print(
            f"{name}: {a / plan.scale:.3f} against {b / plan.scale:.3f} {plan.unit}, ratio {a / b:.3f}{note}",
            file=sys.stderr,
        )
        if pair >= 0:
            ratios.append(a / b)
    return compare(name, ratios, plan.confidence)


def verdict(result: Comparison, *, at_least: float | None = None, within: tuple[float, float] | None = None) -> bool:
    """Prints the comparison and whether its whole interval keeps the bound."""
    if at_least is not None:
        held, bound = result.low >= at_least, f"lower bound at least {at_least}"
    elif within is not None:
        held, bound = (
            within[0] <= result.low and result.high <= within[1],
            f"interval within {within[0]} to {within[1]}",
        )
    else:
        raise ValueError("a verdict needs a bound")
    print(f"{'PASS' if held else 'FAIL'} {result.sentence()}; wanted: {bound}", flush=True)
    return held
