# SPDX-License-Identifier: BSD-3-Clause
"""Figures of round-trip times: against packet size, and by percentile on HdrHistogram's axis. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_icbench.model.result import Result
from pytest_icbench.report.axes import Traffic, grouped, is_latency, number, path_of, short, traffic
from pytest_icbench.report.figure import theme
from pytest_icbench.report.figure.figure import (
    CASE,
    SERIES,
    Column,
    Figure,
    interval_columns,
    interval_spec,
    y_axis,
)
from pytest_icbench.report.figure.figures import SIZE, best_text, row
from pytest_icbench.report.remarks import round_trips

#: Points a decade of a percentile curve.
PER_DECADE = 8
#: A percentile is given only with so many samples beyond it, as everywhere in this project.
SAMPLES_BEYOND = 10

_NAMED = {"p50": 2.0, "p90": 10.0, "p99": 100.0, "p99.9": 1e3, "p99.99": 1e4}

#: A curve: pairs of 1/(1-q) and nanoseconds.
Curve = Sequence[tuple[float, float]]


def latency_figures(results: Sequence[Result], order: Sequence[str], curves: Mapping[int, Curve]) -> list[Figure]:
    """All figures of round-trip times.

    Args:
        curves: by a result's place among ``results``.
    """
    times = [(place, each) for place, each in enumerate(results) if is_latency(each)]
    return [*_by_size([each for _, each in times], order), *_by_percentile(times, order, curves)]


def _by_size(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """A8: mean and 99th percentile against packet size."""
    figures = []
    groups = grouped(results, lambda result: traffic(result)._replace(packet_size=0))
    for place, (key, group) in enumerate(groups.items()):
        for what in ("Mean", "99th percentile"):
            figures_of = [(each, each.rtt_mean_ns if what == "Mean" else each.rtt_p99_ns) for each in group]
            made = (row(each, each.point.traffic.mean_bytes, figure, 1e-3, least=False) for each, figure in figures_of)
            rows = tuple(sorted((each for each in made if each is not None), key=lambda each: (each[1], each[2])))
            if not rows:
                continue
            y = Column("rtt", f"{what.lower()} RTT, µs")
            figures.append(
                Figure(
                    id=f"latency-{place}-{'mean' if what == 'Mean' else 'p99'}",
                    kind="latency",
                    title=f"{what} round-trip time: {key.say('packet_size')}",
                    text=best_text(rows, "µs", least_wins=True),
                    spec=interval_spec(SIZE, y, rows, order, log_x=True),
                    columns=interval_columns(SIZE, y),
                    rows=rows,
                )
            )
    return figures


_COLUMNS = (
    CASE,
    SERIES,
    Column("beyond", "1/(1-q)"),
    Column("percentile", "percentile"),
    Column("rtt", "RTT, µs"),
    Column("low", "RTT, µs, low"),
    Column("high", "RTT, µs, high"),
)


def _by_percentile(
    results: Sequence[tuple[int, Result]], order: Sequence[str], curves: Mapping[int, Curve]
) -> list[Figure]:
    groups: dict[Traffic, list[tuple[int, Result]]] = {}
    for place, result in results:
        groups.setdefault(traffic(result), []).append((place, result))
    figures = []
    for number_, (key, group) in enumerate(groups.items()):
        rows = [each for place, result in group for each in _curve_rows(result, curves.get(place, ()))]
        if rows:
            figures.append(
                Figure(
                    id=f"percentiles-{number_}",
                    kind="percentiles",
                    title=f"Round-trip time by percentile: {key.say()}",
                    text=_text(group),
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
    said = []
    for _, result in group:
        rtt = round_trips(result)
        named = [(name, number(result, rtt[name])) for name in ("p50", "p99", "p99.9")]
        known = [f"{name} {short(value / 1000)} µs" for name, value in named if value is not None]
        if known:
            said.append(f"{path_of(result)}: {', '.join(known)}.")
    return " ".join(said) + " Bars are 95 % intervals of the named percentiles."


def _percentile_spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str]) -> dict[str, Any]:
    series = sorted({each[1] for each in rows}, key=order.index)
    scales = theme.series_scales(series, order)
    legend = {"title": None}
    ticks = [10.0**power for power in range(6) if 10**power <= 10 * max(each[2] for each in rows)]
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
    y_scale, y_title = y_axis([value for each in rows for value in each[4:7]], "RTT, µs")
    y = {"field": "rtt", "type": "quantitative", "scale": y_scale, "axis": {"title": y_title}}
    colour = {"field": "series", "type": "nominal", "scale": scales["color"], "legend": legend}
    marked = [{"filter": "isValid(datum.low) && isValid(datum.high)"}]
    tooltip = [{"field": column.name, "title": column.title} for column in _COLUMNS if column.name != "beyond"]
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "strokeDash": {"field": "series", "type": "nominal", "scale": scales["strokeDash"], "legend": legend},
            },
        },
        {
            "transform": marked,
            "mark": {"type": "errorbar", "ticks": {"size": 7}, "thickness": 1.5},
            "encoding": {
                "x": x,
                "y": {"field": "low", "type": "quantitative", "scale": y_scale, "title": y_title},
                "y2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "transform": marked,
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
    return {"height": 320, "layer": layers}
