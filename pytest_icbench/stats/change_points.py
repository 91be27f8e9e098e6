# SPDX-License-Identifier: BSD-3-Clause
"""Finds where a series changes its level. Pure.

CSIT's jumpavg cuts a series into groups of which each is one normal distribution, by the shortest description
(minimum message length). By itself it takes quadratic time or worse, takes a single outlier for two changes, and
has no least effect. Therefore:

* A point that lies far from its neighbours' median is replaced by it (Hampel's identifier, "The influence curve and its
  role in robust estimation", Journal of the American Statistical Association 69, 1974), unless it is among the
  last ones: those may be the beginning of a new level.
* Long series are cut into windows of ``WINDOW`` points. Each begins with the last whole group of the window before it,
  so the time is proportional to the length.
* Neighbouring levels (medians of the series as measured) that differ by less than the least effect are joined, the
  nearest first. So is a level of fewer than ``FEWEST`` points with its nearer neighbour.
* So are neighbours whose points can lie apart by chance (Mann and Whitney's interval, ``FALSE_ALARMS`` over the places
  at which a series can change). Where results have one of two bands at random, a run of the same band is no change.
* So are neighbours whose step is explained as well by results that depend on those before them (``level_shift``): a
  host's other speed that outlasts some runs is no change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_icbench.errors import UsageError
from pytest_icbench.stats.level_shift import step_log_likelihood
from pytest_icbench.stats.quantiles import median, unpaired_ratio

#: A change of the level by less than this share does not matter.
LEAST_EFFECT = 0.03
#: The fewest points of a level: fewer are an outlier, or not yet known to be a change.
FEWEST = 3
#: Points that are searched together.
WINDOW = 160
#: Neighbours on each side that an outlier is compared with, and how many of their deviations away it lies.
NEIGHBOURS, FAR = 3, 4.0
#: Greatest share of series without a change in which one is found, and the points of a level that tell it.
FALSE_ALARMS, TOLD_BY = 0.05, 40
#: What a step has to add to the likelihood, as in ``level_shift``: set by simulation, such that ``FALSE_ALARMS`` holds
#: in series of up to ``TELLING_OF`` points whose neighbours correlate by up to 0.9 (``benchmarks/validation``).
TELLING, TELLING_OF = 17.0, 50
#: Factor from the median absolute deviation of a normal distribution to its standard deviation.
_DEVIATIONS = 1.4826


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a series: points ``first`` to ``last`` (both included, from 0) lie around ``value``, their median."""

    first: int
    last: int
    value: float


def levels(values: Sequence[float], least_effect: float = LEAST_EFFECT) -> list[Level]:
    """Returns the levels of a series in their order. Every point belongs to one; a change is where one follows another.

    Args:
        values: positive, in order of time.
        least_effect: a share of the lower of two levels.

    Raises:
        UsageError: jumpavg is not installed.
    """
    if not values:
        return []
    starts, calm = [0], list(values)
    if len(values) >= 2 * FEWEST and min(values) != max(values):
        calm = _calmed(values)
        starts = _starts(calm)
    while True:
        found = _merged(values, starts, least_effect)
        doubtful = [pair for pair in pairwise(found) if not (_differ(values, *pair) and _is_step(calm, *pair))]
        if not doubtful:
            return found
        nearest = min(doubtful, key=lambda pair: _step(pair[0].value, pair[1].value))[1]
        starts = [level.first for level in found if level is not nearest]


def _calmed(values: Sequence[float]) -> list[float]:
    """Returns the series with its outliers replaced by their neighbours' median."""
    calm = list(values)
    for place in range(len(values) - FEWEST):
        around = [*values[max(place - NEIGHBOURS, 0) : place], *values[place + 1 : place + 1 + NEIGHBOURS]]
        middle = median(around)
        spread = _DEVIATIONS * median([abs(value - middle) for value in around])
        if abs(values[place] - middle) > FAR * spread:
            calm[place] = middle
    return calm


def _starts(values: Sequence[float]) -> list[int]:
    """Returns the indexes at which jumpavg's groups begin."""
    starts, begin = [0], 0
    while True:
        window = values[begin : begin + WINDOW]
        groups = _groups(window)
        if begin + WINDOW >= len(values):
            return starts + [begin + start for start in groups[1:]]
        if len(groups) == 1:
            # One level so far: the second half of the window stands for it.
            begin += WINDOW // 2
            continue
        starts += [begin + start for start in groups[1:]]
        begin = starts[-1]


def _groups(values: Sequence[float]) -> list[int]:
    """Returns the indexes at which jumpavg's groups of one window begin. Raises UsageError without jumpavg."""
    try:
        from jumpavg import classify
    except ImportError:
        raise UsageError(
            "change points need jumpavg, which is not installed: pip install 'pytest-icbench[history]'"
        ) from None
    starts, place = [], 0
    for group in classify(values):
        starts.append(place)
        place += len(group.run_list)
    return starts


def _merged(values: Sequence[float], starts: Sequence[int], least_effect: float) -> list[Level]:
    """Returns the levels that begin at ``starts``, joined until neighbours differ enough and none is too short."""
    bounds = [*starts, len(values)]
    while len(bounds) > 2:
        middles = [median(values[a:b]) for a, b in pairwise(bounds)]
        lengths = [b - a for a, b in pairwise(bounds)]
        steps = [_step(a, b) for a, b in pairwise(middles)]
        shortest = min(range(len(lengths)), key=lambda place: lengths[place])
        if lengths[shortest] < FEWEST:
            sides = [side for side in (shortest - 1, shortest) if 0 <= side < len(steps)]
            join = min(sides, key=lambda side: steps[side])
        else:
            join = min(range(len(steps)), key=lambda place: steps[place])
            if steps[join] >= least_effect:
                break
        del bounds[join + 1]
    return [Level(a, b - 1, median(values[a:b])) for a, b in pairwise(bounds)]


def _differ(values: Sequence[float], before: Level, later: Level) -> bool:
    """Whether the points nearest to a change lie further apart than by chance."""
    first, last = _nearest(before, later)
    old, new = values[first : later.first], values[later.first : last + 1]
    if min(*old, *new) <= 0:
        return True  # no ratio
    ratio = unpaired_ratio(new, old, 1 - FALSE_ALARMS / len(values))
    return ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


def _is_step(calm: Sequence[float], before: Level, later: Level) -> bool:
    """Whether a step explains the points nearest to a change, without outliers, better than dependence alone does.

    In a longer series a step can be at more places by chance, so it takes more to tell one (Bonferroni).
    """
    first, last = _nearest(before, later)
    near = calm[first : last + 1]
    telling = TELLING + 2 * math.log(max(len(calm) / TELLING_OF, 1.0))
    return min(near) != max(near) and step_log_likelihood(near, later.first - first) > telling


def _nearest(before: Level, later: Level) -> tuple[int, int]:
    """Returns the first and the last of the points that tell a change."""
    return max(before.first, later.first - TOLD_BY), min(later.last, later.first + TOLD_BY - 1)


def _step(before: float, after: float) -> float:
    """Returns the change between two levels as a share of the lower one."""
    least = min(abs(before), abs(after))
    return abs(after - before) / least if least else float("inf") if before != after else 0.0
