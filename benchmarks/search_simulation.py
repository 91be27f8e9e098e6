# SPDX-License-Identifier: BSD-3-Clause
"""A device that is known exactly, searched with MLRsearch and with a plain binary search: which is right, and how soon?

The device forwards up to its capacity and loses the rest. Around that there is noise of two kinds: from trial to trial
the capacity differs a little, and in some trials an interruption takes away some milliseconds of it. Both can last for
some trials.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pytest_icbench.kinds.search.mlrsearch import Bounds, OutOfTime, Tried, find_bounds
from pytest_icbench.model.search_goal import Goal

#: What starting and ending a trial costs a real measurement, seconds.
OVERHEAD_S = 0.8


@dataclass
class SimulatedDevice:
    """Call it as a trial: seconds and frames per second in, what passed out.

    Attributes:
        capacity_pps: what it forwards when nothing disturbs it.
        jitter: standard deviation of the capacity between trials, as a part of it.
        correlation: of neighbouring trials: of their capacity, and of whether they are interrupted.
        heavy: whether what changes the capacity from trial to trial is Student's with three degrees of freedom.
        stall_share: part of the trials in which an interruption occurs.
        stall_s: the longest interruption; what its queue cannot hold is lost.
        queue: frames that it holds back through an interruption.
        spent_s: what the trials would have taken.
    """

    capacity_pps: float
    jitter: float = 0.0
    stall_share: float = 0.0
    stall_s: float = 0.002
    queue: int = 256
    overheads_count: bool = True
    random: random.Random = field(default_factory=random.Random)
    spent_s: float = 0.0
    trials: int = 0
    correlation: float = 0.0
    heavy: bool = False
    _regime: float = 0.0
    _interrupted: bool = False

    def __call__(self, duration_s: float, load_pps: float) -> Tried:
        offered = round(duration_s * load_pps)
        capacity = self.capacity_pps * max(0.0, 1 + self._next_regime())
        lost = max(0.0, load_pps - capacity) * duration_s
        if self._is_interrupted():
            missed = self.random.uniform(0.0, self.stall_s) * load_pps
            lost += max(0.0, missed - self.queue)
        self.spent_s += duration_s + OVERHEAD_S
        self.trials += 1
        effective = duration_s + (OVERHEAD_S if self.overheads_count else 0.0)
        return Tried(offered, max(0, offered - round(lost)), effective)

    def _next_regime(self) -> float:
        fresh = self.random.gauss(0.0, self.jitter)
        if self.heavy:
            fresh /= math.sqrt(self.random.gammavariate(1.5, 2))  # of the same variance
        kept = self.correlation if self.trials else 0.0
        self._regime = kept * self._regime + math.sqrt(1 - kept * kept) * fresh
        return self._regime

    def _is_interrupted(self) -> bool:
        kept = self.correlation if self.trials else 0.0
        if not kept or self.random.random() >= kept:
            self._interrupted = self.random.random() < self.stall_share
        return self._interrupted

    def true_rate(self, loss_ratio: float) -> float:
        """The greatest load of which no more than ``loss_ratio`` is lost while nothing disturbs it."""
        return self.capacity_pps / (1 - loss_ratio)


def plain_binary_search(
    goal: Goal, least_pps: float, greatest_pps: float, run: Callable[[float, float], Tried]
) -> Bounds:
    """The classical search: halve the interval, one trial of the final length at each load, believe every trial.

    As RFC 2544's throughput is usually looked for; ends at the goal's width.
    """
    if goal.accepts(run(goal.final_trial_s, greatest_pps).loss_ratio):
        return Bounds(greatest_pps, None, greatest_pps, True)
    lower, upper, conditional = None, greatest_pps, None
    try:
        while (lower or least_pps) < upper * (1 - goal.width):
            middle = ((lower or least_pps) + upper) / 2
            loss = run(goal.final_trial_s, middle).loss_ratio
            if goal.accepts(loss):
                lower, conditional = middle, middle * (1 - loss)
            else:
                upper = middle
    except OutOfTime:
        return Bounds(lower, upper, conditional, False)
    return Bounds(lower, upper, conditional, True)


@dataclass(frozen=True)
class Score:
    """Of many searches: the share that is right, and what one takes (medians)."""

    searches: int
    right: float
    trials: float
    seconds: float


Search = Callable[[Goal, float, float, Callable[[float, float], Tried]], Bounds]


def score(search: Search, goal: Goal, searches: int, seed: int = 1, **noise: Any) -> Score:
    """Searches devices of random capacity, 0.1 to 9 Mpps, between 10 kpps and 10 Mpps.

    A search is right if its conditional throughput is within the goal's width of the device's: a lower bound that is
    met by the device and no more than a width below what it can do.

    Args:
        noise: ``jitter``, ``stall_share``, ``stall_s``, ``correlation``, ``heavy`` of the device.
    """
    right, trials, seconds = 0, [], []
    for found, device in searched(search, goal, searches, seed, **noise):
        right += within_width(found, device.true_rate(goal.loss_ratio), goal.width)
        trials.append(device.trials)
        seconds.append(device.spent_s)
    middle = searches // 2
    return Score(searches, right / searches, sorted(trials)[middle], sorted(seconds)[middle])


def searched(
    search: Search, goal: Goal, searches: int, seed: int = 1, **noise: Any
) -> Iterator[tuple[Bounds, SimulatedDevice]]:
    """Searches devices as ``score`` does, and yields what was found with each."""
    source = random.Random(seed)
    for _ in range(searches):
        device = SimulatedDevice(
            source.uniform(1e5, 9e6),
            random=random.Random(source.random()),
            overheads_count=goal.overheads_count,
            **noise,
        )
        yield search(goal, 1e4, 1e7, device), device


def within_width(found: Bounds, true_pps: float, width: float) -> bool:
    """Whether the relevant lower bound is within the goal's width of the true rate, above or below."""
    return found.lower_pps is not None and abs(found.lower_pps / true_pps - 1) <= width


if __name__ == "__main__":
    from pytest_icbench.model.rate import Rate
    from pytest_icbench.model.search_goal import goal_of

    for rate in (Rate(loss_ratio=0.0), Rate(loss_ratio=0.005)):
        for jitter, stalls in ((0.0, 0.0), (0.001, 0.0), (0.001, 0.2), (0.002, 0.2)):
            for search in (find_bounds, plain_binary_search):
                found = score(search, goal_of(rate, "csit"), 200, jitter=jitter, stall_share=stalls)
                print(rate.typed, jitter, stalls, search.__name__, found)
