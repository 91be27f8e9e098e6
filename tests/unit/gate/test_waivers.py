# SPDX-License-Identifier: BSD-3-Clause
"""Waivers in their file: round trip, damage, the last day."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.waivers import Waiver, find, load, parse_day, read, save, write
from pytest_icbench.model.codec import DamagedData

_WAIVERS = st.builds(Waiver, st.text(max_size=20), st.text(max_size=20), st.dates().map(str))
ONE = Waiver("ovs-*", "known: tracker", "2026-06-15")


@given(st.lists(_WAIVERS, max_size=5))
def test_what_is_written_is_read(waivers: list[Waiver]) -> None:
    assert set(read(write(waivers), "x")) == set(waivers)
    assert write(waivers) == write(list(reversed(waivers)))


def test_every_truncation_is_refused() -> None:
    text = write([ONE, Waiver("vpp", "é", "2027-01-01")])
    for length in range(len(text)):
        with pytest.raises(DamagedData, match=r"^w\.json: "):
            read(text[:length], "w.json")


@given(st.text(max_size=100))
def test_no_other_text_is_read(text: str) -> None:
    with pytest.raises(DamagedData, match=r"^w: "):
        read(text, "w")


def test_newer_and_wrong_ones_are_refused() -> None:
    data = json.loads(write([ONE]))
    for changed, told in (
        ({"schema": 2}, "schema 2, but this version reads up to 1"),
        ({"format": "x"}, "no waivers"),
        ({"waivers": [{"case": "x", "reason": "y"}]}, "until is missing"),
        ({"waivers": [{"case": "x", "reason": "y", "until": "soon"}]}, "'soon' is no day"),
    ):
        with pytest.raises(DamagedData, match=told):
            read(json.dumps({**data, **changed}) + "\n", "w")


def test_the_last_day_counts() -> None:
    for day, holds in ((date(2026, 6, 14), True), (date(2026, 6, 15), True), (date(2026, 6, 16), False)):
        assert ONE.holds(day) is holds
        assert find([ONE], "ovs-64B", day) == ((ONE, None) if holds else (None, ONE))
    assert find([ONE], "veth-64B", date(2026, 6, 1)) == (None, None)


def test_of_several_the_one_that_lasts_longest_counts() -> None:
    longer = Waiver("*", "later", "2026-07-01")
    assert find([longer, ONE], "ovs-64B", date(2026, 6, 1)) == (longer, None)
    assert find([longer, ONE], "ovs-64B", date(2026, 6, 20)) == (longer, ONE)
    assert find([longer, ONE], "ovs-64B", date(2026, 8, 1)) == (None, longer)


@pytest.mark.parametrize("text", ["2026-13-01", "2026-1-1", "20260101", "tomorrow", "2026-W01-1", ""])
def test_no_day(text: str) -> None:
    with pytest.raises(UsageError, match="is no day; write it as 2026-01-31"):
        parse_day(text, "--until")


def test_files(tmp_path: Path) -> None:
    assert load(tmp_path) == ()
    path = save(tmp_path / "new", [ONE])
    assert load(tmp_path / "new") == (ONE,)
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "new")
