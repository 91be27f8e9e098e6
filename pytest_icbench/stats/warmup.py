# SPDX-License-Identifier: BSD-3-Clause
"""Finds the point of a launch from which on its rate is stationary. Pure.

The rule is MSER: a series is cut at the point after which the standard error of the mean is least (White, "An effective
truncation heuristic for bias reduction in simulation output", Simulation 69, 1997). A window of many frames takes the
place of a batch of MSER-5 (White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for
simulation", Winter Simulation Conference 2000). A cut counts only if the rate before it differs from the rate after it.
Otherwise the least of several dozen standard errors would be chosen by chance, which cuts off a start that happened to
be slow and favours high rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum

from pytest_icbench.stats.quantiles import median

#: The fewest windows that are judged.
FEWEST_WINDOWS = 10
#: The fewest windows after a cut.
FEWEST_AFTER = 2
#: The windows cut off differ from the rest by more than this many standard deviations of a window …
DEVIATIONS = 3.0
#: … and by more than this share of the rate: less does not matter.
LEAST_CHANGE = 0.015
#: Median of the absolute difference of two normal values, in standard deviations.
_MEDIAN_DIFFERENCE = 0.954


def truncation(rates: Sequence[float], least_change: float = LEAST_CHANGE) -> int:
    """Returns the number of windows at the beginning that differ from the rest; at most all but two.

    The noise of a window is estimated from differences of neighbours, which a ramp or a step affects little.
    """
    n = len(rates)
    if n <= FEWEST_AFTER:
        return 0
    errors = _standard_errors(rates)
    noise = median([abs(after - before) for before, after in pairwise(rates)]) / _MEDIAN_DIFFERENCE
    best, rounding = 0, 1e-12 * errors[0]
    for cut in range(1, n - FEWEST_AFTER + 1):
        if errors[cut] < errors[best] - rounding:
            level = median(rates[cut:])
            if abs(median(rates[:cut]) - level) > max(DEVIATIONS * noise, least_change * abs(level)):
                best = cut
    return best


def _standard_errors(rates: Sequence[float]) -> list[float]:
    """Returns MSER's statistic by number of windows cut off: squared deviations of the rest over its number squared."""
    mean = fsum(rates) / len(rates)
    total = squares = 0.0
    errors = [0.0] * len(rates)
    for cut in reversed(range(len(rates))):
        deviation, left = rates[cut] - mean, len(rates) - cut
        total += deviation
        squares += deviation * deviation
        errors[cut] = max(squares - total * total / left, 0.0) / (left * left)
    return errors
