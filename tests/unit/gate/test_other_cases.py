# SPDX-License-Identifier: BSD-3-Clause
"""A session's other cases tell whether its host is slower."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.gate.margins import Margins
from pytest_icbench.gate.other_cases import OtherCase, other_case, together, usual
from tests.baselines import entry, scaled, with_sessions

RATE, TIME = Margins().of("throughput")[0], Margins().of("latency")[0]


def test_nobody_else_says_nothing() -> None:
    assert not usual([])


@pytest.mark.parametrize(
    ("slower", "deviation", "told"),
    [(0.0, 0.01, True), (0.01, 0.01, True), (0.05, 0.01, False), (-0.5, 0.01, True), (0.05, 0.1, True)],
)
def test_one_other_case(slower: float, deviation: float, told: bool) -> None:
    assert usual([OtherCase(slower, deviation, 5)]) is told


def test_many_that_fell_a_little_tell_what_one_does_not() -> None:
    each = OtherCase(0.02, 0.01, 5)
    assert usual([each])
    assert not usual([each] * 9)


def test_a_case_that_varies_much_hides_no_steady_one() -> None:
    assert not usual([OtherCase(0.05, 0.01, 5), OtherCase(-1.0, 0.5, 5)])


@given(st.lists(st.builds(OtherCase, st.floats(-1, 0), st.floats(0.005, 1), st.integers(1, 40)), min_size=1))
def test_what_is_no_slower_is_usual(cases: list[OtherCase]) -> None:
    assert usual(cases)


@given(st.lists(st.builds(OtherCase, st.floats(-1, 1), st.floats(0.005, 1), st.integers(1, 40)), min_size=2))
def test_one_after_the_other_they_say_what_they_say_at_once(cases: list[OtherCase]) -> None:
    said = cases[0]
    for case in cases[1:]:
        said = together([said, case])
    at_once = together(cases)
    assert (said.slower, said.deviation) == pytest.approx((at_once.slower, at_once.deviation), rel=1e-9, abs=1e-9)
    assert said.freedom == at_once.freedom


def test_what_a_case_says() -> None:
    before = with_sessions(entry())
    now = entry(launches=scaled(0.9))
    said = other_case(now.values, before.sessions, RATE)
    assert said is not None
    assert said.slower == pytest.approx(0.105, abs=0.001)
    assert said.deviation == 0.005  # of sessions that agree to a thousandth
    assert said.freedom == 5
    assert other_case(now.values, entry().sessions, RATE) is None  # a single session
    assert other_case(now.values, before.sessions, TIME) is None  # it has no round trips
