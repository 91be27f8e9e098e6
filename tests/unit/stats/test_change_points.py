# SPDX-License-Identifier: BSD-3-Clause
"""Levels of a series, and chance."""

from __future__ import annotations

import math
from random import Random

import pytest

from pytest_icbench.stats import change_points
from pytest_icbench.stats.change_points import FALSE_ALARMS, levels
from tests.unit.stats.wandering import wandering


def test_a_run_of_one_band_is_no_change() -> None:
    """Results that have one of two bands at random, 6 % apart: jumpavg alone cuts most of such series."""
    random, changed, series = Random(1), 0, 20
    for _ in range(series):
        values = [(100 if random.random() < 0.5 else 94) * random.gauss(1, 0.005) for _ in range(50)]
        changed += len(levels(values)) > 1
    assert changed <= 1


def test_values_without_a_ratio_keep_their_levels() -> None:
    assert [level.first for level in levels([0.0] * 10 + [5.0] * 10)] == [0, 10]


@pytest.mark.parametrize("after", [4, 10])
def test_a_step_is_told_from_a_few_points(after: int) -> None:
    random, told, series = Random(2), 0, 20
    for _ in range(series):
        values = [(100 if place < 30 else 95) * random.gauss(1, 0.01) for place in range(30 + after)]
        told += [level.first for level in levels(values)][1:] in ([29], [30], [31])
    assert told >= 18


def changed(correlation: float, deviation: float, count: int, series: int = 40) -> int:
    random = Random(3)
    return sum(len(levels(wandering(random, count, correlation, deviation))) > 1 for _ in range(series))


@pytest.mark.parametrize(
    ("correlation", "deviation"), [(0.0, 0.05), (0.3, 0.05), (0.6, 0.05), (0.9, 0.02), (0.9, 0.05)]
)
@pytest.mark.parametrize("count", [25, 50])
def test_what_lasts_for_some_runs_is_no_change(correlation: float, deviation: float, count: int) -> None:
    assert changed(correlation, deviation, count) <= FALSE_ALARMS * 40


def test_independence_alone_takes_what_lasts_for_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: so it would, if runs were taken for independent."""
    monkeypatch.setattr(change_points, "TELLING", -math.inf)
    assert changed(0.9, 0.05, 50) > 20


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_a_step_is_found_beside_what_lasts(correlation: float) -> None:
    random, told, series = Random(4), 0, 20
    for _ in range(series):
        values = [
            value * (0.95 if place >= 30 else 1) for place, value in enumerate(wandering(random, 50, correlation, 0.01))
        ]
        told += [level.first for level in levels(values)][1:] in ([29], [30], [31])
    assert told >= 18
