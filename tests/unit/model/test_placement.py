# SPDX-License-Identifier: BSD-3-Clause
"""The pairs of CPUs that pass frames to each other, and means over them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.model.placement import Placement
from pytest_icbench.stats.states import geometric_mean

_CPUS = st.lists(st.integers(0, 7), max_size=4).map(tuple)


def placed(switch: tuple[int, ...], endpoints: tuple[int, ...], **changes: Any) -> Placement:
    return Placement("dedicated", switch, endpoints, (), 0, 0, **changes)


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (placed((1,), (0, 0)), ((0, 1),)),
        (placed((4, 5), (0, 1)), ((0, 4), (0, 5), (1, 4), (1, 5))),
        (placed((), (0, 1, 3, 2)), ((0, 1), (2, 3))),
        (placed((), (0, 0)), ()),
        (placed((), (0, 1), away=(1,)), ()),
        (placed((2,), (0, 1), away=(1,)), ((0, 2),)),
        (placed((), (0, 1), functions=(2, 3)), ((0, 2), (1, 3), (2, 3))),
        (placed((), (0, 1, 4, 5), functions=(2, 6)), ((0, 2), (1, 2), (4, 6), (5, 6))),
        (placed((7,), (0, 1), functions=(2,)), ((0, 7), (1, 7), (2, 7))),
    ],
)
def test_who_passes_frames_to_whom(placement: Placement, expected: tuple[tuple[int, int], ...]) -> None:
    assert placement.hand_overs == expected


@given(_CPUS, _CPUS.filter(lambda cpus: len(cpus) % 2 == 0), _CPUS)
def test_pairs_are_of_different_cpus_once_each(
    switch: tuple[int, ...], endpoints: tuple[int, ...], functions: tuple[int, ...]
) -> None:
    pairs = placed(switch, endpoints, functions=functions).hand_overs
    assert len(set(pairs)) == len(pairs)
    assert all(low < high and {low, high} <= {*switch, *endpoints, *functions} for low, high in pairs)


@given(st.lists(st.floats(1.0, 1e6), min_size=1))
def test_a_geometric_mean_lies_between_the_values(values: list[float]) -> None:
    mean = geometric_mean(values)
    assert mean is not None
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)


def test_no_values_have_no_mean() -> None:
    assert geometric_mean([]) is None
