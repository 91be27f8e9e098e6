# SPDX-License-Identifier: BSD-3-Clause
"""A step beside dependence: the likelihood ratio of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from pytest_icbench.stats.change_points import TELLING
from pytest_icbench.stats.level_shift import CORRELATIONS, step_log_likelihood
from tests.unit.stats.wandering import wandering


def by_whitening(values: Sequence[float], place: int) -> float:
    """The same by regression of the values less what each inherits from the one before."""

    def whitened(column: Sequence[float], rho: float) -> list[float]:
        rest = [now - rho * before for before, now in pairwise(column)]
        return [math.sqrt(1 - rho * rho) * column[0], *rest]

    def left(y: list[float], columns: list[list[float]]) -> float:
        """The squares that are left after Gram and Schmidt took the columns out."""
        basis: list[list[float]] = []
        for column in [*columns, y]:
            rest = list(column)
            for other in basis:
                share = sum(a * b for a, b in zip(rest, other, strict=True)) / sum(b * b for b in other)
                rest = [a - share * b for a, b in zip(rest, other, strict=True)]
            basis.append(rest)
        return sum(a * a for a in basis[-1])

    n = len(values)
    ones, later = [1.0] * n, [0.0] * place + [1.0] * (n - place)
    best = []
    for columns in ([ones], [ones, later]):
        likely = [
            math.log(1 - rho * rho)
            - n * math.log(left(whitened(values, rho), [whitened(column, rho) for column in columns]))
            for rho in CORRELATIONS
        ]
        best.append(max(likely))
    return best[1] - best[0]


@pytest.mark.parametrize(
    ("count", "place", "step"), [(8, 3, 5.0), (30, 27, 2.0), (60, 30, 0.0), (5, 1, 1.0), (5, 4, 1.0)]
)
def test_it_is_the_likelihood_ratio(count: int, place: int, step: float) -> None:
    values = wandering(Random(count), count, 0.5, 0.01)
    values[place:] = [value * (1 + step / 100) for value in values[place:]]
    found = step_log_likelihood(values, place)
    assert found == pytest.approx(by_whitening(values, place), rel=1e-6, abs=1e-6)
    assert step_log_likelihood([3 * value - 7 for value in values], place) == pytest.approx(found, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_a_step_is_likelier_the_greater_it_is(correlation: float) -> None:
    values = wandering(Random(3), 40, correlation, 0.01)
    found = [step_log_likelihood(moved(values, 20, step), 20) for step in (0.01, 0.03, 0.1)]
    assert found == sorted(found)
    assert found[0] < TELLING < found[1]


def moved(values: Sequence[float], place: int, step: float) -> list[float]:
    return [value * (1 - step) if number >= place else value for number, value in enumerate(values)]


def test_two_steady_levels_are_a_step_without_doubt() -> None:
    assert step_log_likelihood([5.0] * 10 + [4.0] * 3, 10) > 100
