# SPDX-License-Identifier: BSD-3-Clause
"""Whether the medians of sessions decide about a figure, or its best launches. Pure.

A neighbour disturbs some launches of a session and not others, in each session another share of them. The medians of
unchanged software then lie far apart, and the best launches do not (``session_values.best_of``). That one decides by
which the baseline's sessions agree better: the new session has no say in it, so there is one test and not two.

The best launches cannot see what makes some launches slower and not all. So they acquit nothing whose median is surely
worse, and accuse nothing whose median is better.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.gate.session_values import FEWEST_NORMAL, SessionValues, best_against
from pytest_icbench.gate.sides import Of, Sessions, Side, against_of, of_value, side_of
from pytest_icbench.stats.quantiles import Estimate

#: The note on a verdict that rests on the best launches.
BEST = "its best launches decide"


@dataclass(frozen=True)
class Deciding:
    """What decides about a figure.

    Attributes:
        sides: the figure by itself, and against the control where there is one.
        control: the control alone; None without one.
        of: the way to the figure of a session.
        at_best: whether it is that of the best launches.
    """

    sides: list[Side]
    control: Side | None
    of: Of
    at_best: bool = False


def by_medians(values: SessionValues, sessions: Sessions, name: str, launches: Estimate | None) -> Deciding | None:
    """Returns a figure by its medians; None where it has no positive value on both sides.

    Args:
        launches: the interval over the new session's launches, over their median.
    """
    plain = side_of(values, sessions, of_value(name), launches)
    if plain is None:
        return None
    against, levels = against_of(name, sessions)
    beside = side_of(values, sessions, against, launches, levels)
    control = side_of(values, sessions, lambda session: session.control)
    return Deciding([plain] if beside is None else [plain, beside], control, of_value(name))


def steadier(medians: Deciding, values: SessionValues, sessions: Sessions, name: str) -> Deciding:
    """Returns what decides: the medians, or the best launches where sessions agree better by these.

    The best launches need five sessions and a control: without it nothing tells a host that disturbed every launch.
    """

    def at_best(session: SessionValues) -> float | None:
        return session.best.get(name)

    own = side_of(values, sessions, at_best)
    beside = side_of(values, sessions, lambda session: best_against(name, session))
    control = side_of(values, sessions, lambda session: session.control_best)
    spread = medians.sides[0].spread
    if own is None or beside is None or control is None or spread is None:
        return medians
    if any(side.spread is None or side.spread.freedom < FEWEST_NORMAL - 1 for side in (own, beside, control)):
        return medians
    assert own.spread is not None
    return Deciding([own, beside], control, at_best, True) if own.spread.deviation < spread.deviation else medians


def in_words(side: Side) -> str:
    """Returns a side's change with its interval, where it has one: ``-9.8% (-12.1% to -7.4%)``."""
    change = side.change()
    ends = "" if change.low is None or change.high is None else f" ({change.low - 1:+.1%} to {change.high - 1:+.1%})"
    return f"{change.value - 1:+.1%}{ends}"
