# SPDX-License-Identifier: BSD-3-Clause
"""Decisions between two versions, from pairs of launches on pairs of rigs."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.measure.comparing import (
    SUSPICION,
    confirming,
    confirming_rigs,
    first_look,
    fixed_rigs,
    is_narrow,
    second_look,
)
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.noninferiority import Margin
from pytest_icbench.stats.paired import fewest_pairs
from pytest_icbench.stats.quantiles import CONFIDENCE
from pytest_icbench.stats.rig_pairs import RigPair, over_rigs, ranked_over_rigs
from pytest_icbench.stats.student import FEWEST_UNITS

HIGHER = Margin("higher")


def on_rigs(*ratios: float) -> list[RigPair]:
    return [((100 * ratio, 100 * ratio), (100.0, 100.0)) for ratio in ratios]


def test_launches_on_the_same_rigs_are_one_unit() -> None:
    """Rigs of which one in two lies 6 % lower: many launches on three of them are three values."""
    agreeing = [([94.0] * 40, [100.0] * 40), ([100.0] * 40, [100.0] * 40), ([94.0] * 40, [100.0] * 40)]
    estimate = over_rigs(agreeing)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < 0.9
    assert estimate.high > 1.02


def test_two_rigs_have_no_interval() -> None:
    assert over_rigs(on_rigs(0.9, 0.9)).low is None
    with pytest.raises(ValueError, match="one unit at least"):
        over_rigs([])


def test_a_suspicion_takes_less_than_a_verdict() -> None:
    doubtful = on_rigs(0.86, 0.9, 0.94, 0.96)
    look = first_look(doubtful, HIGHER, CONFIDENCE)
    assert look.ratio.high is not None
    assert look.ratio.high > HIGHER.limit
    suspecting = over_rigs(doubtful, SUSPICION)
    assert suspecting.high is not None
    assert suspecting.high < HIGHER.limit
    assert look.verdict == Verdict.REGRESSED
    assert first_look(on_rigs(0.86, 0.9, 0.99, 1.01), HIGHER, CONFIDENCE).verdict == Verdict.INCONCLUSIVE


def test_a_suspicion_is_confirmed_at_the_confidence_of_the_session() -> None:
    fresh = on_rigs(*[0.9 + 0.005 * number for number in range(7)])
    confirmed = second_look(fresh, HIGHER, 1, Verdict.REGRESSED)
    assert (confirmed.decision, confirmed.confirmed, confirmed.note) == (Verdict.REGRESSED, True, None)
    unsure = second_look(fresh, HIGHER, 20, Verdict.REGRESSED)
    assert (unsure.decision, unsure.confirmed) == (Verdict.INCONCLUSIVE, False)
    assert unsure.note == "the first look said REGRESSED, fresh launches do not say it surely enough"
    passed = second_look(on_rigs(*[1.0] * 7), HIGHER, 1, Verdict.REGRESSED)
    assert (passed.decision, passed.note) == (Verdict.PASS, None)


def test_the_width_alone_ends_a_first_look() -> None:
    assert is_narrow(on_rigs(1.0, 1.001, 0.999), HIGHER, 0.03)
    assert not is_narrow(on_rigs(1.0, 1.01, 0.99), HIGHER, 0.03)
    assert not is_narrow(on_rigs(1.0, 1.0), HIGHER, 0.03)
    assert is_narrow(on_rigs(1.0, 1.01, 0.99), Margin("higher", tolerated=0.1), 0.05)
    assert not is_narrow([], HIGHER, 0.03)


@given(st.integers(1, 60))
def test_a_fixed_number_of_pairs_has_three_rigs_where_it_can(repeats: int) -> None:
    spread = fixed_rigs(repeats)
    assert sum(spread) == repeats
    assert len(spread) >= min(repeats, FEWEST_UNITS)
    assert max(spread) - min(spread) <= 1
    assert max(spread) <= 2


@given(st.integers(1, 100), st.integers(1, 300))
def test_a_second_look_has_rigs_for_its_confidence_and_no_fewer_pairs(screened: int, cases: int) -> None:
    rigs = confirming_rigs(screened, cases)
    assert sum(rigs) >= screened
    assert len(rigs) >= fewest_pairs(confirming(cases))
    assert ranked_over_rigs(on_rigs(*[1.0] * len(rigs)), confirming(cases)).low is not None


def test_rigs_that_draw_levels_are_confirmed_as_rarely_as_promised() -> None:
    """Unchanged software on rigs in two bands, 6 % apart: fresh launches alone bound the false alarms."""
    random, sessions = Random(3), 3000
    alarms = 0
    for _ in range(sessions):
        drawn = [
            math.exp(random.choice((0, -0.06)) - random.choice((0, -0.06)) + random.gauss(0, 0.01)) for _ in "1234567"
        ]
        alarms += second_look(on_rigs(*drawn), HIGHER, 1, Verdict.REGRESSED).confirmed
    assert alarms / sessions <= 0.01
