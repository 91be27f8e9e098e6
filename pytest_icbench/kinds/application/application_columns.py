# SPDX-License-Identifier: BSD-3-Clause
"""The figures of applications as texts and as columns of reports. Pure."""

from __future__ import annotations

from pytest_icbench.display.case_names import main_unit, microseconds, number, short
from pytest_icbench.display.table import Column, In
from pytest_icbench.model.result import Result


def operations(result: Result) -> str:
    """Returns an application's rate with its unit; empty for other kinds."""
    main = number(result, result.application.operations_per_second)
    return "" if main is None else f"{short(main * main_unit(result)[1])} {main_unit(result)[0]}"


def operations_interval(result: Result, to: str = " to ") -> str:
    """Returns the interval of an application's rate, in the same unit."""
    main, factor = number(result, result.application.operations_per_second), main_unit(result)[1]
    if main is None or main.low is None or main.high is None:
        return ""
    return f"{short(main.low * factor)}{to}{short(main.high * factor)}"


def _requests(result: Result) -> str:
    return "" if result.application.goodput_gbps is not None else operations(result).partition(" ")[0]


def _stream(result: Result) -> str:
    return "" if result.application.goodput_gbps is None else operations(result).partition(" ")[0]


def cost(result: Result, side: str) -> str:
    """Returns the CPU time of the clients or the servers for one operation, in microseconds."""
    time_ns = number(result, result.estimate(f"{side}_cpu_ns_per_operation"))
    return "" if time_ns is None else short(time_ns / 1000)


def value(result: Result) -> str:
    """Returns the main value with its unit and metric."""
    return f"{operations(result)} {result.metric}"


COLUMNS = (
    Column("operations/s", "", _requests, In.APPLICATION, main=True),
    Column("Gbit/s", "", _stream, In.APPLICATION, main=True),
    Column("95 %", "", operations_interval, In.APPLICATION, main=True),
    Column("p99", "µs", lambda result: microseconds(result, result.figures.tail), In.APPLICATION),
    Column("client", "", lambda result: cost(result, "client"), In.APPLICATION),
    Column("server", "", lambda result: cost(result, "server"), In.APPLICATION),
)
