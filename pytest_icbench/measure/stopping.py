# SPDX-License-Identifier: BSD-3-Clause
"""Decides how many launches, or pairs of launches, a case has, by the width of the interval alone. Pure.

A series that stops as soon as its interval is narrow favours samples that lie too close together. Launches that depend
on each other lie close together anyhow. Four rules keep the coverage. No precision is claimed below the number of
launches that can tell dependence (``FEWEST_DECIDING``), nor while launches depend on each other, nor while they drift
by more than the precision. An interval must be narrow at two looks in a row. ``benchmarks/validation`` shows the
coverage by simulation.

Two versions take turns in pairs of launches, each pair on a pair of rigs built anew. Rigs take about as long as a
launch, and differ at least as much: more launches on the same rigs would tell little more (Kalibera and Jones,
"Rigorous benchmarking in reasonable time", International Symposium on Memory Management 2013, on where to repeat).
``stats.verdict_rule`` decides once, at the end, whatever ended the series: the pairs' sizes alone, their number, or the
time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.dependence import FEWEST_DECIDING, drift, find_dependence
from pytest_icbench.stats.intervals import over_launches
from pytest_icbench.stats.verdict_rule import Allowance, fewest, is_narrow

#: An interval this part of the distance between "the same" and the limit tells the two apart.
TELLING = 0.5
#: The most launches, or pairs, of a case whose host changes its state, in launches that were asked for: of two states
#: one then has as many as that.
MOST_FOR_A_STATE = 2
#: With two pairs more than equal signs need, one pair of the other sign (of the three smallest changes) does not hide a
#: change. Of seven pairs all have to agree; of nine, eight are enough.
SPARE_PAIRS = 2


def telling_precision(allowance: Allowance) -> float:
    """Returns the precision, as a share, at which a figure that did not change is distinguished from a loss of the
    allowance.

    Each side of a comparison with a baseline has that precision; the interval of their ratio is wider by √2.
    """
    return TELLING * allowance.share / math.sqrt(2)


def fewest_launches(settings: Settings) -> int:
    """Returns the fewest launches after which a case can end by itself: their number, or those of a precision."""
    return settings.repeats or max(settings.min_launches, FEWEST_DECIDING) + 1


def narrow(values: Sequence[float], precision: float) -> bool:
    """Whether the interval of the median can be said to be within ± ``precision`` of it."""
    if len(values) < FEWEST_DECIDING:
        return False
    width, dependence = over_launches(values).relative_half_width, find_dependence(values)
    if width is None or width > precision or (dependence is not None and dependence.likely):
        return False
    return abs(drift(values) or 0.0) <= precision


def why_stop(values: Sequence[float], settings: Settings, elapsed_s: float, next_s: float) -> str | None:
    """Returns why no further launch is needed, or None if one is.

    Args:
        values: the main figure of every launch so far.
        elapsed_s: time spent on the case so far.
        next_s: time that another launch (with its reference) will take.

    Returns:
        ``repeats``, ``precision`` or ``max-duration``. The last one is possible with fewer launches than
        ``min_launches``; the result then has no interval.
    """

    def narrow_after(launches: int) -> bool:
        return narrow(values[:launches], settings.precision)

    return why_stop_after(len(values), narrow_after, settings, elapsed_s, next_s)


def why_stop_after(
    launches: int, narrow_after: Callable[[int], bool], settings: Settings, elapsed_s: float, next_s: float
) -> str | None:
    """Does the same as ``why_stop`` for any interval: ``narrow_after`` says whether it was narrow after n launches."""
    if settings.repeats is not None:
        return "repeats" if launches >= settings.repeats else None
    if launches > settings.min_launches and narrow_after(launches) and narrow_after(launches - 1):
        return "precision"
    if launches and elapsed_s + next_s > settings.max_duration_s:
        return "max-duration"
    return None


@dataclass(frozen=True, slots=True)
class Allowances:
    """How much worse a candidate may be.

    Attributes:
        main: of the main figure: the rate, or the median round trip.
        cycles: of the switch's cycles a frame.
        cycles_named: the user names an allowance of cycles, so that they are judged in addition to the rate.
    """

    main: Allowance
    cycles: Allowance
    cycles_named: bool = False

    @classmethod
    def of(cls, main: Allowance) -> Allowances:
        """Returns the allowances for a main figure's. Cycles may rise by the equivalent of the rate's allowed fall."""
        return cls(main, main.of_cost)


@dataclass(frozen=True, slots=True)
class Criteria:
    """What decides a comparison.

    Attributes:
        allowed: how much worse the candidate may be.
        cases: number of comparisons in the session, which share its rate of errors.
    """

    allowed: Allowances
    cases: int


@dataclass(frozen=True, slots=True)
class Series:
    """The pairs of one figure so far, in order of time.

    Attributes:
        ratios: candidate over base of the pairs in one state of the host.
        allowance: of the figure.
    """

    ratios: tuple[float, ...]
    allowance: Allowance

    def narrow(self, precision: float) -> bool:
        """Whether the pairs are enough, with the last one and without it. So a narrow spread has to be seen twice."""
        return all(is_narrow(self.ratios[:end], self.allowance, precision) for end in (None, -1))


def fewest_comparing(settings: Settings, cases: int) -> int:
    """Returns the fewest pairs: as many as asked for, and ``SPARE_PAIRS`` more than a session's level needs."""
    return max(settings.repeats or settings.min_launches, fewest(cases) + SPARE_PAIRS)


def why_stop_comparing(
    launched: int, series: Sequence[Series], settings: Settings, cases: int, left_s: float
) -> str | None:
    """Returns why no further pair is needed, or None if one is.

    Args:
        launched: pairs so far, in one state of the host or not.
        series: of each figure that may decide.
        cases: decisions of the session.
        left_s: time of the case that would be left after another pair.

    Returns:
        ``repeats``, ``precision`` or ``max-duration``.
    """
    wanted = fewest_comparing(settings, cases)
    kept = min((len(each.ratios) for each in series), default=0)
    if kept < wanted and launched < MOST_FOR_A_STATE * wanted:
        return None
    if settings.repeats is not None:
        return "repeats"
    if kept >= wanted and all(each.narrow(settings.precision) for each in series):
        return "precision"
    return "max-duration" if left_s < 0 else None
