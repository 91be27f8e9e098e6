# SPDX-License-Identifier: BSD-3-Clause
"""Latency in reports. Pure."""

from __future__ import annotations

from pytest_icbench.display.case_names import number
from pytest_icbench.display.table import In
from pytest_icbench.kinds.kind import Charts, Further, Kind, Ranked
from pytest_icbench.kinds.latency import latency_charts as charts
from pytest_icbench.kinds.latency import latency_columns as latency
from pytest_icbench.kinds.latency import percentile_charts as percentiles
from pytest_icbench.model.figures import Latency

LATENCY = Kind(
    figures=Latency,
    columns=latency.COLUMNS,
    value=latency.value,
    shown=In.LATENCY,
    titles={"latency": "{kind}"},
    further=(
        Further(
            "delay variation (RFC 5481)",
            lambda result: number(result, result.round_trips.pdv_p50_ns) is not None,
            In.VARIATION,
        ),
    ),
    short="{:.1f}".format,
    mark=latency.mark,
    legend=latency.LEGEND,
    remarks=latency.remarks,
    facts=latency.facts,
    ways=latency.ways,
    ranked=Ranked("delays", "Round trip"),
    charts=(
        Charts("chain-delays", "Chains: round trip against length", charts.by_length),
        Charts(
            "latency",
            "Round trip against packet size",
            lambda results, order: (*charts.by_size(results, order), *charts.one_time(results, order)),
        ),
        Charts("delay", "Round trip against load", charts.delay_figures),
        Charts(
            "percentiles",
            "Round trip by percentile",
            lambda results, order: (
                *percentiles.cdf_figures(results, order),
                *percentiles.by_percentile(results, order),
            ),
        ),
    ),
)
