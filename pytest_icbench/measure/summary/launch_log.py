# SPDX-License-Identifier: BSD-3-Clause
"""The launches of a case as they ran, and figures over them. Pure.

Launches that ran in rounds, or on several rigs, depend on each other: a round, with its rigs, is one unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import BY_KIND
from pytest_icbench.model.launch import Launch
from pytest_icbench.stats.intervals import estimate_over_rounds, over_launches
from pytest_icbench.stats.quantiles import Estimate

T = TypeVar("T")


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
