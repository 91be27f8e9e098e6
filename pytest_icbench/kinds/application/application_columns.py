# SPDX-License-Identifier: BSD-3-Clause
"""Applications in reports: their figures as texts and as columns. Pure."""

from __future__ import annotations

from typing import Any

from pytest_icbench.display.case_names import describe_times, main_unit, microseconds, number, short, three, times
from pytest_icbench.display.table import Column, In
from pytest_icbench.kinds.kind import Kind, Ranked
from pytest_icbench.model.figures import Application
from pytest_icbench.model.measurement import Result


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


def _p99(result: Result) -> str:
    return microseconds(result, result.application.response_p99_ns)


def cost(result: Result, side: str) -> str:
    """Returns the CPU time of the clients or the servers for one operation, in microseconds."""
    time_ns = number(result, result.estimate(f"{side}_cpu_ns_per_operation"))
    return "" if time_ns is None else short(time_ns / 1000)


def value(result: Result) -> str:
    """Returns the main value with its unit and metric."""
    return f"{operations(result)} {result.metric}"


def facts(result: Result) -> list[tuple[str, str]]:
    """Returns names and texts of the facts that only applications have."""
    costs = [f"{side} {text} µs" for side in ("client", "server") if (text := cost(result, side))]
    operations = result.application.operations
    return [
        ("response times", describe_times(result, times(result, "response", "mean", "p50", "p90", "p99"))),
        ("CPU time", f"{', '.join(costs)} an operation" if costs else ""),
        ("operations", f"{operations:,.0f}" if operations else ""),
    ]


def mark(result: Result, value: str) -> tuple[Any, ...]:
    """Returns the text next to a mark of the first screen, with the 99th percentile of response times."""
    p99 = number(result, result.application.response_p99_ns)
    tail = "" if p99 is None else f" · p99 {three(p99 / 1e3)} µs"
    return (f"{value}{'/s' if result.application.goodput_gbps is None else ' Gbit/s'}{tail}",)


COLUMNS = (
    Column("rate", "", operations, In.LINE),
    Column("interval", "", operations_interval, In.LINE),
    Column("p99", "µs", _p99, In.LINE, phrase="p99 {text} µs"),
    Column("operations/s", "", _requests, In.APPLICATION, main=True),
    Column("Gbit/s", "", _stream, In.APPLICATION, main=True),
    Column("95 %", "", operations_interval, In.APPLICATION, main=True),
    Column("p99", "µs", _p99, In.APPLICATION),
    Column("client", "", lambda result: cost(result, "client"), In.APPLICATION),
    Column("server", "", lambda result: cost(result, "server"), In.APPLICATION),
)

APPLICATION = Kind(
    figures=Application,
    columns=COLUMNS,
    value=value,
    shown=In.APPLICATION,
    titles={"application": "{kind} ({metric})"},
    mark=mark,
    legend=((lambda _result: True, "client, server: CPU time of their processes in µs per operation"),),
    facts=facts,
    ways=lambda result, _refused: ("asks", operations(result)),
    limiting_ends=("sender", "receiver"),
    ranked=Ranked("applications", "Applications"),
)
