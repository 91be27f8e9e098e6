# SPDX-License-Identifier: BSD-3-Clause
"""The values of one session of a case, of which a baseline keeps several. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_icbench.gate.margins import COMPARED
from pytest_icbench.stats.quantiles import median

#: The most sessions of a case that a baseline keeps; a further one pushes the oldest out.
MOST_SESSIONS = 20
#: What is multiplied by the reference link's rate, and not divided by it: a cost of each frame.
COST = ("throughput", "lower")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, now or before, with its launches.

    Attributes:
        value, low, high: the figure and its interval, of a search its bounds; None where there are too few launches.
        launches: the figure of each launch; empty where they are not known.
    """

    value: float
    low: float | None = None
    high: float | None = None
    launches: tuple[float, ...] = ()

    @property
    def middle(self) -> float:
        """The median over the launches; the value where they are not known."""
        return median(self.launches) if self.launches else self.value


@dataclass(frozen=True, slots=True)
class SessionValues:
    """The values of one session of a case.

    Attributes:
        values: the compared figures by name, each the median over launches where those are known.
        control: the reference link's main figure, median over launches; None without one.
        against: the figures relative to the reference link, median over neighbouring launches; see ``relative``.
        level: grows by one with each change that was accepted.
        distance_ns: distance between the CPUs that pass frames; None where it is not known.
    """

    values: dict[str, float] = field(default_factory=dict)
    control: float | None = None
    against: dict[str, float] = field(default_factory=dict)
    level: int = 0
    distance_ns: float | None = None


def relative(name: str, figure: Figure, control: Figure | None) -> float | None:
    """Returns a figure relative to the reference link, the median over launches; None where either has no launches.

    A quotient of two rates or of two times; of cycles a frame their product with the reference link's rate, since a
    slower host makes cycles more and the rate less.
    """
    if control is None or not figure.launches or min(control.launches, default=0.0) <= 0:
        return None
    both = zip(figure.launches, control.launches, strict=False)
    cost = COMPARED[name] == COST
    return median([value * beside if cost else value / beside for value, beside in both])


def by_level(
    sessions: Sequence[SessionValues], of: Callable[[SessionValues], float | None], newest: int
) -> list[list[float]]:
    """Returns a positive value of each session that has it, level by level; none if none of the newest level has it.

    The newest level is the last. What was right before a change was accepted is not what is right now.
    """
    levels: dict[int, list[float]] = {}
    for session in sessions:
        value = of(session)
        if value is not None and value > 0:
            levels.setdefault(session.level, []).append(value)
    return [levels[level] for level in sorted(levels)] if newest in levels else []
