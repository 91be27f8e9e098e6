# SPDX-License-Identifier: BSD-3-Clause
"""A value of a new session beside those of a baseline's sessions: by itself, or against the control. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from pytest_icbench.gate.session_values import FEWEST_NORMAL, SessionValues, by_level
from pytest_icbench.stats.intervals import median_over_launches
from pytest_icbench.stats.noninferiority import Figure, Margin
from pytest_icbench.stats.quantiles import CONFIDENCE, FEWEST_LAUNCHES, Estimate
from pytest_icbench.stats.sessions import Spread, arm, as_wide_as, change_of_level, spread_of

Sessions = tuple[SessionValues, ...]
#: The way to a value of a session.
Of = Callable[[SessionValues], float | None]


@dataclass(frozen=True)
class Side:
    """A value of the new session beside that of the baseline's sessions."""

    now: float
    levels: list[list[float]]
    #: The interval over the new session's launches, over their median; None where it is not known.
    launches: Estimate | None = None
    _changes: dict[float, Estimate] = field(default_factory=dict, init=False, repr=False, compare=False)

    def change(self, confidence: float = CONFIDENCE) -> Estimate:
        """Returns the ratio with its interval, which is at least as wide as that of the new session's launches."""
        if confidence not in self._changes:
            self._changes[confidence] = self._widened(confidence)
        return self._changes[confidence]

    def _widened(self, confidence: float) -> Estimate:
        over = change_of_level(self.now, self.levels, confidence, spread=self.spread)
        return over if self.launches is None else as_wide_as(over, self.launches)

    @property
    def rests_on_launches(self) -> bool:
        """Whether the new session's launches make the interval wider than the sessions do."""
        over, widened = change_of_level(self.now, self.levels, spread=self.spread), self.change()
        return (widened.low, widened.high) != (over.low, over.high)

    def surely_worse(self, margin: Margin, confidence: float) -> bool:
        """Whether it is worse than what did not change, at a level of confidence."""
        change = self.change(confidence)
        best = change.high if margin.better == "higher" else change.low
        return best is not None and (best < 1 if margin.better == "higher" else best > 1)

    @cached_property
    def spread(self) -> Spread | None:
        return spread_of(self.levels)

    def reach(self, margin: Margin, confidence: float) -> float:
        """Returns how far, as a logarithm, an accused change lies beyond the limit; infinitely with one session."""
        if self.spread is None:
            return math.inf
        of_launches = self.launches or Estimate(1.0)
        end = of_launches.high if margin.better == "higher" else of_launches.low
        launches = abs(math.log(end)) if end else 0.0
        return max(arm(self.spread, len(self.levels[-1]), confidence), launches)


def side_of(
    values: SessionValues,
    sessions: Sessions,
    of: Of,
    launches: Estimate | None = None,
    levels: list[list[float]] | None = None,
) -> Side | None:
    """Returns the two sides of a value; None unless both have it. ``levels`` are the sessions' values, where known."""
    now, levels = of(values), by_level(sessions, of) if levels is None else levels
    return Side(now, levels, launches) if now is not None and now > 0 and levels else None


def of_value(name: str) -> Of:
    """Returns the way to the value of a figure."""
    return lambda session: session.values.get(name)


def against_of(name: str, sessions: Sessions) -> tuple[Of, list[list[float]]]:
    """Returns the way to hold a figure against the control by which the baseline's sessions agree better, and theirs.

    Where both share their disturbances neighbouring launches agree; elsewhere what the control does at its best.
    """

    def paired(session: SessionValues) -> float | None:
        return session.against.get(name)

    def at_best(session: SessionValues) -> float | None:
        return session.at_best.get(name)

    of_pairs, of_best = (by_level(sessions, of) for of in (paired, at_best))
    by_pairs, by_best = spread_of(of_pairs), spread_of(of_best)
    if by_pairs is None or by_best is None or by_best.freedom < FEWEST_NORMAL - 1:
        return paired, of_pairs
    return (at_best, of_best) if by_best.deviation < by_pairs.deviation else (paired, of_pairs)


def over_launches(figure: Figure) -> Estimate | None:
    """Returns the interval of a figure over its launches, over their median; None without one."""
    whole = Estimate(figure.value, figure.low, figure.high)
    if len(figure.launches) >= FEWEST_LAUNCHES:
        whole = median_over_launches(figure.launches)
    if whole.low is None or whole.high is None or whole.value <= 0:
        return None
    return Estimate(1.0, whole.low / whole.value, whole.high / whole.value)
