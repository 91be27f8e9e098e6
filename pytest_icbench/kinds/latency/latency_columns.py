# SPDX-License-Identifier: BSD-3-Clause
"""The figures of round trips as texts and as columns of reports. Pure."""

from __future__ import annotations

from pytest_icbench.display.case_names import interval_text, microseconds
from pytest_icbench.display.table import Column, In
from pytest_icbench.model.result import Result


def first(result: Result) -> str:
    """Returns the median of frames that were first in their burst; empty where a burst has one frame only."""
    return "" if result.point.burst == 1 else microseconds(result, result.round_trips.rtt_first_p50_ns)


def value(result: Result) -> str:
    """Returns the main value with its unit."""
    return f"{microseconds(result, result.round_trips.rtt_p50_ns)} µs RTT p50"


COLUMNS = (
    Column(
        "round trip",
        "µs",
        lambda result: microseconds(result, result.round_trips.rtt_p50_ns),
        In.LATENCY,
        always=In.LATENCY,
        main=True,
    ),
    Column("95 %", "", interval_text, In.LATENCY, main=True),
    Column("p99", "µs", lambda result: microseconds(result, result.round_trips.rtt_p99_ns), In.LATENCY),
    Column(
        "p99 without switch", "µs", lambda result: microseconds(result, result.round_trips.floor_p99_ns), In.LATENCY
    ),
    Column("p50 of first in burst", "µs", first, In.LATENCY | In.MORE),
    Column(
        "p50 without switch",
        "µs",
        lambda result: microseconds(result, result.round_trips.floor_p50_ns),
        In.LATENCY | In.MORE,
    ),
    Column(
        "delay variation p50", "µs", lambda result: microseconds(result, result.round_trips.pdv_p50_ns), In.VARIATION
    ),
    Column("p90", "µs", lambda result: microseconds(result, result.round_trips.pdv_p90_ns), In.VARIATION),
    Column("p99", "µs", lambda result: microseconds(result, result.round_trips.pdv_p99_ns), In.VARIATION),
    Column("p99.9", "µs", lambda result: microseconds(result, result.round_trips.pdv_p99_9_ns), In.VARIATION),
    Column("max", "µs", lambda result: microseconds(result, result.round_trips.pdv_max_ns), In.VARIATION),
)
