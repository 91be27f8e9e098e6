# SPDX-License-Identifier: BSD-3-Clause
"""Computes the change of a figure between earlier sessions and a new one, with its interval. Pure.

Each session has another level, by the placement of memory, other processes, the host's temperature. Its launches do
not show that, however many there are, so the unit is the session (Kalibera and Jones, "Rigorous benchmarking in
reasonable time", International Symposium on Memory Management 2013), and counts by the median of its launches. The
interval is a prediction interval for one more session: Student's, over the logarithms of these values (Hahn and Meeker,
"Statistical Intervals", 4.7). It takes two sessions, and is wide then.

An accepted change begins a new level. The sessions before it still contribute to the spread, but not to the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from pytest_icbench.stats.quantiles import CONFIDENCE, MOST, Estimate, student_quantile


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of sessions: the standard deviation of their logarithms, and its degrees of freedom."""

    deviation: float
    freedom: int


def estimate_spread(levels: Sequence[Sequence[float]]) -> Spread | None:
    """Returns the spread of sessions within their levels, pooled; None if no level has two sessions."""
    freedom, squares = 0, 0.0
    for level in levels:
        logarithms = [math.log(value) for value in level]
        mean = fmean(logarithms)
        freedom += len(logarithms) - 1
        squares += math.fsum((value - mean) ** 2 for value in logarithms)
    return Spread(math.sqrt(squares / freedom), freedom) if freedom else None


def change_half_width(spread: Spread, sessions: int, confidence: float) -> float:
    """Returns the half-width of the interval of a change, on the scale of logarithms.

    Args:
        sessions: the number of sessions at the newest level.
        confidence: two-sided, from 0 to below 1.
    """
    quantile = student_quantile(spread.freedom, (1 + confidence) / 2)
    return quantile * spread.deviation * math.sqrt(1 + 1 / sessions)


def estimate_change_of_level(now: float, levels: Sequence[Sequence[float]], confidence: float = CONFIDENCE) -> Estimate:
    """Returns a new session's value over the geometric mean of the newest level; a single session has no interval.

    Args:
        now: the value of the new session.
        levels: the value of each earlier session, level by level, the newest level last; no level is empty.

    Raises:
        ValueError: a value is not positive.
    """
    if min(now, *(value for level in levels for value in level)) <= 0:
        raise ValueError("a change needs positive medians")
    change, spread = math.log(now) - fmean(math.log(value) for value in levels[-1]), estimate_spread(levels)
    if spread is None:
        return Estimate(math.exp(change))
    reach = change_half_width(spread, len(levels[-1]), confidence)
    low, high = (math.exp(min(max(end, -MOST), MOST)) for end in (change - reach, change + reach))
    return Estimate(math.exp(change), low, high, confidence)


def widen_like(value: Estimate, change: Estimate) -> Estimate:
    """Returns a value with an interval that is relatively at least as wide as that of its change.

    The interval over a session's launches does not include the spread of sessions; that of a change over sessions
    (``estimate_change_of_level``) does. So the wider one holds the value of another session.
    """
    if value.low is None or value.high is None or change.low is None or change.high is None:
        return value
    low, high = (value.value * (end / change.value) for end in (change.low, change.high))
    return Estimate(value.value, min(value.low, low), max(value.high, high), value.coverage)
