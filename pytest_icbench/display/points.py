# SPDX-License-Identifier: BSD-3-Clause
"""Points of charts: values of results with their intervals over an axis, and the words on them. Pure.

A chart of one place on its axis is a dot plot: its paths stand in the order of their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import number, path_of, short
from pytest_icbench.display.chart import CROSS, HAS_INTERVAL, MEASURED, Column, Figure, interval_columns, y_axis
from pytest_icbench.model.measurement import Result
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import grouped

OFFERED = Column("offered", "offered, Mpps")
SIZE = Column("size", "packet size, bytes with FCS")
LENGTH = Column("chain", "functions in a row")


def row(
    result: Result, x: float, figure: Estimate | None, factor: float, *, least: bool | None = None
) -> tuple[Any, ...] | None:
    """Returns a row of ``interval_columns``; None where the result has no such value.

    Args:
        x: the value on the horizontal axis.
        figure: the result's value, before the multiplication by ``factor``.
        least: whether the value is "at least"; by default the result says so.
    """
    figure = number(result, figure)
    if figure is None:
        return None
    return (
        result.case,
        path_of(result),
        x,
        scaled(figure, factor),
        scaled(figure.low, factor),
        scaled(figure.high, factor),
        result.at_least if least is None else least,
        MEASURED,
    )


def floor_or_value(item: Sequence[Any]) -> str:
    """Returns the value of a row of ``interval_columns``; that of a rate "at least" is the lower end: ``≥ 4.9``."""
    return f"≥ {short(item[3] if item[4] is None else item[4])}" if item[6] else short(item[3])


def scaled(value: float | None, factor: float) -> float | None:
    """Returns a value in the unit of a chart, with seven digits."""
    return None if value is None else float(f"{value * factor:.7g}")


def best_text(rows: Sequence[tuple[Any, ...]], unit: str, *, least_wins: bool = False) -> str:
    """Returns the text alternative: the best measured point and the range of each series."""
    measured = [row for row in rows if row[7] == MEASURED]
    if not measured:
        return ""
    best = (min if least_wins else max)(measured, key=lambda row: float(row[3]))
    parts = [f"{'Least' if least_wins else 'Greatest'}: {best[1]} with {short(best[3])} {unit}."]
    for name, series_rows in grouped(measured, lambda row: row[1]).items():
        values = [float(row[3]) for row in series_rows]
        parts.append(
            f"{name}: {short(min(values))} to {short(max(values))}."
            if len(series_rows) > 1
            else f"{name}: {short(values[0])}."
        )
    if len(measured) < len(rows):
        parts.append("Hollow diamonds are published values from other hardware.")
    return " ".join(parts)


def finding(rows: Sequence[tuple[Any, ...]], unit: str, *, least_wins: bool = False) -> str:
    """Returns the caption: the best measured point, and the meaning of diamonds."""
    measured = [row for row in rows if row[7] == MEASURED]
    if not measured:
        return ""
    best = (min if least_wins else max)(measured, key=lambda row: float(row[3]))
    text = f"{'Least' if least_wins else 'Greatest'}: {best[1]}, {floor_or_value(best)} {unit}."
    return text + (" Hollow diamonds: published values, other hardware." if len(measured) < len(rows) else "")


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


def dot_plot(
    id_: str, kind: str, title: str, rows: Sequence[tuple[Any, ...]], columns: tuple[Column, ...], order: Sequence[str]
) -> list[Figure]:
    unit = columns[1].title.rpartition(", ")[2]
    drawn = dot_rows(rows, unit, least_wins=unit == "µs")
    if not drawn:
        return []
    text, aria = (say(rows, unit, least_wins=unit == "µs") for say in (finding, best_text))
    spec = dot_spec(columns[1], drawn, order, *columns[2:])
    height = STEP * (1 + max(row[9] for row in drawn))
    return [Figure(id_, kind, title, text, spec, dot_columns(*columns), drawn, aria, height=height)]
