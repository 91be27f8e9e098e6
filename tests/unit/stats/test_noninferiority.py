# SPDX-License-Identifier: BSD-3-Clause
"""Now against before: verdicts on ratios, and how much longer it takes to tell."""

from __future__ import annotations

import random
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.dependence import widened
from pytest_icbench.stats.noninferiority import (
    MOST_LAUNCHES,
    Better,
    Figure,
    Margin,
    joint_widening,
    launches_until_told,
    ratio_of,
)
from pytest_icbench.stats.quantiles import Estimate, unpaired_ratio


def between(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high, 0.95)


@pytest.mark.parametrize(
    ("low", "high", "change"),
    [
        (0.90, 0.94, "worse"),
        (0.90, 0.96, "open"),
        (0.951, 1.02, "same"),
        (1.01, 1.10, "same"),
        (1.031, 1.10, "better"),
        (0.80, 1.20, "open"),
    ],
)
def test_higher_is_better(low: float, high: float, change: str) -> None:
    assert Margin("higher", tolerated=0.02, allowance=0.03).change(between(low, high)) == change


@pytest.mark.parametrize(
    ("low", "high", "change"),
    [
        (1.06, 1.10, "worse"),
        (1.04, 1.10, "open"),
        (0.98, 1.049, "same"),
        (0.90, 0.99, "same"),
        (0.90, 0.969, "better"),
        (0.80, 1.20, "open"),
    ],
)
def test_lower_is_better(low: float, high: float, change: str) -> None:
    assert Margin("lower", tolerated=0.02, allowance=0.03).change(between(low, high)) == change


def test_the_limit_itself_is_allowed() -> None:
    assert Margin("higher", tolerated=0.25, allowance=0.0).change(between(0.75, 0.9)) == "same"
    assert Margin("higher", tolerated=0.25, allowance=0.0).change(between(0.5, 0.75)) == "open"


def test_without_an_interval_nothing_is_told() -> None:
    assert Margin("higher").change(Estimate(0.1)) == "open"
    assert Margin("higher").change(None) == "open"


_RATIO = st.floats(0.01, 10)


@given(_RATIO, _RATIO, st.floats(0, 0.5), st.floats(0, 0.4), st.sampled_from(["higher", "lower"]))
def test_a_wider_interval_never_decides_otherwise(
    one: float, other: float, tolerated: float, allowance: float, better: Better
) -> None:
    """Widening can only take a verdict back."""
    low, high = sorted((one, other))
    margin = Margin(better, tolerated, allowance)
    inner, outer = margin.change(between(low, high)), margin.change(between(low / 2, high * 2))
    order = {"worse": {"worse", "open"}, "open": {"open"}}
    assert outer in order.get(inner, {"better", "same", "open"})


@given(_RATIO, _RATIO, st.floats(0, 0.5), st.floats(0, 0.4), st.sampled_from(["higher", "lower"]))
def test_verdicts_say_what_they_say(
    one: float, other: float, tolerated: float, allowance: float, better: Better
) -> None:
    low, high = sorted((one, other))
    margin = Margin(better, tolerated, allowance)
    change = margin.change(between(low, high))
    worst, best = (low, high) if better == "higher" else (-high, -low)
    limit, gain = (margin.limit, margin.improvement) if better == "higher" else (-margin.limit, -margin.improvement)
    expected = "better" if worst > gain else "same" if worst >= limit else "worse" if best < limit else "open"
    assert change == expected


def test_launches_of_both_sides_make_the_narrower_interval() -> None:
    drawn = random.Random(5)
    now, before = ([drawn.gauss(1e6, 1e4) for _ in range(8)] for _ in range(2))
    found = ratio_of(Figure(1e6, 0.9e6, 1.1e6, tuple(now)), Figure(1e6, 0.9e6, 1.1e6, tuple(before)))
    assert found == widened(unpaired_ratio(now, before), joint_widening(now, before))
    assert joint_widening(now, before) > 1


def test_intervals_decide_where_launches_are_not_known() -> None:
    found = ratio_of(Figure(5.0, 4.0, 6.0), Figure(10.0, 8.0, 12.0))
    assert found is not None
    assert (found.value, found.low, found.high) == (0.5, 4 / 12, 6 / 8)
    assert ratio_of(Figure(5.0), Figure(10.0, 8.0, 12.0)) == Estimate(0.5)
    assert ratio_of(Figure(5.0, 4.0, 6.0), Figure(0.0, 0.0, 0.0)) is None
    assert ratio_of(Figure(5.0, 4.0, 6.0, (1.0,)), Figure(10.0, 0.0, 12.0, (0.0,))) == Estimate(0.5)


@given(st.floats(0.5, 2), st.floats(0.01, 0.4), st.floats(-0.999, 0.999), st.integers(6, 60))
def test_the_launches_that_are_asked_for_suffice_if_width_goes_with_their_root(
    value: float, half: float, place: float, launches: int
) -> None:
    """Of limits anywhere within the interval."""
    limit = value + place * half
    more = launches_until_told(Estimate(value, value - half, value + half, 0.95), limit, launches)
    if more is None:
        assert half * sqrt(launches / (launches + MOST_LAUNCHES)) >= abs(value - limit) * 0.999999
        return
    assert 1 <= more <= MOST_LAUNCHES
    assert half * sqrt(launches / (launches + more)) <= abs(value - limit) * 1.000001


def test_a_figure_at_its_limit_is_never_told() -> None:
    assert launches_until_told(Estimate(1.0, 0.9, 1.1), 1.0, 6) is None
    assert launches_until_told(Estimate(1.0, 0.9, 1.1), 1.0 + 1e-6, 6) is None
    assert launches_until_told(Estimate(1.0), 0.9, 6) is None
    assert launches_until_told(None, 0.9, 6) is None


def test_no_change_is_hardly_ever_a_regression() -> None:
    """Twenty launches against twenty of the same: the margin holds the false alarms far below 1 %."""
    drawn = random.Random(11)
    verdicts = []
    for _ in range(1000):
        sides = [Figure(1.0, launches=tuple(drawn.gauss(1e6, 2e4) for _ in range(20))) for _ in range(2)]
        verdicts.append(Margin("higher").change(ratio_of(sides[0], sides[1])))
    assert verdicts.count("worse") <= 2
    assert verdicts.count("same") > 850
