# SPDX-License-Identifier: BSD-3-Clause
"""States of a host, found from distances between CPUs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.states import LEAST_FACTOR, find_states, geometric_mean, has_changed, same_state

DISTANCES = st.lists(st.floats(1, 1e4), max_size=40)


def test_two_caches_are_two_states_and_one_is_one() -> None:
    near, far = [54.0, 62.1, 71.0], [324.0, 340.2, 470.0]
    assert find_states([*far, *near]) == [near, far]
    assert find_states(near) == [near]
    assert find_states([]) == []


@given(DISTANCES)
def test_each_distance_is_in_one_state_and_gaps_are_only_between_states(distances: list[float]) -> None:
    states = find_states(distances)
    assert [value for state in states for value in state] == sorted(distances)
    for state in states:
        assert all(b <= LEAST_FACTOR * a for a, b in pairwise(state))
    for one, other in pairwise(states):
        assert other[0] > LEAST_FACTOR * one[-1]


@given(st.floats(0.1, 1e4), st.floats(0.1, 1e4))
def test_states_of_two_distances_agree_with_each_other(one: float, other: float) -> None:
    assert same_state(one, other) == same_state(other, one) == (len(find_states([one, other])) == 1)
    assert has_changed([one, other]) != same_state(one, other)


def test_what_is_not_known_is_of_every_state() -> None:
    assert same_state(None, 50.0)
    assert same_state(50.0, None)
    assert not has_changed([])
    assert not has_changed([60.0])


def test_the_geometric_mean_is_that_of_the_logarithms() -> None:
    assert geometric_mean([50.0, 200.0]) == pytest.approx(100.0)
    assert geometric_mean([]) is None
