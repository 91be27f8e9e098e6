# SPDX-License-Identifier: BSD-3-Clause
"""States of the host: the level of a result in each state, and results of one state for rankings. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_icbench.display.case_names import gbps_per_pps, main_figure, main_unit, path_of, short
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Result, StateLevel
from pytest_icbench.stats.quantiles import Estimate, stratified_ratio
from pytest_icbench.stats.states import find_states, has_changed, same_state
from pytest_icbench.wording import counted, span

#: The shortest wait for a state that is reported, in seconds.
NOTABLE_WAIT_S = 1.0


class InOneState(NamedTuple):
    """Results of one state of the host.

    Attributes:
        results: each with its value in that state.
        named: the state in words; empty if the results have only one state.
        missing: the paths that were not measured in that state.
    """

    results: list[Result]
    named: str = ""
    missing: tuple[str, ...] = ()


def apart(distance_ns: float) -> str:
    """Returns a state in words: ``CPUs 63 ns apart``."""
    return f"CPUs {distance_ns:.0f} ns apart"


def levels(result: Result) -> str:
    """Returns the level in each state, and the state of the values; empty for a single state."""
    if len(result.levels) < 2:
        return ""
    unit, factor = main_unit(result)
    parts = [
        f"{short(level.value * factor)} {unit} with {apart(level.distance_ns)} ({counted(level.launches, 'launch')})"
        for level in result.levels
        if level.value is not None
    ]
    of = "" if result.distance_ns is None else f"; the values are of {apart(result.distance_ns)}"
    return f"{len(result.levels)} states of the host: {', '.join(parts)}{of}"


def waited(result: Result) -> str:
    """Returns how long a case waited for a state of the host; empty for a case that did not."""
    if result.awaited_s < NOTABLE_WAIT_S or result.distance_ns is None:
        return ""
    return f"waited {span(result.awaited_s)} for {apart(result.distance_ns)}"


def in_one_state(results: Sequence[Result]) -> InOneState:
    """Returns the results in the state in which they are compared."""
    state = common_state(results)
    if state is None:
        return InOneState(list(results))
    found = [(result, in_state(result, state)) for result in results]
    return InOneState(
        [chosen for _, chosen in found if chosen is not None],
        apart(state[len(state) // 2]),
        tuple(dict.fromkeys(path_of(result) for result, chosen in found if chosen is None)),
    )


def common_state(results: Sequence[Result], beside: Sequence[Result] = ()) -> Sequence[float] | None:
    """Returns the distances of the state in which results are compared; None if they met a single state.

    It is the one in which most of them were measured. Of equal states it is that in which most have an interval, then
    that of most values, then the nearest one. A result without a distance belongs to every state.

    Args:
        beside: results that stand beside them, and do not decide.
    """
    states = find_states(level.distance_ns for result in (*results, *beside) for level in _levels(result))
    return None if len(states) < 2 else max(states, key=lambda state: _known(results, state))


def _known(results: Sequence[Result], state: Sequence[float]) -> tuple[int, ...]:
    """Returns how many results were measured in a state, how many with an interval, and how many have their values."""
    found = [chosen for result in results if (chosen := in_state(result, state)) is not None]
    sure = [main for chosen in found if (main := main_figure(chosen)) is not None and main.low is not None]
    return len(found), len(sure), sum(_is_in(result, state) for result in results)


def _is_in(result: Result, state: Sequence[float]) -> bool:
    return result.distance_ns is None or state[0] <= result.distance_ns <= state[-1]


def ratio_of(one: Result, other: Result) -> Estimate | None:
    """Returns the ratio of two main values with its interval, by launches of the state in which the first one is shown.

    Where these are too few for an interval, the launches of all states count, each of them a stratum. None if the two
    share no state.
    """
    pairs = [
        (mine, theirs)
        for mine in one.levels
        for theirs in other.levels
        if same_state(mine.distance_ns, theirs.distance_ns) and mine.values and min(theirs.values, default=0.0) > 0
    ]
    shown = [pair for pair in pairs if same_state(pair[0].distance_ns, one.distance_ns)]
    found = [stratified_ratio([(mine.values, theirs.values) for mine, theirs in of]) for of in (shown, pairs) if of]
    return next((ratio for ratio in found if ratio.low is not None), found[-1] if found else None)


def _levels(result: Result) -> tuple[StateLevel, ...]:
    if result.levels or result.distance_ns is None:
        return result.levels
    return (StateLevel(result.distance_ns, result.launches, main_figure(result)),)


def in_state(result: Result, state: Sequence[float]) -> Result | None:
    """Returns a result with its value in a state; None if it was not measured in it."""
    if _is_in(result, state):
        return result
    level = next((each for each in result.levels if state[0] <= each.distance_ns <= state[-1]), None)
    if level is None or level.value is None:
        return None
    # The other figures are of the launches of the other state, so none is kept.
    kept = [launch for launch in result.per_other_launch if _ran_in(launch, level.distance_ns)]
    rest = [launch for launch in result.per_other_launch if not _ran_in(launch, level.distance_ns)]
    rest += [replace(launch, repeated="case") for launch in result.per_launch]
    return replace(
        result,
        figures=result.figures.at_level(level.value, gbps_per_pps(result), kept),
        distance_ns=level.distance_ns,
        launches=level.launches,
        per_launch=tuple(replace(launch, repeated=None) for launch in kept),
        per_other_launch=tuple(rest),
    )


def _ran_in(launch: Launch, distance_ns: float) -> bool:
    """Whether a launch of a case, not of its reference link, ran in the state of a distance throughout."""
    return launch.repeated == "case" and not has_changed((*launch.distances_ns, distance_ns))
