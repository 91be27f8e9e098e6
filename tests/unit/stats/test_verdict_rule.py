# SPDX-License-Identifier: BSD-3-Clause
"""Both methods of the gate: how rarely they flag what did not change, and what they find."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.intervals import estimate_spread
from pytest_icbench.stats.verdict_rule import (
    FEWEST_SESSIONS,
    SESSION_ERROR,
    Allowance,
    Decision,
    confidence,
    decide_pairs,
    decide_session,
    fewest,
    is_narrow,
    session_power,
)

RATE, TIME = Allowance("higher"), Allowance("lower")
ANY = Allowance("higher", 1e-9)


def exchanged(sizes: list[float]) -> list[list[float]]:
    """All patterns of signs: what an exchange of labels makes of the pairs' ratios."""
    patterns = itertools.product((1, -1), repeat=len(sizes))
    return [[math.exp(sign * size) for sign, size in zip(signs, sizes, strict=True)] for signs in patterns]


@pytest.mark.parametrize(
    "sizes",
    [
        [0.001 * 2**place for place in range(11)],
        [0.05] * 11,  # a host that jumps between two speeds
        [0.0, 0.0, 0.01, 0.01, 0.02, 0.02, 0.04, 0.3, 0.3, 2.0, 2.0],
    ],
)
@pytest.mark.parametrize("cases", [1, 3, 20])
def test_exchangeable_labels_have_the_promised_rate_of_false_alarms(sizes: list[float], cases: int) -> None:
    patterns = exchanged(sizes)
    for outcome in ("worse", "better"):
        flagged = sum(decide_pairs(ratios, ANY, cases).outcome == outcome for ratios in patterns)
        assert flagged / len(patterns) <= SESSION_ERROR / cases


def test_the_level_is_used_up() -> None:
    """Ratios of sizes that all differ are flagged as often as the ranks allow: 19 of 2,048 patterns."""
    patterns = exchanged([0.001 * 2**place for place in range(11)])
    assert sum(decide_pairs(ratios, ANY, 1).outcome == "worse" for ratios in patterns) == 19


@given(st.lists(st.floats(-0.3, 0.3), min_size=1, max_size=14), st.lists(st.booleans(), min_size=14, max_size=14))
def test_the_end_of_a_series_does_not_depend_on_labels(logs: list[float], exchange: list[bool]) -> None:
    ratios = [math.exp(value) for value in logs]
    others = [math.exp(-value if turned else value) for value, turned in zip(logs, exchange, strict=False)]
    assert is_narrow(ratios, RATE) == is_narrow(others, RATE)


@given(st.lists(st.floats(0.5, 2), min_size=1, max_size=20), st.integers(1, 40))
def test_a_time_is_judged_as_a_rate_is(ratios: list[float], cases: int) -> None:
    rate = decide_pairs(ratios, RATE, cases)
    time = decide_pairs([1 / ratio for ratio in ratios], RATE.of_cost, cases)
    if all(abs(decision.ratio - 1) < 0.02 or abs(decision.ratio - 1) > 0.04 for decision in (rate, time)):
        assert (time.outcome == "better") <= (rate.outcome in ("better", "same", "open"))
        assert (time.outcome == "worse") == (rate.outcome == "worse")


@given(st.integers(1, 300))
def test_the_fewest_pairs_suffice(cases: int) -> None:
    assert decide_pairs([0.9] * fewest(cases), RATE, cases).outcome == "worse"
    short = decide_pairs([0.9] * (fewest(cases) - 1), RATE, cases)
    assert (short.outcome, short.reason, short.more) == ("open", "few", 1)


@pytest.mark.parametrize(
    ("level", "outcome"), [(0.9, "worse"), (0.985, "same"), (1.0, "same"), (1.02, "same"), (1.1, "better")]
)
def test_a_change_counts_from_the_allowance_on(level: float, outcome: str) -> None:
    decision = decide_pairs([level * (1 + 0.001 * number) for number in range(-4, 5)], RATE, 1)
    assert (decision.outcome, decision.reason) == (outcome, None)
    assert decision.power.finds is not None
    assert 0.03 < decision.power.finds < 0.05


def test_a_significant_loss_below_the_allowance_is_not_worse() -> None:
    ratios = [0.98 + 0.006 * (number % 5 - 2) for number in range(10)]
    found = decide_pairs(ratios, RATE, 1)
    assert found.ratio.high is not None
    assert found.ratio.high < 1
    assert found.outcome == "same"


def test_a_large_spread_asks_for_more_pairs() -> None:
    apart = decide_pairs([0.8, 1.2, 0.9, 1.1, 0.95, 1.05, 1.0, 0.98, 1.02, 1.01], RATE, 1)
    assert (apart.outcome, apart.reason) == ("open", "spread")
    assert apart.more is not None
    assert apart.more > 10


def test_the_same_is_said_seldom_of_a_loss_of_the_allowance() -> None:
    """Series that end by their spread: 95 % both ways are 2.5 % on this side, and what looking costs."""
    decisions = [series(Random(seed), 0.03, 0.03) for seed in range(400)]
    assert sum(decision.outcome == "same" for decision in decisions) / len(decisions) < 0.06


@pytest.mark.parametrize("spread", [0.01, 0.03])
def test_a_loss_of_what_it_finds_is_found_nine_times_of_ten(spread: float) -> None:
    finds = [series(Random(seed), 0.0, spread).power.finds or 1.0 for seed in range(100)]
    loss = sorted(finds)[50]
    found = sum(series(Random(seed), loss, spread).outcome == "worse" for seed in range(200)) / 200
    assert 0.8 < found <= 1


def series(random: Random, loss: float, spread: float, cases: int = 5) -> Decision:
    """Pairs until they are narrow, forty at most."""
    ratios: list[float] = []
    while len(ratios) < fewest(cases) or (len(ratios) < 40 and not is_narrow(ratios, RATE)):
        ratios.append((1 - loss) * math.exp(random.gauss(0, spread)))
    return decide_pairs(ratios, RATE, cases)


def test_cases_share_the_error_of_a_session() -> None:
    assert confidence(1) == pytest.approx(0.98)
    assert confidence(20) == pytest.approx(0.999)


# -- sessions


def test_sessions_have_the_promised_rate_of_false_alarms() -> None:
    random, alarms, sessions = Random(3), 0, 4000
    for _ in range(sessions):
        before = [random.lognormvariate(0, 0.02) for _ in range(6)]
        alarms += decide_session(random.lognormvariate(0, 0.02), [before], ANY, 1).outcome == "worse"
    assert alarms / sessions < 0.014


def test_a_session_is_judged_against_those_before() -> None:
    before = [[100.0, 100.3, 99.7, 100.1, 99.9, 100.2]]
    worse, same, better = (decide_session(now, before, RATE, 5) for now in (94.0, 99.0, 106.0))
    assert [worse.outcome, same.outcome, better.outcome] == ["worse", "same", "better"]
    assert same.power.finds is not None
    assert 0.03 <= same.power.finds < 0.04
    assert same.ratio == pytest.approx(0.99, rel=1e-3)


def test_two_sessions_are_few() -> None:
    assert FEWEST_SESSIONS == 3
    few = decide_session(50.0, [[100.0, 100.1]], RATE, 1)
    assert (few.outcome, few.reason, few.power.finds) == ("open", "few", None)
    assert few.ratio == pytest.approx(0.5, rel=1e-2)
    assert decide_session(50.0, [[100.0], [90.0], [80.0]], RATE, 1).reason == "few"


def test_a_session_that_would_miss_a_tenth_says_so() -> None:
    apart = [[100.0, 120.0, 80.0, 110.0]]
    decision = decide_session(100.0, apart, RATE, 5)
    assert (decision.outcome, decision.reason) == ("open", "spread")
    assert decision.power.finds is not None
    assert decision.power.finds > 0.3
    spread = estimate_spread(apart)
    assert spread is not None
    assert session_power(spread, 4, RATE, 5) == decision.power
    assert decision.power.weak
    assert not session_power(spread, 4, Allowance("higher", 0.99), 5).weak


def test_an_accepted_change_begins_a_level() -> None:
    levels = [[100.0, 100.3, 99.7, 100.1], [90.0]]
    assert decide_session(90.1, levels, RATE, 1).outcome == "same"
    assert decide_session(100.0, levels, RATE, 1).outcome == "better"


@pytest.mark.parametrize("ratios", [[], [1.0, 0.0], [-1.0]])
def test_what_is_no_ratio_is_refused(ratios: list[float]) -> None:
    with pytest.raises(ValueError, match=r"."):
        decide_pairs(ratios, RATE, 1)


def test_a_loss_is_a_share_of_before() -> None:
    assert RATE.loss(0.9) == pytest.approx(0.1)
    assert TIME.loss(0.9) == pytest.approx(-0.1)
    assert (RATE.limit, TIME.limit) == (0.97, 1.03)
    assert Allowance("higher", 0.2).of_cost == Allowance("lower", pytest.approx(0.25))  # type: ignore[arg-type]
