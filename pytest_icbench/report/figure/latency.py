# SPDX-License-Identifier: BSD-3-Clause
"""Charts of round-trip times: against packet size, against a chain's length, and by percentile. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.axes import Traffic, grouped, number, of_kind, path_of, short, traffic
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
    with_own,
)
from pytest_icbench.model.figures import Latency
from pytest_icbench.model.result import Result
from pytest_icbench.report.figure.chains import LENGTH, without_length
from pytest_icbench.report.figure.figures import SIZE, best_text, finding, row, scaled
from pytest_icbench.report.remarks import round_trips

_NAMED = {"p50": 2.0, "p90": 10.0, "p99": 100.0, "p99.9": 1e3, "p99.99": 1e4}

#: A curve: pairs of 1/(1-q) and nanoseconds.
Curve = Sequence[tuple[float, float]]


#: The median and the tail against packet size: the median is what verdicts compare.
_MEDIAN = Column("rtt", "median RTT, µs")
_P99 = Column("p99", "99th percentile RTT, µs")
#: Shown in the median's place on request, as publications have it.
_MEAN = (
    Column("mean", "mean RTT, µs"),
    Column("mean_low", "mean RTT, µs, low"),
    Column("mean_high", "mean RTT, µs, high"),
)


@dataclass(frozen=True)
class _Axis:
    """An axis of charts of round trips: one chart for each traffic but for its axis.

    Attributes:
        id: the section, and the start of a chart's id.
        column: its column.
        at: its value of a result.
        part: the part of the traffic that it is, if it is one.
        series: the name of a result's line.
        wanted: whether a result belongs there.
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
    note="Where functions share CPUs, the 99th percentile is the scheduler's.",
)


def by_size(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of A8: the median with its interval against packet size, and the 99th percentile beside it.

    ``single`` has the charts of one size.
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
                spec=interval_spec(Axes(axis.column, _MEDIAN), rows, names, beside=_P99),
                columns=(*interval_columns(axis.column, _MEDIAN), _P99, *_MEAN),
                rows=rows,
                values=("rtt", "low", "high", "p99"),
                choices=_CHOICES if any(row[9] is not None for row in rows) else (),
            )
        )
    return figures


#: The median with its interval, or the mean with its own, in the same columns of the specification.
_CHOICES = (("median", ("rtt", "low", "high", "p99")), ("mean", ("mean", "mean_low", "mean_high", "p99")))


def _mean(result: Result) -> tuple[float | None, ...]:
    mean = number(result, result.round_trips.rtt_mean_ns)
    return (None, None, None) if mean is None else tuple(scaled(time, 1e-3) for time in (mean, mean.low, mean.high))


_COLUMNS = (
    CASE,
    SERIES,
    Column("beyond", "1/(1-q)"),
    Column("percentile", "percentile"),
    Column("rtt", "RTT, µs"),
    Column("low", "RTT, µs, low"),
    Column("high", "RTT, µs, high"),
)


def by_percentile(results: Sequence[Result], order: Sequence[str], curves: Mapping[int, Curve]) -> list[Figure]:
    """Returns charts of all percentiles; ``curves`` has the percentile curves by a result's index."""
    groups: dict[Traffic, list[tuple[int, Result]]] = {}
    for place, result in enumerate(results):
        if place in curves:
            groups.setdefault(traffic(result), []).append((place, result))
    figures = []
    for index, (key, group) in enumerate(groups.items()):
        rows = [point for place, result in group for point in _curve_rows(result, curves.get(place, ()))]
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


def _curve_rows(result: Result, curve: Curve) -> list[tuple[Any, ...]]:
    if not result.is_number:
        return []
    head = (result.case, path_of(result))
    points: dict[float, tuple[float, float | None, float | None]] = {
        beyond: (value / 1e3, None, None) for beyond, value in curve
    }
    for name, rtt in round_trips(result).items():
        if rtt is not None:
            low, high = (None if end is None else end / 1e3 for end in (rtt.low, rtt.high))
            points[_NAMED[name]] = (rtt / 1e3, low, high)
    return [(*head, x, _percentile(x), *points[x]) for x in sorted(points)]


def _percentile(beyond: float) -> str:
    return f"{100 * (1 - 1 / beyond):.7g} %"


def _text(group: Sequence[tuple[int, Result]]) -> str:
    sentences = []
    for _, result in group:
        rtt = round_trips(result)
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
    ticks = [beyond for beyond in (1.0, 2.0, 4.0, 10.0, 100.0, 1e3, 1e4, 1e5) if beyond <= 10 * last]
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
