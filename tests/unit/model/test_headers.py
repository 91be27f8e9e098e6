# SPDX-License-Identifier: BSD-3-Clause
"""Headers: what a user writes, its one label, and the least frame."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.model import headers
from pytest_icbench.model.traffic import Traffic


@pytest.mark.parametrize("text", ["tcp4", "udp6", "tcp6", "udp4+vlan1", "tcp6+vlan4094"])
def test_a_label_is_what_a_user_writes(text: str) -> None:
    assert headers.parse(text) == text
    assert re.fullmatch(headers.LABEL, text)


def test_plain_headers_have_no_label() -> None:
    assert headers.parse("udp4") is None
    assert Traffic(64, header=None).label == "64B"


@pytest.mark.parametrize(
    "text", ["", "udp", "udp5", "UDP6", "vlan5", "udp4+", "udp4+vlan", "udp4+vlan0", "tcp4+vlan05"]
)
def test_unknown_headers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^write one of udp4, tcp4, udp6, tcp6, with or without a VLAN tag"):
        headers.parse(text)


def test_a_tag_has_twelve_bits_and_two_of_its_numbers_are_taken() -> None:
    with pytest.raises(ValueError, match=r"^VLANs go from 1 to 4094$"):
        headers.parse("udp4+vlan4095")


@given(st.text(max_size=20))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        label = headers.parse(text)
    except ValueError:
        return
    assert label is None or headers.parse(label) == label


@pytest.mark.parametrize(
    ("header", "least"),
    [
        (None, 64),
        ("tcp4", 76),
        ("udp6", 84),
        ("tcp6", 96),
        ("udp4+vlan7", 68),
        ("tcp4+vlan7", 80),
        ("udp6+vlan7", 88),
        ("tcp6+vlan7", 100),
    ],
)
def test_the_least_frame_holds_headers_and_stamp(header: str | None, least: int) -> None:
    assert Traffic(least, header=header).misfit is None
    assert Traffic(least - 1, header=header).misfit == (
        f"{least - 1} bytes do not hold {header or 'udp4'} headers; take frames of {least} or more"
    )
    assert Traffic(least, header=header).headers_bytes == least - 22


def test_the_shortest_frame_of_a_mix_counts() -> None:
    traffic = Traffic.of_mix("84:1,1518:1")
    assert traffic.with_labels(None, "udp6").misfit is None
    assert traffic.with_labels(None, "tcp6").misfit == "84 bytes do not hold tcp6 headers; take frames of 96 or more"
