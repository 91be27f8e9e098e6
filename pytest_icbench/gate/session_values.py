# SPDX-License-Identifier: BSD-3-Clause
"""The values of one session of a case, of which a baseline keeps several. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_icbench.gate.margins import COMPARED
from pytest_icbench.stats.noninferiority import Better, Figure
from pytest_icbench.stats.quantiles import median, quantile

#: The most sessions of a case that a baseline keeps; a further one pushes the oldest out.
MOST_SESSIONS = 20
#: The fewest sessions of a level that tell what is normal on a host.
FEWEST_NORMAL = 5
#: What is multiplied by the reference link's rate, and not divided by it: a cost of each frame.
COST = ("throughput", "lower")
#: The fewest launches that have a best: of a few, all may be disturbed.
FEWEST_BEST = 8
#: The quantile at which the best launches begin.
_BEST = 0.9


@dataclass(frozen=True, slots=True)
class SessionValues:
    """The values of one session of a case.

    Attributes:
        values: the compared figures by name, each the median over launches where those are known.
        control: the reference link's main figure beside it, median over launches; None without one.
        against: the figures against the reference link, median over neighbouring launches; see ``against_control``.
        at_best: the figures against what the reference link did at its best; see ``against_best``.
        level: grows by one with each change that was accepted.
        other_link_pps: rate of a link that shares no code with the path, when the session began; None without one.
        best: the figures at their best; see ``best_of``. Those of fewer than eight launches are missing.
        control_best: the reference link's main figure at its best; None without one, or of fewer than eight launches.
        distance_ns: distance between the CPUs that pass frames; None where it is not known.
    """

    values: dict[str, float] = field(default_factory=dict)
    control: float | None = None
    against: dict[str, float] = field(default_factory=dict)
    at_best: dict[str, float] = field(default_factory=dict)
    level: int = 0
    other_link_pps: float | None = None
    best: dict[str, float] = field(default_factory=dict)
    control_best: float | None = None
    distance_ns: float | None = None


def best_of(launches: Sequence[float], better: Better) -> float | None:
    """Returns the ninth decile of launches, counted from the worst one; None of fewer than eight.

    What disturbs a launch makes it slower, and nothing makes it faster than the host is. So the best launches stay
    where they are while some are undisturbed (Chen and Revels, "Robust benchmarking in noisy environments", 2016, go to
    the best one). Over 46 quiet sessions the medians of testpmd lay 23 % apart (standard deviation), its ninth deciles
    1.8 %; those of linux-bridge 4.2 and 1.6 %, those of ovs 17 and 1.6 %.
    """
    if len(launches) < FEWEST_BEST or min(launches) <= 0:
        return None
    return quantile(launches, _BEST if better == "higher" else 1 - _BEST)


def best_against(name: str, session: SessionValues) -> float | None:
    """Returns a figure at its best against the reference link at its best; None where either is not known."""
    best, control = session.best.get(name), session.control_best
    if best is None or control is None:
        return None
    return best * control if COMPARED[name] == COST else best / control


def against_control(name: str, figure: Figure, control: Figure | None) -> tuple[float, ...]:
    """Returns a figure against the reference link, launch by launch; empty where either has no launches.

    A quotient of two rates or of two times; of cycles a frame their product with the reference link's rate, since a
    slower host makes cycles more and the rate less.
    """
    if control is None or not figure.launches or min(control.launches, default=0.0) <= 0:
        return ()
    both = zip(figure.launches, control.launches, strict=False)
    if COMPARED[name] == COST:
        return tuple([value * beside for value, beside in both])
    return tuple([value / beside for value, beside in both])


def against_best(name: str, figure: Figure, control: Figure | None) -> float | None:
    """Returns a figure against the ninth decile of the reference link's launches; None where it has none.

    What disturbs a launch makes it slower, and nothing makes it faster than the host is. So the best launches stay
    where they are while some are undisturbed, and tell more than neighbouring launches do where these are not disturbed
    together. Over eight quiet sessions the medians of a direct link lay 4.9 % apart (standard deviation), its upper
    quartiles 2.8 % and its ninth deciles 1.4 %.
    """
    if control is None or not control.launches or min(control.launches) <= 0:
        return None
    better = _BEST if COMPARED[name][0] == "throughput" else 1 - _BEST
    value, beside = middle(figure), quantile(control.launches, better)
    return value * beside if COMPARED[name] == COST else value / beside


def by_level(sessions: Sequence[SessionValues], of: Callable[[SessionValues], float | None]) -> list[list[float]]:
    """Returns a positive value of each session that has it, level by level; none if none of the newest level has it.

    The newest level is the last. What was right before a change was accepted is not what is right now.
    """
    levels: dict[int, list[float]] = {}
    for session in sessions:
        value = of(session)
        if value is not None and value > 0:
            levels.setdefault(session.level, []).append(value)
    newest = max((session.level for session in sessions), default=0)
    return [levels[level] for level in sorted(levels)] if newest in levels else []


def middle(figure: Figure) -> float:
    """Returns the median over a figure's launches; its value where they are not known."""
    return median(figure.launches) if figure.launches else figure.value
