# SPDX-License-Identifier: BSD-3-Clause
"""Waivers in their file: round trip and damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.judge import Waiver
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.store.waiver_file import load, parse_day, read, save, write

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
    for changed, reported in (
        ({"schema": 2}, "schema 2, but this version reads 1"),
        ({"format": "x"}, "no waivers"),
        ({"waivers": [{"case": "x", "reason": "y"}]}, "until is missing"),
        ({"waivers": [{"case": "x", "reason": "y", "until": "soon"}]}, "'soon' is no day"),
    ):
        with pytest.raises(DamagedData, match=reported):
            read(json.dumps({**data, **changed}) + "\n", "w")


def test_a_waiver_file_is_saved_and_read_back(tmp_path: Path) -> None:
    assert load(tmp_path) == ()
    path = save(tmp_path / "new", [ONE])
    assert load(tmp_path / "new") == (ONE,)
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "new")


@pytest.mark.parametrize("text", ["2026-13-01", "2026-1-1", "20260101", "tomorrow", "2026-W01-1", ""])
def test_a_text_that_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no day; write it as 2026-01-31"):
        parse_day(text, "--until")
