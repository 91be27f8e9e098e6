# SPDX-License-Identifier: BSD-3-Clause
"""Flows: what a user writes, and its one label."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.model import flows


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("1", None),
        ("1:ports:zipf", None),
        ("2", "2"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1.5k", "1500"),
        ("64k:addresses", "64k"),
        ("64512:ports", "64512:ports"),
        ("1M:macs:zipf", "1M:macs:zipf"),
        ("1000k:zipf", "1M:zipf"),
        ("new", "new"),
    ],
)
def test_equal_flows_have_one_label(text: str, label: str | None) -> None:
    assert flows.parse(text) == label
    if label is not None:
        assert flows.parse(label) == label
        assert re.fullmatch(flows.LABEL, label)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "write their number"),
        ("many", "write their number"),
        ("0", "from 1 to 1,000,000"),
        ("1000001", "from 1 to 1,000,000"),
        ("1.5", "a whole number"),
        ("64:port", "'port' is none of addresses, ports, macs"),
        ("64:zipf:ports", "'zipf:ports' is none of"),
        ("64:ports:macs", "'ports:macs' is none of"),
        ("new:zipf", "or new"),
        ("65k:ports", "there are only 64,512 ports"),
    ],
)
def test_bad_flows_are_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        flows.parse(text)
    assert sentence in str(refused.value)


@given(st.text(max_size=20))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        label = flows.parse(text)
    except ValueError:
        return
    assert label is None or flows.parse(label) == label
