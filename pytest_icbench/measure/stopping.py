# SPDX-License-Identifier: BSD-3-Clause
"""Decides how many launches a case has, by the width of the interval alone. Pure.

A series that stops as soon as its interval is narrow favours samples that lie too close together. Launches that depend
on each other lie close together anyhow. Four rules keep the coverage. No precision is claimed below the number of
launches that can tell dependence (``FEWEST_DECIDING``), nor while launches depend on each other, nor while they drift
by more than the precision. An interval must be narrow at two looks in a row. ``benchmarks/validation`` shows the
coverage by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.dependence import FEWEST_DECIDING, find_dependence
from pytest_icbench.stats.drift import drift
from pytest_icbench.stats.intervals import over_launches
from pytest_icbench.stats.verdict_rule import Allowance

#: An interval this part of the distance between "the same" and the limit tells the two apart.
TELLING = 0.5
#: The most launches, or pairs, of a case whose host changes its state, in launches that were asked for: of two states
#: one then has as many as that.
MOST_FOR_A_STATE = 2


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
