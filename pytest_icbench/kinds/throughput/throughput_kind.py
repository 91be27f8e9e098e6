# SPDX-License-Identifier: BSD-3-Clause
"""Throughput in reports. Pure."""

from __future__ import annotations

from pytest_icbench.display.frame_rates import mpps, rate_mark, rate_ways
from pytest_icbench.display.table import In
from pytest_icbench.kinds.kind import Kind, Ranked
from pytest_icbench.kinds.throughput import throughput_columns as throughput
from pytest_icbench.model.figures import Throughput

THROUGHPUT = Kind(
    figures=Throughput,
    columns=throughput.COLUMNS,
    value=throughput.value,
    shown=In.THROUGHPUT,
    titles={"throughput": "{kind}"},
    short=lambda value: mpps(value * 1e6),
    mark=rate_mark,
    legend=((throughput.train, "train: frames of the longest train at the maximum rate that lost nothing (RFC 9004)"),),
    remarks=lambda result: (throughput.back_to_back(result),),
    facts=lambda result: (("back to back", throughput.back_to_back(result)),),
    ways=rate_ways,
    ranked=Ranked("rates", "Rate"),
)
