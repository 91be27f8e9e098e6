# SPDX-License-Identifier: BSD-3-Clause
"""Delay against load: the median and the 99th percentile of the round trip, up to what the path carries. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import Traffic, grouped, number, of_kind, path_of, short, traffic
from pytest_icbench.display.chart import CASE, HAS_INTERVAL, SERIES, Column, Figure, tooltips, y_axis
from pytest_icbench.model.figures import MAXIMA, Latency
from pytest_icbench.model.result import Result
from pytest_icbench.report.figure.rate_charts import scaled

_COLUMNS = (
    CASE,
    SERIES,
    Column("offered", "offered, Mpps"),
    Column("p50", "median RTT, µs"),
    Column("low", "median RTT, µs, low"),
    Column("high", "median RTT, µs, high"),
    Column("p99", "99th percentile RTT, µs"),
    Column("carries", "the path carries, Mpps"),
)


def delay_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each traffic whose round trips were measured at two loads or more.

    A path ends at the rate to which its loads refer, or at its greatest rate on the page.

    Args:
        results: results of both dimensions.
        order: all series of the page.
    """
    times = of_kind(results, Latency)
    carried = _carried(results)
    figures = []
    for place, (key, group) in enumerate(grouped(times, _without_rate).items()):
        rows = tuple(sorted(filter(None, (_row(result, carried) for result in group)), key=lambda row: row[1:3]))
        if len({row[2] for row in rows}) < 2:
            continue
        figures.append(
            Figure(
                id=f"delay-{place}",
                kind="delay",
                title=f"Round-trip time against load: {key.say('rate')}",
                text=_text(rows),
                spec=_spec(rows, order),
                columns=_COLUMNS,
                rows=rows,
            )
        )
    return figures


def covered(results: Sequence[Result]) -> set[Traffic]:
    """Returns the traffic, without its rate, that was measured at several loads."""
    loads: dict[Traffic, set[float]] = {}
    for result in of_kind(results, Latency):
        if (load := _load(result)) is not None:
            loads.setdefault(_without_rate(result), set()).add(load)
    return {key for key, values in loads.items() if len(values) > 1}


def _without_rate(result: Result) -> Traffic:
    return traffic(result)._replace(rate="")


def _load(result: Result) -> float | None:
    """Returns the load that was offered, in frames per second over all pairs."""
    pps = result.point.rate.pps
    if result.frames.load is not None and result.frames.load_of_pps is not None:
        return result.frames.load * result.frames.load_of_pps
    return number(result, result.frames.offered_pps) if pps is None else float(pps * result.point.senders)


def _carried(results: Sequence[Result]) -> dict[tuple[str, Traffic], float]:
    """Returns the greatest rate of each path and traffic that the results have."""
    carried: dict[tuple[str, Traffic], float] = {}
    for result in results:
        known = [result.round_trips.load_of_pps]
        if result.metric in MAXIMA and not result.figures.LESS_IS_BETTER:
            known.append(number(result, result.frames.throughput_pps))
        for pps in known:
            if pps:
                key = path_of(result), _without_rate(result)
                carried[key] = max(carried.get(key, 0.0), float(pps))
    return carried


def _row(result: Result, carried: dict[tuple[str, Traffic], float]) -> tuple[Any, ...] | None:
    p50, load = number(result, result.round_trips.rtt_p50_ns), _load(result)
    if p50 is None or not load:
        return None
    edge = carried.get((path_of(result), _without_rate(result)))
    times = [scaled(value, 1e-3) for value in (p50, p50.low, p50.high, result.round_trips.rtt_p99_ns)]
    return result.case, path_of(result), _mega(load), *times, None if edge is None else _mega(edge)


def _mega(pps: float) -> float:
    return float(f"{pps / 1e6:.5g}")


def _text(rows: Sequence[tuple[Any, ...]]) -> str:
    sentences = []
    for name, points in grouped(rows, lambda row: row[1]).items():
        first, last = points[0], points[-1]
        sentence = (
            f"{name}: p50 {short(first[3])} µs at {short(first[2])} Mpps, {short(last[3])} µs at {short(last[2])}"
        )
        edge = next((row[7] for row in points if row[7] is not None), None)
        sentences.append(sentence + ("" if edge is None else f"; it carries {short(edge)} Mpps") + ".")
    edges = ", vertical: the greatest rate of the path" if any(row[7] is not None for row in rows) else ""
    return f"{' '.join(sentences)} Solid: median, dotted: 99th percentile{edges}."


def _spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str]) -> dict[str, Any]:
    series = sorted({row[1] for row in rows}, key=order.index)
    scales, legend = theme.series_scales(series, order), {"title": None}
    colour = {"field": "series", "type": "nominal", "scale": scales["color"], "legend": legend}
    y_scale, title = y_axis([value for row in rows for value in row[3:7]], "RTT, µs")
    x = {"field": "offered", "type": "quantitative", "scale": {"zero": True}, "axis": {"title": "offered, Mpps"}}
    title = f"{title}; solid p50, dotted p99"
    y = {"field": "p50", "type": "quantitative", "scale": y_scale, "axis": {"title": title}}
    tooltip = tooltips(_COLUMNS)
    tails = [{"filter": "isValid(datum.p99)"}]
    once = {"aggregate": [{"op": "max", "field": "carries", "as": "edge"}], "groupby": ["series"]}
    edges = [{"filter": "isValid(datum.carries)"}, once]
    layers: list[dict[str, Any]] = [
        {
            "transform": edges,
            "mark": {"type": "rule", "strokeDash": [2, 4], "strokeWidth": 1.5},
            "encoding": {"x": {**x, "field": "edge"}, "color": colour},
        },
        {
            "transform": tails,
            "mark": {"type": "line", "strokeDash": [2, 3], "strokeWidth": 1.5},
            "encoding": {"x": x, "y": {**y, "field": "p99"}, "color": colour},
        },
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"x": x, "y": y, "color": colour}},
        {
            "transform": [HAS_INTERVAL],
            "mark": {"type": "errorbar", "ticks": {"size": 7}, "thickness": 1.5},
            "encoding": {
                "x": x,
                "y": {"field": "low", "type": "quantitative", "scale": y_scale, "title": title},
                "y2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "shape": {"field": "series", "type": "nominal", "scale": scales["shape"], "legend": legend},
                "tooltip": tooltip,
            },
        },
    ]
    return {"layer": layers}
