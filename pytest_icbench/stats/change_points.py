# SPDX-License-Identifier: BSD-3-Clause
"""Where a series changes its level. Pure.

CSIT's jumpavg cuts a series into groups of which each is one normal distribution, by the shortest description
(minimum message length). By itself it is quadratic in time or worse, takes a single outlier for two changes, and knows
no least effect. So:

* A point that lies far from its neighbours' median is taken for it (Hampel's identifier, "The influence curve and its
  role in robust estimation", Journal of the American Statistical Association 69, 1974), unless it is among the last
  ones: those may be the beginning of a new level.
* Long series are cut in windows of ``WINDOW`` points, the next of which begins with the last whole group of the one
  before: the time is proportional to the length.
* Neighbouring levels (medians of the series as measured) that differ by less than the least effect are one, the
  nearest first; so is a level of fewer than ``FEWEST`` points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_icbench.errors import UsageError
from pytest_icbench.stats.quantiles import median

#: A change of the level by less than this part matters to nobody.
LEAST_EFFECT = 0.03
#: Points of a level: fewer are an outlier, or not yet known to be a change.
FEWEST = 3
#: Points that are looked at together.
WINDOW = 160
#: Neighbours on each side by which an outlier is known, and how many of their deviations away it lies.
NEIGHBOURS, FAR = 3, 4.0
#: From the median absolute deviation to a standard deviation, for the normal distribution.
_DEVIATIONS = 1.4826


@dataclass(frozen=True, slots=True)
class Level:
    """Points ``first`` to ``last`` (both included, from 0) of a series lie around ``value``, their median."""

    first: int
    last: int
    value: float


def levels(values: Sequence[float], least_effect: float = LEAST_EFFECT) -> list[Level]:
    """The levels of a series in their order: every point belongs to one. A change is where one follows another.

    Args:
        values: positive, in the order of time.
        least_effect: as a part of the lesser of two levels.

    Raises UsageError if jumpavg is not installed.
    """
    if not values:
        return []
    starts = [0]
    if len(values) >= 2 * FEWEST and min(values) != max(values):
        starts = _starts(_calmed(values))
    return _merged(values, starts, least_effect)


def _calmed(values: Sequence[float]) -> list[float]:
    """The series without its outliers."""
    calm = list(values)
    for place in range(len(values) - FEWEST):
        around = [*values[max(place - NEIGHBOURS, 0) : place], *values[place + 1 : place + 1 + NEIGHBOURS]]
        middle = median(around)
        spread = _DEVIATIONS * median([abs(value - middle) for value in around])
        if abs(values[place] - middle) > FAR * spread:
            calm[place] = middle
    return calm


def _starts(values: Sequence[float]) -> list[int]:
    """Where jumpavg's groups begin."""
    starts, begin = [0], 0
    while True:
        window = values[begin : begin + WINDOW]
        found = _groups(window)
        if begin + WINDOW >= len(values):
            return starts + [begin + start for start in found[1:]]
        if len(found) == 1:
            # One level so far: its second half stands for it.
            begin += WINDOW // 2
            continue
        starts += [begin + start for start in found[1:]]
        begin = starts[-1]


def _groups(values: Sequence[float]) -> list[int]:
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
    """Levels out of where they begin, joined until neighbours differ by the least effect and none is too short."""
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


def _step(before: float, after: float) -> float:
    least = min(abs(before), abs(after))
    return abs(after - before) / least if least else float("inf") if before != after else 0.0
