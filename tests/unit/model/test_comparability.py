# SPDX-License-Identifier: BSD-3-Clause
"""Which facts make two results incomparable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.errors import UsageError
from pytest_icbench.model.comparability import (
    DEFAULT,
    Difference,
    differences,
    facts,
    matches,
    parse_patterns,
)
from tests.measurements import measurement

HOST = {"cpu_model": "EPYC", "cores": 8, "memory_gib": 64}
KERNEL = {"kernel": "6.1", "kernel_parameters": {"isolcpus": "2-7", "nosmt": ""}, "node": "lxc"}


def on(identity: dict[str, Any] | None = None, treatment: dict[str, Any] | None = None, **changed: Any) -> Any:
    return measurement(identity=HOST | (identity or {}), treatment=KERNEL | (treatment or {}), **changed)


def incomparable(here: Any, there: Any, patterns: Sequence[str] = DEFAULT) -> str | None:
    return "; ".join(map(str, differences(here, there, patterns))) or None


def test_the_same_host_may_be_compared_whatever_runs_on_it() -> None:
    other = on(treatment={"kernel": "6.12"}, conditions={"load_1min": 3.0})
    assert incomparable(on(), other) is None


def test_another_host_may_not_and_every_fact_is_named() -> None:
    other = on({"cpu_model": "Xeon", "cores": 4}, placement="cooperative")
    assert incomparable(on(), other) == (
        "identity.cores is 8 here and 4 there; identity.cpu_model is EPYC here and Xeon there; "
        "placement is dedicated here and cooperative there"
    )


def test_a_fact_that_one_side_lacks_differs() -> None:
    other = measurement(identity={"cpu_model": "EPYC", "cores": 8}, treatment=KERNEL)
    assert differences(on(), other) == [Difference("identity.memory_gib", 64, None)]
    assert incomparable(on(), other) == "identity.memory_gib is 64 here and unknown there"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("identity.* !identity.memory_gib", None),
        ("identity", "identity.memory_gib is 64 here and 32 there"),
        ("treatment.kernel_parameters", "treatment.kernel_parameters.nosmt is  here and unknown there"),
        ("treatment.kernel*", "treatment.kernel_parameters.nosmt is  here and unknown there"),
        ("identity.mem*, placement", "identity.memory_gib is 64 here and 32 there"),
    ],
)
def test_the_user_chooses(text: str, reason: str | None) -> None:
    other = on({"memory_gib": 32}, {"kernel_parameters": {"isolcpus": "2-7"}})
    assert incomparable(on(), other, parse_patterns(text, "here")) == reason


def test_a_name_that_no_fact_has_is_refused() -> None:
    sentence = "--icbench-must-match: 'identify.cores' names no fact; facts begin with identity, treatment"
    with pytest.raises(UsageError, match=sentence):
        parse_patterns("placement identify.cores", "--icbench-must-match")


def test_the_last_pattern_that_fits_decides() -> None:
    assert matches("identity.cores", ("!identity", "identity.c*"))
    assert not matches("identity.cores", ("identity", "!identity.cores"))
    assert not matches("treatment.kernel_parameters.x", ("treatment.kernel",))


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=5), json, max_size=4))
def test_nothing_differs_from_itself(identity: dict[str, Any]) -> None:
    one = measurement(identity=identity)
    assert incomparable(one, measurement(identity=identity), (*DEFAULT, "treatment")) is None
    assert all(name.startswith(("identity.", "placement", "metric", "rules")) for name in facts(one))
