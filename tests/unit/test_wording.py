# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and times as messages show them."""

from __future__ import annotations

import pytest

from pytest_icbench.wording import clock, counted, percent, shortened, signed_percent, suggestion


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (59.6, "1:00"), (750, "12:30"), (3723, "1:02:03"), (-5, "0:00")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("number", "thing", "text"),
    [(1, "case", "1 case"), (0, "case", "0 cases"), (5000, "case", "5,000 cases"), (2, "launch", "2 launches")],
)
def test_things_are_counted(number: int, thing: str, text: str) -> None:
    assert counted(number, thing) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.88, "-12.0"),
        (1.5, "+50.0"),
        (0.0006, "-99.9"),
        (0.0003, "-99.97"),
        (0.00001, "-99.999"),
        (0.0, "-100.0"),
        (2, "+100.0"),
    ],
)
def test_a_fall_to_a_little_is_no_fall_to_nothing(ratio: float, text: str) -> None:
    assert signed_percent(ratio) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.031, "3.1 %"), (-0.9997, "99.97 %"), (-1.0, "100 %"), (1.2, "120 %"), (0.9996, "99.96 %")]
)
def test_less_than_all_is_not_all(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (9.994, "999 %"),
        (9.996, "1,000 %"),
        (923.69, "92,400 %"),
        (123456.0, "12,300,000 %"),
        (1e-6, "0.0001 %"),
        (1e-7, "0.00001 %"),
        (1.234e-9, "0.000000123 %"),
        (0.0, "0 %"),
    ],
)
def test_a_percentage_has_no_exponent(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (64_000, "64k"), (1_000_000, "1M"), (1_500_000, "1500k"), (1_234_567, "1234567")],
)
def test_a_multiple_is_shortened_exactly(number: int, text: str) -> None:
    assert shortened(number) == text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("OVS", "ovs"),
        ("ovs-dpdk", "ovs"),
        ("dpdk-ovs", "ovs"),
        ("ovsdpdk", "ovs"),
        ("OVS-DPDK", "ovs"),
        ("linux-brigde", "linux-bridge"),
        ("ovs-kernl", "ovs-kernel"),
        ("vppp", "vpp"),
        ("dpkd", "dpdk"),
    ],
)
def test_a_name_that_is_nearly_known_is_suggested(written: str, meant: str) -> None:
    known = ("linux-bridge", "direct", "testpmd", "ovs", "ovs-kernel", "vpp", "kernel", "dpdk", "all")
    assert suggestion(written, known) == f"; did you mean {meant}?"


def test_a_name_like_no_other_gets_the_list() -> None:
    assert suggestion("xyz", ("ovs", "vpp")) == "; known are ovs, vpp"
