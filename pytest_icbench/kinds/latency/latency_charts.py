# SPDX-License-Identifier: BSD-3-Clause
"""Charts of round-trip times: against packet size, against a chain's length, against load, and at one place. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import (
    Traffic,
    grouped,
    number,
    of_kind,
    path_of,
    short,
    traffic,
    without_length,
)
from pytest_icbench.display.chart import (
    CASE,
    HAS_INTERVAL,
    SERIES,
    Axes,
    Column,
    Figure,
    interval_columns,
    interval_spec,
    tooltips,
    with_own,
    y_axis,
)
from pytest_icbench.display.points import LENGTH, SIZE, best_text, dot_plot, finding, row, scaled
from pytest_icbench.model.figures import MAXIMA, Latency
from pytest_icbench.model.result import Result

#: The median and the tail against packet size: the median is what verdicts compare.
_MEDIAN = Column("rtt", "median RTT, µs")
_P99 = Column("p99", "99th percentile RTT, µs")
#: The mean, which publications use. The page shows it instead of the median on request.
_MEAN = (
    Column("mean", "mean RTT, µs"),
    Column("mean_low", "mean RTT, µs, low"),
    Column("mean_high", "mean RTT, µs, high"),
)


@dataclass(frozen=True)
class _Axis:
    """An axis of charts of round trips. There is one chart for each traffic, apart from the axis.

    Attributes:
        id: the section, and the start of a chart's id.
        column: its column.
        at: returns a result's value on it.
        part: the field of the traffic that it is; empty if it is none.
        series: returns the name of a result's line.
        wanted: predicate of the results that the charts show.
        note: a sentence after the finding.
    """

    id: str
    column: Column
    at: Callable[[Result], float]
    part: str = ""
    series: Callable[[Result], str] = path_of
    wanted: Callable[[Result], bool] = lambda _result: True
    note: str = ""


_SIZES = _Axis("latency", SIZE, lambda result: result.point.traffic.mean_bytes, "packet_size")
_LENGTHS = _Axis(
    "chain-delays",
    LENGTH,
    lambda result: result.point.chain,
    series=without_length,
    wanted=lambda result: result.point.function is not None,
    note="If functions share CPUs, the 99th percentile is due to the scheduler.",
)


def by_size(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of A8: the median with its interval and the 99th percentile against packet size.

    ``one_time`` has the charts of one size.
    """
    return _charts(_SIZES, results, order)


def by_length(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of E7: the median with its interval and the 99th percentile against the length of a chain."""
    return _charts(_LENGTHS, results, order)


def _charts(axis: _Axis, results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    figures = []
    none: dict[str, Any] = {axis.part: 0} if axis.part else {}
    groups = grouped(filter(axis.wanted, of_kind(results, Latency)), lambda result: traffic(result)._replace(**none))
    for place, (key, group) in enumerate(groups.items()):
        points = [
            (row(result, axis.at(result), result.round_trips.rtt_p50_ns, 1e-3, least=False), result) for result in group
        ]
        known = [
            (
                point[0],
                axis.series(result),
                *point[2:],
                scaled(number(result, result.round_trips.rtt_p99_ns), 1e-3),
                *_mean(result),
            )
            for point, result in points
            if point is not None
        ]
        rows = tuple(sorted(known, key=lambda point: point[1:3]))
        if len({point[2] for point in rows}) < 2:
            continue
        names = with_own(order, rows)
        note = f" {axis.note}" if axis.note else ""
        figures.append(
            Figure(
                id=f"{axis.id}-{place}",
                kind=axis.id,
                title=f"Median and 99th percentile of the round-trip time: {key.say(axis.part)}",
                text=f"{finding(rows, 'µs', least_wins=True)} Crosses: 99th percentiles.{note}",
                aria=f"Medians. {best_text(rows, 'µs', least_wins=True)} Crosses are 99th percentiles.{note}",
                spec=interval_spec(Axes(axis.column, _MEDIAN), rows, names, cross=_P99),
                columns=(*interval_columns(axis.column, _MEDIAN), _P99, *_MEAN),
                rows=rows,
                values=("rtt", "low", "high", "p99"),
                choices=_CHOICES if any(row[9] is not None for row in rows) else (),
            )
        )
    return figures


#: The median or the mean, each with its interval, in the same columns of the specification.
_CHOICES = (("median", ("rtt", "low", "high", "p99")), ("mean", ("mean", "mean_low", "mean_high", "p99")))


def _mean(result: Result) -> tuple[float | None, ...]:
    mean = number(result, result.round_trips.rtt_mean_ns)
    return (None, None, None) if mean is None else tuple(scaled(time, 1e-3) for time in (mean, mean.low, mean.high))


def one_time(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a dot plot for each traffic whose round trips were measured with one packet size and at one load.

    Args:
        results: results of all kinds.
        order: all series of the page.
    """
    times = of_kind(results, Latency)
    several = covered(results)
    figures = []
    for place, group in enumerate(grouped(times, lambda item: traffic(item)._replace(packet_size=0)).values()):
        if len({traffic(result).packet_size for result in group}) > 1 or _without_rate(group[0]) in several:
            continue
        key, y = traffic(group[0]), Column("rtt", "median RTT, µs")
        rows = [point for result in group if (point := _time(result, float(key.packet_size))) is not None]
        title = f"Median round-trip time: {key.say()}"
        figures += dot_plot(f"one-time-{place}", "latency", title, rows, (SIZE, y, _P99), order)
    return figures


def _time(result: Result, x: float) -> tuple[Any, ...] | None:
    point, p99 = (
        row(result, x, result.round_trips.rtt_p50_ns, 1e-3, least=False),
        number(result, result.round_trips.rtt_p99_ns),
    )
    return None if point is None else (*point, scaled(p99, 1e-3))


_OVER_LOAD = (
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
        results: results of all kinds.
        order: all series of the page.
    """
    times = of_kind(results, Latency)
    carried = _carried(results)
    figures = []
    for place, (key, group) in enumerate(grouped(times, _without_rate).items()):
        rows = tuple(sorted(filter(None, (_load_row(result, carried) for result in group)), key=lambda row: row[1:3]))
        if len({row[2] for row in rows}) < 2:
            continue
        figures.append(
            Figure(
                id=f"delay-{place}",
                kind="delay",
                title=f"Round-trip time against load: {key.say('rate')}",
                text=_load_text(rows),
                spec=_load_spec(rows, order),
                columns=_OVER_LOAD,
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


def _load_row(result: Result, carried: dict[tuple[str, Traffic], float]) -> tuple[Any, ...] | None:
    p50, load = number(result, result.round_trips.rtt_p50_ns), _load(result)
    if p50 is None or not load:
        return None
    edge = carried.get((path_of(result), _without_rate(result)))
    times = [scaled(value, 1e-3) for value in (p50, p50.low, p50.high, result.round_trips.rtt_p99_ns)]
    return result.case, path_of(result), _mega(load), *times, None if edge is None else _mega(edge)


def _mega(pps: float) -> float:
    return float(f"{pps / 1e6:.5g}")


def _load_text(rows: Sequence[tuple[Any, ...]]) -> str:
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


def _load_spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str]) -> dict[str, Any]:
    series = sorted({row[1] for row in rows}, key=order.index)
    scales, legend = theme.series_scales(series, order), {"title": None}
    colour = {"field": "series", "type": "nominal", "scale": scales["color"], "legend": legend}
    y_scale, title = y_axis([value for row in rows for value in row[3:7]], "RTT, µs")
    x = {"field": "offered", "type": "quantitative", "scale": {"zero": True}, "axis": {"title": "offered, Mpps"}}
    title = f"{title}; solid p50, dotted p99"
    y = {"field": "p50", "type": "quantitative", "scale": y_scale, "axis": {"title": title}}
    tooltip = tooltips(_OVER_LOAD)
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
