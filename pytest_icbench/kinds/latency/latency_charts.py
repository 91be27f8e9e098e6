# SPDX-License-Identifier: BSD-3-Clause
"""Charts of round-trip times: against packet size, a chain's length, and load, and of all percentiles. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import (
    Traffic,
    in_order,
    number,
    of_kind,
    path_of,
    short,
    times,
    traffic,
    without_length,
    without_rate,
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
    offsets,
    tooltips,
    with_own,
    y_axis,
)
from pytest_icbench.display.points import LENGTH, SIZE, best_text, dot_plot, finding, row, scaled
from pytest_icbench.model.figures import MAXIMA, PERCENTILES, Latency
from pytest_icbench.model.measurement import Result
from pytest_icbench.stats.quantiles import SAMPLES_BEYOND, Histogram, merge
from pytest_icbench.wording import grouped

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
    """Returns a dot plot for each traffic whose round trips were measured with one packet size and at one load."""
    times = of_kind(results, Latency)
    several = covered(results)
    figures = []
    for place, group in enumerate(grouped(times, lambda item: traffic(item)._replace(packet_size=0)).values()):
        if len({traffic(result).packet_size for result in group}) > 1 or without_rate(group[0]) in several:
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
    """
    times = of_kind(results, Latency)
    carried = _carried(results)
    figures = []
    for place, (key, group) in enumerate(grouped(times, without_rate).items()):
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
            loads.setdefault(without_rate(result), set()).add(load)
    return {key for key, values in loads.items() if len(values) > 1}


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
                key = path_of(result), without_rate(result)
                carried[key] = max(carried.get(key, 0.0), float(pps))
    return carried


def _load_row(result: Result, carried: dict[tuple[str, Traffic], float]) -> tuple[Any, ...] | None:
    p50, load = number(result, result.round_trips.rtt_p50_ns), _load(result)
    if p50 is None or not load:
        return None
    edge = carried.get((path_of(result), without_rate(result)))
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


_NAMED = {name: round(1 / (1 - share), 4) for name, share in PERCENTILES.items()}
#: Number of points of a percentile curve in each decade.
PER_DECADE = 8

_COLUMNS = (
    CASE,
    SERIES,
    Column("beyond", "1/(1-q)"),
    Column("percentile", "percentile"),
    Column("rtt", "RTT, µs"),
    Column("low", "RTT, µs, low"),
    Column("high", "RTT, µs, high"),
)


def by_percentile(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of all percentiles."""
    figures = []
    for index, (key, group) in enumerate(grouped(of_kind(results, Latency), traffic).items()):
        rows = [point for result in group for point in _curve_rows(result)]
        if rows:
            figures.append(
                Figure(
                    id=f"percentiles-{index}",
                    kind="percentiles",
                    title=f"Round-trip time by percentile: {key.say()}",
                    text="Bars: 95 % intervals of the named percentiles.",
                    aria=_text(group),
                    values=("rtt", "low", "high"),
                    height=320,
                    spec=_percentile_spec(rows, order),
                    columns=_COLUMNS,
                    rows=tuple(rows),
                )
            )
    return figures


def curve_of(result: Result) -> list[tuple[float, float]]:
    """Returns the merged round-trip times of a result as points (1/(1-q), ns); empty without round trips.

    At least ten requests are slower than a percentile. Lost requests count as slower than any answered one.
    """
    if not result.is_number:
        return []
    merged = merge([launch.rtt for launch in result.per_launch if launch.rtt is not None])
    if merged is None or not merged.count:
        return []
    requests = merged.count + merged.lost
    steps = (10 ** (step / PER_DECADE) for step in itertools.count())
    targets = list(itertools.takewhile(lambda target: target <= requests / SAMPLES_BEYOND, steps))
    answered = _answered(merged, [requests * (1 - 1 / target) for target in targets])
    return [(round(target, 4), time_ns) for target, time_ns in zip(targets, answered, strict=False)]


def _answered(merged: Histogram, numbers: Sequence[float]) -> list[float]:
    """Returns the times (ns) within which these numbers of requests, in order, were answered, as far as they were."""
    reached: list[float] = []
    seen = 0
    for value, count in merged.counts:
        seen += count
        while len(reached) < len(numbers) and seen >= numbers[len(reached)]:
            reached.append(float(min(value, merged.maximum or value)))
    return reached


def _curve_rows(result: Result) -> list[tuple[Any, ...]]:
    if not result.is_number:
        return []
    head = (result.case, path_of(result))
    points: dict[float, tuple[float, float | None, float | None]] = {
        inverse_tail: (value / 1e3, None, None) for inverse_tail, value in curve_of(result)
    }
    for name, rtt in times(result, "rtt").items():
        if rtt is not None:
            low, high = (None if end is None else end / 1e3 for end in (rtt.low, rtt.high))
            points[_NAMED[name]] = (rtt / 1e3, low, high)
    return [(*head, x, _percentile(x), *points[x]) for x in sorted(points)]


def _percentile(inverse_tail: float) -> str:
    return f"{100 * (1 - 1 / inverse_tail):.7g} %"


def _text(group: Sequence[Result]) -> str:
    sentences = []
    for result in group:
        rtt = times(result, "rtt")
        named = [(name, number(result, rtt[name])) for name in ("p50", "p99", "p99.9")]
        known = [f"{name} {short(value / 1000)} µs" for name, value in named if value is not None]
        if known:
            sentences.append(f"{path_of(result)}: {', '.join(known)}.")
    return " ".join(sentences) + " Bars are 95 % intervals of the named percentiles."


def _percentile_spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str]) -> dict[str, Any]:
    series = sorted({row[1] for row in rows}, key=order.index)
    look = theme.series_scales(series, order)
    colour = theme.encoding("color", look)
    last = max(row[2] for row in rows)
    ticks = [inverse_tail for inverse_tail in (1.0, 2.0, 4.0, 10.0, 100.0, 1e3, 1e4, 1e5) if inverse_tail <= 10 * last]
    x = {
        "field": "beyond",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {
            "title": "percentile, on the axis 1/(1-q)",
            "values": ticks,
            "labelExpr": "format((1 - 1 / datum.value) * 100, '.6~g') + ' %'",
        },
    }
    y = {"field": "rtt", "type": "quantitative", "scale": {"@scale": "rtt"}, "axis": {"title": "RTT, µs@kind"}}
    aside = {"xOffset": {"expr": offsets(series)}}
    marked = [HAS_INTERVAL]
    tooltip = [{"field": column.name, "title": column.title} for column in _COLUMNS if column.name != "beyond"]
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": theme.encoding("strokeDash", look)},
        },
        {
            "transform": marked,
            "mark": {"type": "rule", "strokeWidth": 1.5, **aside},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "transform": marked,
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, **aside},
            "encoding": {"x": x, "y": y, "color": colour, "shape": theme.encoding("shape", look), "tooltip": tooltip},
        },
    ]
    return {"layer": layers}


#: Percentiles of a curve: a hundredth of the requests each at the ends, five hundredths between.
_SHARES = (*range(1, 5), *range(5, 95, 5), *range(95, 100))
#: The greatest number of charts on a page.
MOST_CDFS = 60

_CDF_COLUMNS = (CASE, SERIES, Column("rtt", "RTT, µs"), Column("share", "answered within it, %"))


def cdf_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each traffic: the share of all requests that were answered within a time.

    Lost requests never reach it, so the curve of a path that loses some ends below 100 %.
    """
    figures: list[Figure] = []
    known = [result for result in of_kind(results, Latency) if result.is_number]
    for key, group in grouped(known, traffic).items():
        if len(figures) == MOST_CDFS:
            break
        rows = tuple(row for result in in_order(group, order) for row in _cdf_rows(result))
        if rows:
            figures.append(
                Figure(
                    id=f"cdf-{len(figures)}",
                    kind="percentiles",
                    title=f"Share of round trips within a time: {key.say()}",
                    text="Requests without an answer keep a curve below 100 %.",
                    aria=_cdf_text(rows),
                    spec=_cdf_spec(rows, order),
                    columns=_CDF_COLUMNS,
                    rows=rows,
                )
            )
    return figures


def _cdf_rows(result: Result) -> list[tuple[Any, ...]]:
    merged = merge([launch.rtt for launch in result.per_launch if launch.rtt is not None])
    if merged is None or not merged.count:
        return []
    head, requests = (result.case, path_of(result)), merged.count + merged.lost
    answered = _answered(merged, [requests * share / 100 for share in _SHARES])
    return [(*head, float(f"{ns / 1e3:.5g}"), share) for ns, share in zip(answered, _SHARES, strict=False)]


def _cdf_text(rows: Sequence[tuple[Any, ...]]) -> str:
    sentences = []
    for name, points in grouped(rows, lambda row: row[1]).items():
        at = {row[3]: row[2] for row in points}
        known = [f"{share} % within {short(at[share])} µs" for share in (50, 90, 99) if share in at]
        if known:
            sentences.append(f"{name}: {', '.join(known)}.")
    return " ".join(sentences)


def _cdf_spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str]) -> dict[str, Any]:
    series = sorted({row[1] for row in rows}, key=list(order).index)
    scales, legend = theme.series_scales(series, order), {"title": None}
    values = [row[2] for row in rows]
    wide = min(values) > 0 and max(values) / min(values) > 5
    scale: dict[str, Any] = {"type": "log", "nice": True} if wide else {"zero": False, "nice": True}
    title = f"RTT, µs{' (logarithmic)' if wide else ''}"
    return {
        "layer": [
            {
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
                "encoding": {
                    "x": {
                        "field": "rtt",
                        "type": "quantitative",
                        "scale": scale,
                        "axis": {"title": title, "tickCount": 6},
                    },
                    "y": {
                        "field": "share",
                        "type": "quantitative",
                        "scale": {"domain": [0, 100], "nice": False},
                        "axis": {"title": "answered within it, %", "values": [0, 25, 50, 75, 90, 100]},
                    },
                    "order": {"field": "share"},
                    "color": theme.encoding("color", scales, legend),
                    "strokeDash": theme.encoding("strokeDash", scales, legend),
                    "tooltip": tooltips(_CDF_COLUMNS),
                },
            }
        ]
    }
