# SPDX-License-Identifier: BSD-3-Clause
"""Launches that depend on each other are reported, and widen the interval by as much as they have to."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.dependence import (
    FEWEST_DECIDING,
    PRIOR,
    Dependence,
    find_dependence,
    normal_scores,
    widened,
    widening,
)
from pytest_icbench.stats.intervals import interpolated, over_launches
from pytest_icbench.stats.quantiles import Estimate

values = st.lists(st.floats(min_value=1, max_value=1e8), min_size=6, max_size=40)
SESSIONS = 600


def correlated(generator: random.Random, correlation: float, launches: int) -> list[float]:
    """Launches around 100 that are normal, each correlated with the one before it."""
    series, level, share = [], generator.gauss(0, 2), math.sqrt(1 - correlation * correlation)
    for _ in range(launches):
        series.append(100 + level)
        level = correlation * level + share * generator.gauss(0, 2)
    return series


def coverage(correlation: float, launches: int) -> tuple[float, float]:
    """The share of sessions whose interval holds the truth: widened, and as if launches were independent."""
    generator, held, plainly = random.Random(f"{correlation} {launches}"), 0, 0
    for _ in range(SESSIONS):
        series = correlated(generator, correlation, launches)
        now, before = over_launches(series), interpolated(series)
        assert now.low is not None
        assert now.high is not None
        assert before.low is not None
        assert before.high is not None
        held += now.low <= 100 <= now.high
        plainly += before.low <= 100 <= before.high
    return held / SESSIONS, plainly / SESSIONS


@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("launches", [20, 40])
def test_intervals_of_dependent_launches_hold_the_truth_where_plain_ones_do_not(
    correlation: float, launches: int
) -> None:
    held, plainly = coverage(correlation, launches)
    noise = 3 * math.sqrt(0.9 * 0.1 / SESSIONS)
    assert held >= 0.9 - noise
    assert plainly < held
    if correlation >= 0.6:
        assert plainly < 0.9 - noise


def test_intervals_of_independent_launches_stay_what_they_were() -> None:
    held, _ = coverage(0.0, 20)
    assert held == pytest.approx(0.96, abs=0.025)
    generator = random.Random(4)
    factors = sorted(widening([generator.gauss(0, 1) for _ in range(20)]) for _ in range(500))
    assert factors[250] < 1.15


def test_dependence_is_found_and_has_few_false_alarms() -> None:
    generator = random.Random(5)

    def reported(correlation: float) -> float:
        series = (correlated(generator, correlation, FEWEST_DECIDING) for _ in range(400))
        return sum(find.likely for one in series if (find := find_dependence(one)) is not None) / 400

    assert reported(0.0) < 0.05
    assert reported(0.9) > 0.8


def test_nothing_is_said_of_few_launches_and_of_equal_ones() -> None:
    assert find_dependence([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert find_dependence([7.0] * 20) is None
    assert widening([7.0] * 20) == 1


def test_levels_that_stay_for_some_launches_depend_and_alternating_ones_do_not() -> None:
    stays = [100.0 + place // 5 % 2 + place / 1000 for place in range(20)]
    changes = [100.0 + place % 2 + place * 7 % 20 / 1000 for place in range(20)]
    assert (found := find_dependence(stays)) is not None
    assert found.likely
    assert found.correlation > 0.5
    assert found.widening > 2
    assert (found := find_dependence(changes)) is not None
    assert not found.likely
    assert found.correlation < 0.1
    assert found.widening == pytest.approx(1, abs=0.1)


def test_scores_are_those_of_the_ranks_and_ties_share_theirs() -> None:
    scores = normal_scores([3.0, 1.0, 2.0])
    assert scores == pytest.approx([0.869, -0.869, 0.0], abs=1e-3)  # (3 - 0.375) / 3.25
    tied = normal_scores([5.0, 1.0, 5.0, 9.0])
    assert tied[0] == tied[2] == pytest.approx(0)


def test_the_prior_is_a_probability() -> None:
    assert sum(weight for _, weight in PRIOR) == pytest.approx(1)
    assert PRIOR[0][0] == 0


@given(values)
def test_dependence_depends_on_the_order_of_values_alone(series: list[float]) -> None:
    found = find_dependence(series)
    assert found == find_dependence([math.log(value) for value in series]) or len(set(series)) != len(
        {math.log(value) for value in series}
    )
    if found is not None:
        assert 0 <= found.correlation <= 1
        assert 0 <= found.probability <= 1
        assert found.widening >= 1


@given(values, st.floats(min_value=1, max_value=10))
def test_a_widened_interval_holds_the_one_before_and_stays_positive(series: list[float], factor: float) -> None:
    plain = interpolated(series)
    wide = widened(plain, factor)
    assert plain.low is not None
    assert plain.high is not None
    assert wide.low is not None
    assert wide.high is not None
    assert 0 <= wide.low <= plain.low * (1 + 1e-12)
    assert wide.high >= plain.high * (1 - 1e-12)
    assert wide.value == plain.value


def test_widening_leaves_alone_what_has_no_interval_or_no_sign() -> None:
    assert widened(Estimate(3.0), 2) == Estimate(3.0)
    assert widened(Estimate(0.0, -1.0, 2.0), 3) == Estimate(0.0, -3.0, 6.0)
    assert widened(Estimate(1.0, 0.0, 2.0), 3) == Estimate(1.0, 0.0, 4.0)  # a rate, some of whose launches got nothing
    assert Dependence(0.5, 0.5, 1.2).likely is False
