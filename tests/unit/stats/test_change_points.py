# SPDX-License-Identifier: BSD-3-Clause
"""Levels of a series, and chance."""

from __future__ import annotations

from random import Random

import pytest

from pytest_icbench.stats.change_points import levels


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
