# SPDX-License-Identifier: BSD-3-Clause
"""Figures over launches that ran in rounds, or on several rigs: a round, with its rigs, is one unit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pytest_icbench.model.launch import Launch
from pytest_icbench.stats.intervals import estimate_over_rounds, over_launches
from pytest_icbench.stats.quantiles import Estimate

T = TypeVar("T")


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
