# SPDX-License-Identifier: BSD-3-Clause
"""The figures of throughput as texts and as columns of reports. Pure."""

from __future__ import annotations

from statistics import median

from pytest_icbench.display.case_names import number
from pytest_icbench.display.frame_rates import (
    CPU_LEGEND,
    mpps,
    rate,
    rate_and_metric,
    rate_mark,
    rate_ways,
    rate_with_unit,
)
from pytest_icbench.display.table import Column, In
from pytest_icbench.kinds.kind import Charts, Kind, Ranked
from pytest_icbench.kinds.throughput import frame_cost as cost
from pytest_icbench.model.figures import Throughput
from pytest_icbench.model.measurement import Result

#: Busy share of workers below which their rate at full use is not extrapolated.
_LEAST_BUSY = 0.05


def interval(result: Result) -> str:
    """Returns the interval of the rate."""
    pps = number(result, result.rates.throughput_pps)
    if pps is None or pps.low is None or pps.high is None:
        return ""
    return f"{'≥ ' if result.at_least else ''}{mpps(pps.low)} to {mpps(pps.high)}"


def train(result: Result) -> str:
    """Returns the frames of the longest train without loss; empty for other results."""
    trains = result.rates.back_to_back
    return "" if trains is None else f"{'≥ ' if trains.at_least else ''}{trains.frames:,.0f}"


def back_to_back(result: Result) -> str:
    """Returns the report of trains by RFC 9004: number, mean, spread, buffer times; empty for other results."""
    trains = result.rates.back_to_back
    if trains is None:
        return ""
    spread = f"{trains.frames_min:,} to {trains.frames_max:,}"
    if trains.frames_stddev is not None:
        spread += f", standard deviation {trains.frames_stddev:,.3g}"
    text = f"{train(result)} frames back to back without loss, mean of {trains.repetitions} ({spread})"
    text += f" at {trains.rate_pps / 1e6:.4g} Mpps: {trains.buffer_time_s * 1e6:.4g} µs of buffer"
    corrected = trains.corrected_buffer_time_s
    if corrected is None:
        return f"{text}, not corrected: no rate without loss was found"
    return f"{text}, {corrected * 1e6:.4g} µs corrected for the frames forwarded meanwhile"


def cycles(result: Result) -> str:
    """Returns the switch's cycles a frame beside a rate "at least", which says less about the switch."""
    spent = number(result, result.rates.cycles_per_packet) if result.at_least else None
    return "" if spent is None else f"{spent:.0f}"


def full_use(result: Result) -> str:
    """Returns the rate at which the switch's workers would be busy all the time, beside a rate "at least"."""
    worked = [launch for launch in result.per_launch if (launch.busy_share or 0.0) >= _LEAST_BUSY]
    if not cycles(result) or not worked:
        return ""
    return mpps(median([launch.throughput_pps / (launch.busy_share or 1.0) for launch in worked]))


def value(result: Result) -> str:
    """Returns the main value with its unit and metric."""
    return f"{train(result)} frames back to back" if train(result) else rate_and_metric(result)


COLUMNS = (
    Column("rate", "", rate_with_unit, In.LINE),
    Column("train", "", train, In.LINE, phrase="{text} frames back to back"),
    Column("interval", "", interval, In.LINE),
    Column("Mpps", "{metric}", rate, In.THROUGHPUT, always=In.THROUGHPUT, main=True),
    Column("95 %", "", interval, In.THROUGHPUT, main=True),
    Column("cycles", "", cycles, In.THROUGHPUT),
    Column("full use", "", full_use, In.THROUGHPUT),
    Column("cycles", "", cycles, In.PAGE | In.LINE, phrase="{text} cycles a frame"),
    Column("full use", "", full_use, In.PAGE | In.LINE, phrase="{text} Mpps at full use"),
)


THROUGHPUT = Kind(
    figures=Throughput,
    columns=COLUMNS,
    value=value,
    shown=In.THROUGHPUT,
    titles={"throughput": "{kind}"},
    short=lambda value: mpps(value * 1e6),
    mark=rate_mark,
    legend=(
        (cycles, "cycles: of the switch's workers for a frame"),
        (full_use, "full use: Mpps if its workers were busy all the time, from their busy share"),
        (train, "train: frames of the longest train at the maximum rate that lost nothing (RFC 9004)"),
        CPU_LEGEND,
    ),
    remarks=lambda result: (back_to_back(result),),
    facts=lambda result: (("back to back", back_to_back(result)), ("cost of a frame", cost.describe(result))),
    ways=rate_ways,
    ranked=Ranked("rates", "Rate"),
    charts=(Charts("cost", "What a frame costs, by size", cost.by_size),),
)
