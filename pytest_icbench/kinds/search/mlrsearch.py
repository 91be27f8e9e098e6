# SPDX-License-Identifier: BSD-3-Clause
"""Searches for a rate: MLRsearch (RFC 9971) decides which trial comes next, and a given function runs it.

The module knows neither rigs nor launches, so that a simulated device can be searched as well as a real one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.search_goal import Goal

if TYPE_CHECKING:
    from MLRsearch import MultipleLossRatioSearch

#: Loads of a search span at most this factor. CSIT's least load is a thousandth of its usual maximum.
SPAN = 1000
#: Trials of the upper bound after the search, of which most decide.
ASKED_AGAIN = 3
#: A limit far beyond ours: the trial function ends a search that takes too long.
_FOREVER_S = 1e9


class OutOfTime(Exception):
    """The exception by which a trial function says that there is no time for the trial."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of one trial.

    Attributes:
        offered: frames that were offered to the device.
        received: frames of these that were received.
        effective_s: time that counts towards the duration sum.
        unsent: frames that were intended but not offered, and that count as lost.
    """

    offered: int
    received: int
    effective_s: float
    unsent: int = 0

    @property
    def loss_ratio(self) -> float:
        """The trial loss ratio, 1 - received/intended; 0 if nothing was intended."""
        intended = self.offered + self.unsent
        return 1 - self.received / intended if intended else 0.0


#: Runs a trial; takes seconds and frames per second (per pair). May raise OutOfTime.
TrialRunner = Callable[[float, float], Tried]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds that a search has proven; loads are per pair.

    Attributes:
        lower_pps: the relevant lower bound, None if no load is one.
        upper_pps: the relevant upper bound, None if no load is one (the greatest load is good).
        conditional_pps: conditional throughput, the forwarding rate at the lower bound.
        reached: whether the search came to its end: the bounds are as close as the goal wants, or a limit is met.
        coarse: bounds from fewer or shorter trials than the goal asks for, if ``reached`` is false.
    """

    lower_pps: float | None
    upper_pps: float | None
    conditional_pps: float | None
    reached: bool
    coarse: tuple[float | None, float | None] = (None, None)

    @property
    def width(self) -> float | None:
        """The distance of the bounds as a share of the upper one."""
        if self.lower_pps is None or self.upper_pps is None:
            return None
        return 1 - self.lower_pps / self.upper_pps


def check_library() -> None:
    """Raises UsageError with the remedy if the library is missing."""
    if find_spec("MLRsearch") is None:
        raise UsageError("the rates ndr and pdr need the library MLRsearch: pip install 'MLRsearch>=1.2.1'")


def find_bounds(goal: Goal, least_pps: float, greatest_pps: float, run: TrialRunner) -> Bounds:
    """Searches between two loads, 0 < least < greatest, until the goal is met or ``run`` raises OutOfTime.

    A disturbance that outlasts some trials makes a good load look bad, and the search ends far too low. So a goal that
    repeats bad trials repeats those of its upper bound at the end. If most of these trials are good, the search begins
    anew, once. Raises UsageError: the library is missing. Errors of ``run`` pass through.
    """
    check_library()
    bounds = _search(goal, least_pps, greatest_pps, run)
    if not (goal.exceed_ratio and bounds.reached) or bounds.upper_pps is None:
        return bounds
    try:
        if not _passes(goal, bounds.upper_pps, run):
            return bounds
    except OutOfTime:
        return bounds
    again = _search(goal, least_pps, greatest_pps, run)
    return bounds if again.lower_pps is None and not again.reached else again


def _passes(goal: Goal, load_pps: float, run: TrialRunner) -> bool:
    """Whether most of ``ASKED_AGAIN`` trials of a load are good; as soon as most of them tell."""
    most, good, bad = ASKED_AGAIN // 2 + 1, 0, 0
    while max(good, bad) < most:
        if goal.accepts(run(goal.final_trial_s, load_pps).loss_ratio):
            good += 1
        else:
            bad += 1
    return good == most


def _search(goal: Goal, least_pps: float, greatest_pps: float, run: TrialRunner) -> Bounds:
    """Searches once."""
    from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

    class Measurer(AbstractMeasurer):  # type: ignore[misc]
        def measure(self, intended_duration: float, intended_load: float) -> Any:
            tried = run(intended_duration, intended_load)
            return MeasurementResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                offered_count=tried.offered,
                forwarding_count=min(tried.received, tried.offered),
                intended_count=tried.offered + tried.unsent,
                duration_with_overheads=tried.effective_s,
            )

    search_goal = SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width,
        initial_trial_duration=goal.initial_trial_s,
        final_trial_duration=goal.final_trial_s,
        duration_sum=goal.duration_sum_s,
        preceding_targets=goal.steps,
        expansion_coefficient=2,
        fail_fast=False,  # that no load is good is a result
    )
    # The library checks each limit against the other when it is set.
    config = Config(
        goals=[search_goal], max_load=greatest_pps * 2, search_duration_max=_FOREVER_S, warmup_duration=None
    )
    config.min_load = least_pps
    config.max_load = greatest_pps
    search = MultipleLossRatioSearch(config=config)
    reached = True
    try:
        search.search(measurer=Measurer(), debug=lambda _text: None)
    except OutOfTime:
        reached = False
    return _bounds(search, search_goal, reached)


def _bounds(search: MultipleLossRatioSearch, search_goal: Any, reached: bool) -> Bounds:
    from MLRsearch import GoalResult

    target = search.scaling.goal_to_final_target[search_goal]
    relevant = search.database.get_relevant_bounds(target)
    result = GoalResult.from_bounds(relevant)
    lower, upper = (None if bound is None else float(bound) for bound in (relevant.clo, relevant.chi))
    conditional = result.conditional_throughput
    coarse: tuple[float | None, float | None] = (lower, upper)
    while not reached and None in coarse and target.preceding is not None:
        target = target.preceding
        relevant = search.database.get_relevant_bounds(target)
        ends = [None if bound is None else float(bound) for bound in (relevant.clo, relevant.chi)]
        coarse = (coarse[0] or ends[0], coarse[1] or ends[1])
    return Bounds(
        lower_pps=lower,
        upper_pps=upper,
        conditional_pps=None if conditional is None else float(conditional),
        reached=reached,
        coarse=coarse,
    )
