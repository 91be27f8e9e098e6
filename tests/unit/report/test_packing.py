# SPDX-License-Identifier: BSD-3-Clause
"""The rows of charts in fewer bytes lose nothing."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.report.html.data import Packed, packed

VALUES = st.lists(st.one_of(st.none(), st.booleans(), st.sampled_from([0, 1, 0.0, 1.0, "a", ""])), max_size=40)


def unpacked(column: Packed) -> list[object]:
    """Reverses ``packed`` as the page's script does."""
    if isinstance(column, list):
        return column
    parts = column["runs"]
    return [value for value, number in zip(parts[::2], parts[1::2], strict=True) for _ in range(number)]


@given(VALUES)
def test_what_is_unpacked_is_what_was_packed(values: list[object]) -> None:
    assert json.dumps(unpacked(packed(values))) == json.dumps(values)


def test_what_repeats_is_written_once() -> None:
    assert packed(["ovs"] * 5) == {"runs": ["ovs", 5]}
    assert packed(["ovs", "vpp"]) == ["ovs", "vpp"]
    assert packed([]) == []
