# SPDX-License-Identifier: BSD-3-Clause
"""Labels of containers to create, and their cases' ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.model.case import Case, is_case
from pytest_icbench.model.load import Startup
from pytest_icbench.model.startup import MOST_CONTAINERS, MOST_EVERY_MS, Crowd


@given(
    st.sampled_from(["netns", "lxc", "my.kind_2"]),
    st.integers(1, MOST_CONTAINERS),
    st.none() | st.integers(1, MOST_EVERY_MS),
)
def test_a_label_names_its_crowd(kind: str, count: int, every_ms: int | None) -> None:
    crowd = Crowd(kind, count, every_ms)
    assert Crowd.of(crowd.label) == crowd


@pytest.mark.parametrize(
    "label",
    [
        "",
        "netns",
        "netns:0",
        "netns:10001",
        "netns:-1",
        "netns:1e3",
        ":5",
        "a b:5",
        "a:5:6",
        "a:5:0ms",
        "a:5:10001ms",
        "fork:5:9ms",
    ],
)
def test_other_texts_are_no_crowd(label: str) -> None:
    assert Crowd.of(label) is None


def test_the_id_has_the_crowd_in_the_place_of_frames() -> None:
    case = Case("veth", Startup("netns:1000"), dimension="startup")
    assert case.id == "veth-birth:netns:1000-1vs1-Rmax"
    assert is_case(f"test_x.py::test_startup[{case.id}]")
    other = Case("veth", Startup("lxc:300"), dimension="startup")
    assert case.rig_key != other.rig_key


def test_only_cases_with_a_crowd_have_its_key_in_files() -> None:
    case = Case("veth", Startup("lxc:300"), dimension="startup")
    assert Case.from_dict(case.to_dict()) == case
    assert "startup" not in Case("veth").to_dict()
