# SPDX-License-Identifier: BSD-3-Clause
"""Decides how many launches a case has, by the width of the interval alone. Pure.

A look at the interval after each launch, and a stop when it happens to be narrow, favour samples that lie too close
together. Three rules keep the coverage. Intervals that decide are wider than those of a fixed number
(``LOOKED_CONFIDENCE``). There are never fewer than six launches (eight where they fall into two bands). An interval
must be narrow at two looks in a row. ``benchmarks/validation`` shows the coverage by simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.intervals import LOOKED_CONFIDENCE, over_launches
from pytest_icbench.stats.quantiles import CONFIDENCE

#: The fewest launches that fall into two bands: six lie all in the greater band too often.
FEWEST_IN_BANDS = 8


def confidence(settings: Settings) -> float:
    """Returns the confidence of intervals over launches, before the loss by repeated looks."""
    return CONFIDENCE if settings.repeats is not None else LOOKED_CONFIDENCE


def narrow(values: Sequence[float], precision: float) -> bool:
    """Whether the interval of the median is within ± ``precision`` of it."""
    over = over_launches(values, LOOKED_CONFIDENCE)
    width = over.estimate.relative_half_width
    enough = over.bands is None or len(values) >= FEWEST_IN_BANDS
    return enough and width is not None and width <= precision


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
