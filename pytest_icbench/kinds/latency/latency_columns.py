# SPDX-License-Identifier: BSD-3-Clause
"""Latency in reports: round trips as texts and as columns. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_icbench.display.case_names import (
    describe_times,
    have_two_sizes,
    interval_text,
    main_unit,
    microseconds,
    millions,
    number,
    of_kind,
    short,
    three,
    times,
)
from pytest_icbench.display.frame_rates import CPU_LEGEND
from pytest_icbench.display.points import scaled
from pytest_icbench.display.table import Column, In
from pytest_icbench.kinds.kind import Charts, Kind, Ranked
from pytest_icbench.kinds.latency import latency_charts as charts
from pytest_icbench.model.figures import PERCENTILES, Latency, time_field
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.stats.quantiles import SAMPLES_BEYOND, Estimate


def first(result: Result) -> str:
    """Returns the median of frames that were first in their burst; empty where a burst has one frame only."""
    return "" if result.point.burst == 1 else microseconds(result, result.round_trips.rtt_first_p50_ns)


def _time(field: str) -> Callable[[Result], str]:
    """Returns the function that shows a time of results by its field."""
    return lambda result: microseconds(result, result.value(field))


def value(result: Result) -> str:
    """Returns the main value with its unit."""
    return f"{microseconds(result, result.round_trips.rtt_p50_ns)} µs RTT p50"


def round_trips(result: Measurement) -> dict[str, Estimate | None]:
    """Returns the percentiles of round trips (ns) by name."""
    return times(result, "rtt")


def unanswered(result: Measurement) -> str:
    """Returns how many requests have no answer, and which percentiles are missing; empty if nothing is missing.

    Too few requests are reported for p50 and p99 only: higher percentiles need more than a short launch has.
    """
    requests = result.round_trips.rtt_samples + result.round_trips.rtt_lost
    among, few = [], ""
    for name, value in round_trips(result).items():
        tail = 1 - PERCENTILES[name]
        if value is not None:
            continue
        if round(requests * tail, 6) >= SAMPLES_BEYOND:
            among.append(name)
        elif requests and name in ("p50", "p99") and not few:
            few = f"{name} needs {SAMPLES_BEYOND / tail:,.0f} requests, and there were {requests:,}"
    if not result.round_trips.rtt_lost:
        return few
    text = f"{result.round_trips.rtt_lost:,} of {requests:,} requests have no answer and count as the slowest"
    missing = f"{', '.join(among)} would be among them" if among else ""
    return "; ".join(part for part in (text, missing, few) if part)


def floor(result: Result) -> dict[str, float | None]:
    """Returns the percentiles of the reference link's round trips (ns)."""
    return {name: result.value(time_field("floor", name)) for name in PERCENTILES}


def facts(result: Result) -> list[tuple[str, str]]:
    """Returns names and texts of the facts that only latency has."""
    trips = result.round_trips
    first, of_first = times(result, "rtt_first", "p50", "p99"), trips.rtt_first_samples
    of_rfc, of_reference = "round-trip time less the least (RFC 5481)", "of the reference link, with no switch between"
    return [
        ("round trips", describe_times(result, round_trips(result), trips.rtt_max_ns, trips.rtt_samples)),
        ("first of a burst", describe_times(result, first, None, of_first)),
        ("delay variation", describe_times(result, times(result, "pdv"), trips.pdv_max_ns, 0, of_rfc)),
        ("floor", describe_times(result, floor(result), None, trips.floor_samples, of_reference)),
        ("requests", unanswered(result)),
    ]


def remarks(result: Result) -> list[str]:
    """Returns the remarks below tables; empty texts are none."""
    return [unanswered(result) if result.is_number else ""]


def mark(result: Result, value: str) -> tuple[Any, ...]:
    """Returns the text next to a mark of the first screen, and the 99th percentile."""
    tail = scaled(number(result, result.round_trips.rtt_p99_ns), main_unit(result)[1])
    return value + ("" if tail is None else f" / {three(tail)}") + " µs", tail


def ways(result: Result, refused: str) -> tuple[str, str]:
    """Returns the texts at both arrows of the path under test: what was asked, what was answered."""
    p50 = number(result, result.round_trips.rtt_p50_ns)
    asked = "" if result.frames.offered_pps is None else f"{short(result.frames.offered_pps)} requests/s, "
    answered = "" if p50 is None else f"RTT p50 {short(p50 / 1e3)} µs, "
    return f"{asked}{refused}", f"{answered}{millions(result.round_trips.rtt_lost)} never answered"


COLUMNS = (
    Column("p50", "µs", _time("rtt_p50_ns"), In.LINE, phrase="p50 {text} µs"),
    Column("interval", "", interval_text, In.LINE),
    Column("p99", "µs", _time("rtt_p99_ns"), In.LINE, phrase="p99 {text} µs"),
    Column("round trip", "µs", _time("rtt_p50_ns"), In.LATENCY, always=In.LATENCY, main=True),
    Column("95 %", "", interval_text, In.LATENCY, main=True),
    Column("p99", "µs", _time("rtt_p99_ns"), In.LATENCY),
    Column("p99 without switch", "µs", _time("floor_p99_ns"), In.LATENCY),
    Column("p50 of first in burst", "µs", first, In.LATENCY | In.MORE),
    Column("p50 without switch", "µs", _time("floor_p50_ns"), In.LATENCY | In.MORE),
    Column("delay variation p50", "µs", _time("pdv_p50_ns"), In.VARIATION),
    Column("p90", "µs", _time("pdv_p90_ns"), In.VARIATION),
    Column("p99", "µs", _time("pdv_p99_ns"), In.VARIATION),
    Column("p99.9", "µs", _time("pdv_p99_9_ns"), In.VARIATION),
    Column("max", "µs", _time("pdv_max_ns"), In.VARIATION),
)

LATENCY = Kind(
    figures=Latency,
    columns=COLUMNS,
    value=value,
    shown=In.LATENCY,
    titles={"latency": "{kind}"},
    short="{:.1f}".format,
    legend=(CPU_LEGEND,),
    mark=mark,
    remarks=remarks,
    facts=facts,
    ways=ways,
    ranked=Ranked("delays", "Round trip"),
    charts=(
        Charts("chain-delays", "Chains: round trip against length", charts.by_length),
        Charts(
            "latency",
            "Round trip against packet size",
            lambda results, order: (
                *(() if have_two_sizes(of_kind(results, Latency)) else charts.by_size(results, order)),
                *charts.one_time(results, order),
            ),
        ),
        Charts("delay", "Round trip against load", charts.delay_figures),
        Charts(
            "percentiles",
            "Round trip by percentile",
            lambda results, order: (*charts.cdf_figures(results, order), *charts.by_percentile(results, order)),
        ),
    ),
)
