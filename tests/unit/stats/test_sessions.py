# SPDX-License-Identifier: BSD-3-Clause
"""A new session is distinguished from earlier ones only by more than sessions differ."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.intervals import estimate_change_of_level, widen_like
from pytest_icbench.stats.quantiles import Estimate, median, student_quantile

COMPARISONS, LAUNCHES = 1200, 7
launches = st.lists(st.floats(min_value=1, max_value=1e6), min_size=1, max_size=7)


def change_of_session(now: list[float], earlier: list[list[float]]) -> Estimate:
    """A session counts by the median of its launches."""
    return estimate_change_of_level(median(now), [[median(one) for one in earlier]])


def session(generator: random.Random, between: float, correlation: float, heavy: bool) -> list[float]:
    """Launches of 2 % around a level that the session draws; with ``heavy`` the level is Student's with 3 degrees."""
    draw = generator.gauss(0, between)
    if heavy:
        draw /= math.sqrt(generator.gammavariate(1.5, 2))
    series, now, share = [], generator.gauss(0, 0.02), math.sqrt(1 - correlation * correlation)
    for _ in range(LAUNCHES):
        series.append(100 * math.exp(draw + now))
        now = correlation * now + share * generator.gauss(0, 0.02)
    return series


@pytest.mark.parametrize("earlier", [2, 3, 5, 10])
@pytest.mark.parametrize(
    ("between", "correlation", "heavy"), [(0.0, 0.0, False), (0.05, 0.6, False), (0.2, 0.9, False), (0.1, 0.3, True)]
)
def test_an_unchanged_session_is_covered_for_any_spread(
    earlier: int, between: float, correlation: float, heavy: bool
) -> None:
    generator, held = random.Random(f"{earlier} {between}"), 0
    for _ in range(COMPARISONS):
        now, *before = (session(generator, between, correlation, heavy) for _ in range(earlier + 1))
        found = change_of_session(now, before)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 1 <= found.high
    assert held / COMPARISONS == pytest.approx(0.95, abs=0.03)


def test_a_distant_session_is_found_with_several_similar_ones() -> None:
    alike = [[100.0 + place, 101.0 + place, 99.0 + place] for place in range(5)]
    reported = change_of_session([80.0, 81.0, 82.0], alike)
    assert reported.high is not None
    assert reported.high < 1
    assert reported == pytest.approx(81 / 102, rel=0.01)


def test_one_session_has_no_spread_and_none_is_refused() -> None:
    assert change_of_session([2.0], [[1.0]]) == Estimate(2.0)
    with pytest.raises(ValueError, match="needs positive medians"):
        change_of_session([1.0], [[0.0], [1.0]])


@given(launches, st.lists(launches, min_size=2, max_size=6), st.floats(min_value=1e-3, max_value=1e3))
def test_the_change_has_no_unit(now: list[float], earlier: list[list[float]], unit: float) -> None:
    plain = change_of_session(now, earlier)
    scaled = change_of_session([v * unit for v in now], [[v * unit for v in one] for one in earlier])
    assert scaled == pytest.approx(plain, rel=1e-6)
    assert plain.low is not None
    assert plain.high is not None
    assert plain.low <= plain <= plain.high


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (2, 4.303), (3, 3.182)])
def test_few_degrees_of_freedom_have_their_quantiles(freedom: int, t: float) -> None:
    assert student_quantile(freedom, 0.975) == pytest.approx(t, rel=0.01)


@pytest.mark.parametrize("earlier", [3, 6, 20])
@pytest.mark.parametrize(("between", "heavy"), [(0.0, False), (0.05, False), (0.2, True)])
def test_a_value_holds_what_other_sessions_find(earlier: int, between: float, heavy: bool) -> None:
    generator, held, alone = random.Random(f"{earlier} {between} {heavy}"), 0, 0
    for _ in range(COMPARISONS):
        now, *before = (session(generator, between, 0.3, heavy) for _ in range(earlier + 1))
        own = Estimate(median(now), sorted(now)[1], sorted(now)[-2], 0.9)
        wide = widen_like(own, change_of_session(now, before))
        assert wide.low is not None
        assert wide.high is not None
        assert own.low is not None
        assert own.high is not None
        held += wide.low <= 100 <= wide.high
        alone += own.low <= 100 <= own.high
    assert held / COMPARISONS >= 0.93
    assert held >= alone


def test_a_value_whose_sessions_or_launches_are_unknown_keeps_its_interval() -> None:
    own, change = Estimate(100.0, 98.0, 102.0, 0.95), Estimate(0.9, 0.8, 1.0, 0.95)
    assert widen_like(own, Estimate(0.9)) == own
    assert widen_like(Estimate(100.0), change) == Estimate(100.0)
    assert widen_like(own, Estimate(0.9, 0.899, 0.901)) == own
    wide = widen_like(own, change)
    assert (wide.low, wide.high) == pytest.approx((800 / 9, 1000 / 9))
    assert (wide.value, wide.coverage) == (100, 0.95)
