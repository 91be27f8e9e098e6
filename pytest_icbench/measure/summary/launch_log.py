# SPDX-License-Identifier: BSD-3-Clause
"""The launches of a case as they ran and by the state of the host, and figures over them. Pure.

Launches that ran in rounds, or on several rigs, depend on each other: a round, with its rigs, is one unit.

Launches on CPUs that lie far apart are of another population than launches on CPUs that share a cache. The figures of
a case are those of one state: the one that most launches have, and of equals the nearest. The level of every state
stands beside them. A launch in which the state changed belongs to none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, TypeVar

from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import BY_KIND, kept
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import StateLevel
from pytest_icbench.stats.intervals import estimate_over_rounds, over_launches
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.stats.states import find_states, geometric_mean, has_changed

T = TypeVar("T")
#: A launch of the case, and the one of the reference link that ran next to it; either can be missing.
_Beside = tuple[Launch | None, Launch | None]


@dataclass(slots=True)
class LaunchLog:
    """The launches of one case in the order in which they ran.

    Attributes:
        launches, reference: valid launches of the case and of its reference; those at the same index were neighbours.
        rejected: invalid launches, and trials of a search off the lower bound; they are evidence, and in no figure.
        invalid: reason and evidence that end the case.
        reference_evidence: why there is no ratio although a reference was measured.
        faults: faults of the harness after which launches were repeated.
        repeated: launches that were repeated because they were disturbed; in no figure.
        others: launches of case and reference in another state of the host than those of the figures; as ``repeated``
            they name their side.
        awaited_s: how long the case waited for a state of the host.
        clock_step_s: seconds by which the clock of the time of day was set forward meanwhile; negative if it was set
            back.
    """

    launches: list[Launch] = field(default_factory=list)
    reference: list[Launch] = field(default_factory=list)
    rejected: list[Launch] = field(default_factory=list)
    invalid: tuple[str, str] | None = None
    reference_evidence: str | None = None
    faults: list[str] = field(default_factory=list)
    repeated: list[Launch] = field(default_factory=list)
    others: list[Launch] = field(default_factory=list)
    awaited_s: float = 0.0
    ended_by: str = "repeats"
    started_at: float = 0.0
    duration_s: float = 0.0
    clock_step_s: float = 0.0


def main_figure(case: Case, launch: Launch) -> float:
    """Returns the figure by which launches of a case are compared: frames per second, or the median round trip."""
    figure = BY_KIND[case.kind].of_launch(launch)
    return float("nan") if figure is None else float(figure)


def by_round(launches: Sequence[Launch], values: Sequence[T]) -> list[list[T]]:
    """Returns the values of the launches by round, in the order of rounds; a single list without rounds."""
    rounds: dict[int | None, list[T]] = {}
    for launch, value in zip(launches, values, strict=True):
        rounds.setdefault(launch.round, []).append(value)
    return list(rounds.values())


def over(launches: Sequence[Launch], values: Sequence[float]) -> Estimate:
    """Returns the estimate of a figure that each launch has. Raises ValueError for no values."""
    rounds = by_round(launches, values)
    return over_launches(values) if len(rounds) < 2 else estimate_over_rounds(rounds)


@dataclass(frozen=True, slots=True)
class State:
    """A state of the host. ``least_ns`` and ``greatest_ns``: the distances between CPUs that were read in it."""

    least_ns: float
    greatest_ns: float

    def holds(self, launch: Launch | None) -> bool:
        """Whether a launch ran in this state throughout; one without a distance is of every state."""
        if launch is None or launch.distance_ns is None:
            return True
        return not has_changed(launch.distances_ns) and self.least_ns <= launch.distance_ns <= self.greatest_ns


def states_of(launches: Iterable[Launch]) -> list[State]:
    """Returns the states in which whole launches ran, by rising distance; none without distances."""
    known = [launch.distance_ns for launch in launches if not has_changed(launch.distances_ns)]
    return [State(state[0], state[-1]) for state in find_states(value for value in known if value is not None)]


def fullest(launches: Sequence[Launch], reference: Sequence[Launch] = ()) -> State | None:
    """Returns the state that most launches share with their neighbours; of equal ones that of most launches.

    It is None if no launch ran in one state throughout.
    """
    beside = list(zip_longest(launches, reference))

    def rank(state: State) -> tuple[int, int]:
        together = sum(_are_in(state, each) for each in beside if each[0] is not None)
        return together, sum(map(state.holds, launches))

    states = [state for state in states_of([*launches, *reference]) if any(map(state.holds, launches))]
    return max(states, key=rank, default=None)


def in_state(launches: Sequence[Launch], state: State | None) -> list[Launch]:
    """Returns the launches of a state; all of them for None."""
    return [launch for launch in launches if state is None or state.holds(launch)]


def split_by_state(gathered: LaunchLog) -> LaunchLog:
    """Returns what was gathered with the launches of one state alone; the rest goes to ``others``.

    A launch of the case and its neighbour of the reference link are compared with each other, so they stay together.
    Where no two neighbours were in one state, those of the case stay alone. Where the state changed in every launch,
    all of them stay.
    """
    state = fullest(gathered.launches, gathered.reference)
    beside: list[_Beside] = list(zip_longest(gathered.launches, gathered.reference))
    if state is None or all(_are_in(state, each) for each in beside):
        return gathered
    chosen = [each for each in beside if each[0] is not None and _are_in(state, each)]
    if not chosen:
        chosen = [(launch, None) for launch in in_state(gathered.launches, state)]
    kept = {id(launch) for each in chosen for launch in each}
    others = [
        replace(launch, repeated=side)
        for side, launches in (("case", gathered.launches), ("reference", gathered.reference))
        for launch in launches
        if id(launch) not in kept
    ]
    return replace(
        gathered,
        launches=[launch for launch, _ in chosen if launch is not None],
        reference=[launch for _, launch in chosen if launch is not None],
        others=[*gathered.others, *others],
    )


def state_fields(case: Case, gathered: LaunchLog) -> dict[str, Any]:
    """Returns the fields of a measurement about states of the host."""
    distances = [launch.distance_ns for launch in gathered.launches if launch.distance_ns is not None]
    every = [*gathered.launches, *(launch for launch in gathered.others if launch.repeated == "case")]
    states = states_of(every)
    return {
        "distance_ns": geometric_mean(distances),
        "levels": tuple(_level(case, every, state) for state in states),
        "changed_launches": sum(has_changed(launch.distances_ns) for launch in every),
        "awaited_s": gathered.awaited_s,
        "per_other_launch": tuple(gathered.others),
    }


def _level(case: Case, launches: Sequence[Launch], state: State) -> StateLevel:
    known = [launch for launch in in_state(launches, state) if launch.distance_ns is not None]
    figures = [(launch, figure) for launch in known if (figure := main_figure(case, launch)) == figure]
    value = over([launch for launch, _ in figures], [figure for _, figure in figures]) if figures else None
    distance_ns = geometric_mean([launch.distance_ns or 0.0 for launch in known]) or 0.0
    # Launches of a round depend on its rigs.
    alike = len({launch.round for launch in known}) == 1
    return StateLevel(distance_ns, len(known), kept(value), tuple(figure for _, figure in figures) if alike else ())


def _are_in(state: State, launches: _Beside) -> bool:
    return all(map(state.holds, launches))
