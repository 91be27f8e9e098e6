# SPDX-License-Identifier: BSD-3-Clause
"""Levels of a series, and chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from pytest_icbench.stats import change_points
from pytest_icbench.stats.change_points import CORRELATIONS, CRITICAL_VALUE, FALSE_ALARMS, levels, step_log_likelihood
from tests.unit.stats.wandering import wandering


def test_a_run_of_one_band_is_no_change() -> None:
    """Results that have one of two bands at random, 6 % apart: each run of a band looks like a level."""
    random, changed, series = Random(1), 0, 20
    for _ in range(series):
        values = [(100 if random.random() < 0.5 else 94) * random.gauss(1, 0.005) for _ in range(50)]
        changed += len(levels(values)) > 1
    assert changed <= 1


def test_values_without_a_ratio_keep_their_levels() -> None:
    assert [level.first for level in levels([0.0] * 10 + [5.0] * 10)] == [0, 10]


@pytest.mark.parametrize("after", [4, 10])
def test_a_step_is_found_with_few_points(after: int) -> None:
    random, reported, series = Random(2), 0, 20
    for _ in range(series):
        values = [(100 if place < 30 else 95) * random.gauss(1, 0.01) for place in range(30 + after)]
        reported += [level.first for level in levels(values)][1:] in ([29], [30], [31])
    assert reported >= 18


def changed(correlation: float, deviation: float, count: int, series: int = 40) -> int:
    random = Random(3)
    return sum(len(levels(wandering(random, count, correlation, deviation))) > 1 for _ in range(series))


@pytest.mark.parametrize(
    ("correlation", "deviation"), [(0.0, 0.05), (0.3, 0.05), (0.6, 0.05), (0.9, 0.02), (0.9, 0.05)]
)
@pytest.mark.parametrize("count", [25, 50])
def test_a_dependent_series_has_no_change(correlation: float, deviation: float, count: int) -> None:
    assert changed(correlation, deviation, count) <= FALSE_ALARMS * 40


def test_without_dependence_in_the_model_a_disturbance_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: so it would, if runs were taken for independent."""
    monkeypatch.setattr(change_points, "CORRELATIONS", (0.0,))
    assert changed(0.9, 0.05, 50) > 20


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_a_step_is_found_in_a_dependent_series(correlation: float) -> None:
    random, reported, series = Random(4), 0, 20
    for _ in range(series):
        values = [
            value * (0.95 if place >= 30 else 1) for place, value in enumerate(wandering(random, 50, correlation, 0.01))
        ]
        reported += [level.first for level in levels(values)][1:] in ([29], [30], [31])
    assert reported >= 18


def test_a_short_level_is_found() -> None:
    random, reported, series = Random(5), 0, 20
    for _ in range(series):
        values = [(95 if 60 <= place < 70 else 100) * random.gauss(1, 0.01) for place in range(140)]
        starts = [level.first for level in levels(values)]
        reported += len(starts) == 3 and abs(starts[1] - 60) <= 1 and abs(starts[2] - 70) <= 1
    assert reported >= 17


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
    assert found[0] < CRITICAL_VALUE < found[1]


def moved(values: Sequence[float], place: int, step: float) -> list[float]:
    return [value * (1 - step) if number >= place else value for number, value in enumerate(values)]


def test_two_steady_levels_are_a_step_without_doubt() -> None:
    assert step_log_likelihood([5.0] * 10 + [4.0] * 3, 10) > 100


def test_the_greatest_numbers_overflow_nothing() -> None:
    assert len(levels([1.7e308] * 10 + [0.8e308] * 10)) == 2
