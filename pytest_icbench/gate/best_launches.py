# SPDX-License-Identifier: BSD-3-Clause
"""Whether the medians of sessions decide about a figure, or its best launches. Pure.

A neighbour disturbs some launches of a session and not others, in each session another share of them. The medians of
unchanged software then lie far apart, and the best launches do not (``session_values.best_of``). These decide if the
baseline's sessions agree clearly better by them. The new session has no say in that, so there is one test and not two.

The best launches cannot see what makes some launches slower and not all. So they acquit nothing whose median is surely
worse, or by more than may pass as normal, and accuse nothing whose median is better.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.gate.session_values import FEWEST_NORMAL, SessionValues, best_against
from pytest_icbench.gate.sides import Of, Sessions, Side, against_of, of_value, side_of
from pytest_icbench.stats.quantiles import Estimate

#: What a verdict says that rests on the best launches.
BEST = "by its best launches"
#: How far sessions may lie apart by their best launches, over how far by their medians. Of two estimates the lesser one
#: is too small on the average, the more so the fewer sessions there are and the nearer the two lie.
CLEARLY = 0.7


@dataclass(frozen=True)
class Deciding:
    """What decides about a figure.

    Attributes:
        sides: the figure by itself, and against the control where there is one.
        control: the control alone; None without one.
        of: the way to the figure of a session.
        by_best: whether it is that of the best launches.
    """

    sides: list[Side]
    control: Side | None
    of: Of
    by_best: bool = False


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
    """Returns what decides: the medians, or the best launches where sessions agree clearly better by these.

    The best launches need five sessions, one of them at the newest level, and a control: without it nothing tells a
    host that disturbed every launch.
    """

    def best(session: SessionValues) -> float | None:
        return session.best.get(name)

    def plain_of_these(session: SessionValues) -> float | None:
        return None if best_against(name, session) is None else session.values.get(name)

    own = side_of(values, sessions, best)
    beside = side_of(values, sessions, lambda session: best_against(name, session))
    control = side_of(values, sessions, lambda session: session.control_best)
    plain = side_of(values, sessions, plain_of_these)
    if own is None or beside is None or control is None or plain is None or own.spread is None or plain.spread is None:
        return medians
    if plain.spread.freedom < FEWEST_NORMAL - 1 or own.spread.deviation > CLEARLY * plain.spread.deviation:
        return medians
    return Deciding([own, beside], control, best, True)


def in_words(side: Side) -> str:
    """Returns a side's change with its interval, where it has one: ``-9.8% (-12.1% to -7.4%)``."""
    change = side.change()
    ends = "" if change.low is None or change.high is None else f" ({change.low - 1:+.1%} to {change.high - 1:+.1%})"
    return f"{change.value - 1:+.1%}{ends}"
