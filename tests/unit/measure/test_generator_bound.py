# SPDX-License-Identifier: BSD-3-Clause
"""Whether a sender was itself too slow for its rate, or was kept from sending, or only stood still for a while."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.measure.launch.validity import generator_bound
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Window
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from tests.measurements import launch

RATE = Case("ovs", Frames(rate=Rate(10**6)))
ROUND_TRIPS = Case("ovs", Frames(rate=Rate(10**6)), dimension="latency")


def windows(*changes: dict[str, Any]) -> list[Window]:
    """Windows of 100 ms at 1 Mpps, of which everything was offered on time unless changed."""
    plain = launch(windows=len(changes)).windows
    return [replace(window, **change) for window, change in zip(plain, changes, strict=True)]


ON_TIME: dict[str, Any] = {}
SHORT = {"scheduled": 90_000, "not_offered": 10_000}
LATE = {"lateness_p99_ns": 150_000_000}


@pytest.mark.parametrize("case", [RATE, ROUND_TRIPS], ids=["rate", "round-trips"])
def test_who_offers_too_little_is_too_slow(case: Case) -> None:
    assert generator_bound(case, windows(*[ON_TIME] * 10)) is False
    assert generator_bound(case, windows(*[SHORT] * 10)) is True


def test_a_client_that_sends_all_of_it_late_is_too_slow() -> None:
    assert generator_bound(ROUND_TRIPS, windows(*[LATE] * 10)) is True
    # A rate was kept, whenever its frames left.
    assert generator_bound(RATE, windows(*[LATE] * 10)) is False


def test_a_stall_that_is_caught_up_with_is_a_result() -> None:
    assert generator_bound(ROUND_TRIPS, windows(*[ON_TIME] * 6, *[LATE] * 4)) is False


def test_time_slices_of_a_shared_cpu_are_none_of_it() -> None:
    assert generator_bound(ROUND_TRIPS, windows(*[{"lateness_p99_ns": 15_000_000}] * 10)) is False


def test_who_is_kept_from_sending_by_a_full_port_is_not() -> None:
    full = {"tx_full": 3}
    assert generator_bound(ROUND_TRIPS, windows(*[{**LATE, **full}] * 10)) is False
    assert generator_bound(ROUND_TRIPS, windows(*[{**SHORT, **full}] * 10)) is False
    # Of a sender a refused frame is dropped, and counts as offered.
    assert generator_bound(RATE, windows(*[{**SHORT, **full}] * 10)) is True


def test_without_a_rate_or_a_window_nobody_is() -> None:
    assert generator_bound(Case("ovs"), windows(*[SHORT] * 3)) is False
    assert generator_bound(ROUND_TRIPS, windows(*[{**SHORT, "kept": False}] * 3)) is False
