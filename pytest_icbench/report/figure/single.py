# SPDX-License-Identifier: BSD-3-Clause
"""Charts of a traffic that was measured at one point of an axis: the paths in order of their values. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import (
    METRIC_NAMES,
    Traffic,
    grouped,
    maxima,
    number,
    of_kind,
    path_of,
    traffic,
)
from pytest_icbench.display.chart import CROSS, HAS_INTERVAL, MEASURED, Column, Figure, interval_columns, y_axis
from pytest_icbench.model.figures import Latency
from pytest_icbench.model.result import Result
from pytest_icbench.report.figure.delay import covered
from pytest_icbench.report.figure.rate_charts import (
    OFFERED,
    SIZE,
    best_text,
    finding,
    floor_or_value,
    published_rows,
    row,
    scaled,
)

#: Height of a row in pixels.
STEP = 36


def dot_columns(x: Column, y: Column, *more: Column) -> tuple[Column, ...]:
    """Returns the columns that ``dot_spec`` draws: those of ``interval_columns``, then row and text, and ``more``."""
    return (*interval_columns(x, y), Column("path", "row"), Column("place", "place"), Column("text", "text"), *more)


def dot_rows(rows: Sequence[tuple[Any, ...]], unit: str, *, least_wins: bool = False) -> tuple[tuple[Any, ...], ...]:
    """Returns rows of ``interval_columns`` with name, place and text of the row; published values join their path."""
    best: dict[str, float] = {}
    for item in rows:
        if item[7] == MEASURED:
            best.setdefault(str(item[1]), float(item[3]))
    ordered = sorted(best, key=lambda name: best[name] if least_wins else -best[name])
    places = {name: place for place, name in enumerate(ordered)}
    drawn = []
    for item in rows:
        path = str(item[1]).partition(": ")[0] if item[7] != MEASURED else str(item[1])
        if path in places:
            text = f"{floor_or_value(item)} {unit}" if item[7] == MEASURED else ""
            drawn.append((*item[:8], path, places[path], text, *item[8:]))
    return tuple(sorted(drawn, key=lambda item: (item[9], item[7] != MEASURED)))


def dot_spec(
    y: Column, rows: Sequence[tuple[Any, ...]], order: Sequence[str], cross: Column | None = None
) -> dict[str, Any]:
    """Returns a chart of ``dot_rows``: values that are "at least" are hollow triangles, published ones diamonds.

    Args:
        order: all series of the page.
        cross: a second value of each path, drawn as a cross; it is the last column of ``rows``.
    """
    series = sorted({row[1] for row in rows if row[7] == MEASURED}, key=list(order).index)
    colour = {
        "field": "series",
        "type": "nominal",
        "legend": None,
        "scale": theme.series_scales(series, order)["color"],
    }
    numbers = [number for row in rows for number in (*row[3:6], *row[11:]) if number is not None]
    scale, title = y_axis(numbers, y.title if cross is None else f"{y.title}; {CROSS}: {cross.title}")
    if "type" not in scale and any(row[7] != MEASURED for row in rows):
        scale = {"domain": [0, max(numbers) * 1.08], "nice": False}  # room for the name of a publication
    x = {"field": y.name, "type": "quantitative", "scale": scale, "axis": {"title": title, "tickCount": 6}}
    place = {"field": "place", "type": "ordinal", "axis": None}
    tooltip = [{"field": column, "title": column} for column in ("case", "path", y.name, "low", "high", "source")]
    measured, published = ([{"filter": f"datum.source {sign} '{MEASURED}'"}] for sign in ("===", "!=="))
    label = {"type": "text", "baseline": "middle", "dy": -9, "fontSize": 12}
    layers: list[dict[str, Any]] = [
        {
            "transform": [*measured, HAS_INTERVAL],
            "mark": {"type": "rule", "strokeWidth": 3, "yOffset": 8},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": place, "color": colour},
        },
        {
            "transform": measured,
            "mark": {"type": "point", "size": 90, "opacity": 1, "yOffset": 8, "strokeWidth": 2, "filled": False},
            "encoding": {
                "x": x,
                "y": place,
                "color": colour,
                "shape": {
                    "field": "least",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"domain": [False, True], "range": ["circle", "triangle-right"]},
                },
                "tooltip": tooltip,
            },
        },
        {
            "transform": measured,
            "mark": {**label, "align": "left", "dx": 4},
            "encoding": {"x": {"value": 0}, "y": place, "text": {"field": "path"}},
        },
        {
            "transform": measured,
            "mark": {**label, "align": "right", "dx": -4, "fontWeight": "bold"},
            "encoding": {"x": {"value": "width"}, "y": place, "text": {"field": "text"}},
        },
    ]
    if cross is not None:
        layers.append(
            {
                "transform": [*measured, {"filter": f"isValid(datum.{cross.name})"}],
                "mark": {"type": "text", "text": CROSS, "fontSize": 16, "yOffset": 8, "baseline": "middle"},
                "encoding": {"x": {**x, "field": cross.name}, "y": place, "color": colour},
            }
        )
        tooltip.append({"field": cross.name, "title": cross.title})
    if any(row[7] != MEASURED for row in rows):
        mark = {"type": "point", "shape": "diamond", "filled": False, "size": 110, "color": theme.DIM, "yOffset": 8}
        layers.append({"transform": published, "mark": mark, "encoding": {"x": x, "y": place, "tooltip": tooltip}})
    return {"layer": layers}


_P99 = Column("p99", "99th percentile RTT, µs")


def one_size(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a dot plot for each traffic whose maximum was measured with one packet size.

    Args:
        results: results of throughput.
        order: all series of the page.
    """
    figures = []
    groups = grouped(maxima(results), lambda result: (result.metric, traffic(result)._replace(packet_size=0)))
    for place, ((metric, _), group) in enumerate(groups.items()):
        if len({traffic(result).packet_size for result in group}) > 1:
            continue
        key, y = traffic(group[0]), Column("rate", f"{metric}, Mpps")
        rows = [point for result in group for point in _rate(result, float(key.packet_size))]
        figures += _figure(
            f"one-size-{place}", "size", f"{METRIC_NAMES[metric].capitalize()}: {key.say()}", rows, (SIZE, y), order
        )
    return figures


def one_load(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a dot plot for each traffic that several paths were offered at one rate, such as table 5.2 of A1.

    Args:
        results: results of throughput.
        order: all series of the page.
    """
    fixed = [result for result in results if result.metric == "fixed" and result.frames.loss_event_count is None]
    figures = []
    for place, group in enumerate(grouped(fixed, _any_rate).values()):
        paths = [path_of(result) for result in group]
        if len(paths) < 2 or len(set(paths)) < len(paths):
            continue
        key, y = traffic(group[0]), Column("received", "received, Mpps")
        rows = [point for result in group for point in _rate(result, _offered(result))]
        figures += _figure(f"one-load-{place}", "load", f"Received: {key.say()}", rows, (OFFERED, y), order)
    return figures


def one_time(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a dot plot for each traffic whose round trips were measured with one packet size and at one load.

    Args:
        results: results of both dimensions.
        order: all series of the page.
    """
    times = of_kind(results, Latency)
    several = covered(results)
    figures = []
    for place, group in enumerate(grouped(times, lambda item: traffic(item)._replace(packet_size=0)).values()):
        if len({traffic(result).packet_size for result in group}) > 1 or _any_rate(group[0]) in several:
            continue
        key, y = traffic(group[0]), Column("rtt", "median RTT, µs")
        rows = [point for result in group if (point := _time(result, float(key.packet_size))) is not None]
        title = f"Median round-trip time: {key.say()}"
        figures += _figure(f"one-time-{place}", "latency", title, rows, (SIZE, y, _P99), order)
    return figures


def _figure(
    id_: str,
    kind: str,
    title: str,
    rows: Sequence[tuple[Any, ...]],
    columns: tuple[Column, ...],
    order: Sequence[str],
) -> list[Figure]:
    unit = "µs" if kind == "latency" else "Mpps"
    drawn = dot_rows(rows, unit, least_wins=unit == "µs")
    if not drawn:
        return []
    text, aria = (say(rows, unit, least_wins=unit == "µs") for say in (finding, best_text))
    spec = dot_spec(columns[1], drawn, order, *columns[2:])
    height = STEP * (1 + max(row[9] for row in drawn))
    return [Figure(id_, kind, title, text, spec, dot_columns(*columns), drawn, aria, height=height)]


def _time(result: Result, x: float) -> tuple[Any, ...] | None:
    point, p99 = (
        row(result, x, result.round_trips.rtt_p50_ns, 1e-3, least=False),
        number(result, result.round_trips.rtt_p99_ns),
    )
    return None if point is None else (*point, scaled(p99, 1e-3))


def _any_rate(result: Result) -> Traffic:
    return traffic(result)._replace(rate="")


def _offered(result: Result) -> float:
    pps = result.point.rate.pps
    return (result.frames.offered_pps or 0.0) / 1e6 if pps is None else pps * result.point.senders / 1e6


def _rate(result: Result, x: float) -> list[tuple[Any, ...]]:
    """Returns the measured and the published rates of a result; none without a measured rate."""
    point = row(result, x, result.frames.throughput_pps, 1e-6)
    return [] if point is None else [point, *published_rows(result, x, 1e-6)]
