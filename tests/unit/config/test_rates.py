# SPDX-License-Identifier: BSD-3-Clause
"""Rates in bits per second, and how wrong rates are reported."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.config.rates import BitRate, bit_rate
from pytest_icbench.config.rates import parse_rates as rates
from pytest_icbench.errors import UsageError
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic


@pytest.mark.parametrize(
    ("text", "size", "pps"),
    [
        ("10Gbps", 64, 14_880_952),  # RFC 2544's greatest rate of 10 Gbit/s Ethernet
        ("10Gbps", 1518, 812_743),
        ("10GbpsL1", 64, 14_880_952),
        ("10GbpsL2", 64, 19_531_250),
        ("1.5Mbit/s", 1000, 183),
        ("100kbit", 64, 148),
    ],
)
def test_bits_are_those_of_the_wire_unless_layer_2_is_said(text: str, size: int, pps: int) -> None:
    rate = bit_rate(text)
    assert rate is not None
    assert rate.at(Traffic(size), "x") == Rate(pps)


def test_a_list_may_mix_units() -> None:
    assert rates("max 5Mpps 10Gbps 500kpps 64pps", "x") == (
        Rate(),
        Rate(5_000_000),
        BitRate(10**10, 1, "10Gbps"),
        Rate(500_000),
        Rate(64),
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("50%", "x: '50%' of what? A virtual link has no speed to take a share of: give a rate (5Mpps, 10Gbps), or "),
        ("10G", "x: unknown rate '10G'; a rate is max, ndr, "),
        ("10Gbyte", "x: unknown rate '10Gbyte'; a rate is max, ndr, "),
        ("pdr:9", "x: unknown rate 'pdr:9'; a partial-drop rate names its largest loss ratio"),
        ("1.5", "x: '1.5' is not a whole number"),
        ("1M..x..2M", "x: 'x' is not a number"),
    ],
)
def test_a_wrong_rate_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        rates(text, "x")
    assert str(caught.value).startswith(sentence)


def test_too_few_and_too_many_bits_are_refused() -> None:
    with pytest.raises(UsageError, match="100bps is less than one frame of 64B a second"):
        BitRate(100, 1, "100bps").at(Traffic(64), "x")
    with pytest.raises(UsageError, match="frames of 64B a second; take less"):
        BitRate(10**13, 1, "10Tbps").at(Traffic(64), "x")


@given(st.integers(10**6, 10**11), st.integers(64, 9216))
def test_frames_with_their_gaps_never_exceed_the_bits(bps: int, size: int) -> None:
    pps = BitRate(bps, 1, "r").at(Traffic(size), "x").pps
    assert pps is not None
    assert pps * (size + 20) * 8 <= bps < (pps + 1) * (size + 20) * 8


@given(st.text(max_size=20))
def test_any_text_is_a_rate_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):  # any other error fails
        rates(text, "x")


@pytest.mark.parametrize("form", ["{}", "max\n{}", "'{}' max", 'max, "{}"'])
def test_a_traces_file_may_have_blanks_and_commas(tmp_path: Path, form: str) -> None:
    (tmp_path / "a, b").mkdir()
    (tmp_path / "a, b" / "5Mpps.csv").write_text("\ufeff0,1000\r\n", encoding="utf-8")
    parsed = rates(form.format(f"trace:{tmp_path}/a, b/5Mpps.csv"), "--icbench-rate")
    assert [rate.trace.label for rate in parsed if isinstance(rate, Rate) and rate.trace] == ["5Mpps"]
    assert len(parsed) == 1 + ("max" in form)
