# SPDX-License-Identifier: BSD-3-Clause
"""Dot plots: the paths of one traffic in order, the best first, each with its interval and its value as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.axes import short
from pytest_icbench.display.chart import CROSS, HAS_INTERVAL, MEASURED, Column, interval_columns, y_axis

#: Height of a row in pixels.
STEP = 36


def dot_columns(x: Column, y: Column, *beside: Column) -> tuple[Column, ...]:
    """Returns the columns that ``dot_spec`` draws: those of ``interval_columns``, then row and text, and ``beside``."""
    return (*interval_columns(x, y), Column("path", "row"), Column("place", "place"), Column("text", "text"), *beside)


def dot_rows(rows: Sequence[tuple[Any, ...]], unit: str, *, least_wins: bool = False) -> tuple[tuple[Any, ...], ...]:
    """Returns rows of ``interval_columns`` with name, place and text of the row; published values join their path."""
    best: dict[str, float] = {}
    for row in rows:
        if row[7] == MEASURED:
            best.setdefault(str(row[1]), float(row[3]))
    ordered = sorted(best, key=lambda name: best[name] if least_wins else -best[name])
    places = {name: place for place, name in enumerate(ordered)}
    drawn = []
    for row in rows:
        path = str(row[1]).partition(": ")[0] if row[7] != MEASURED else str(row[1])
        if path in places:
            text = f"{'≥ ' if row[6] else ''}{short(row[3])} {unit}" if row[7] == MEASURED else ""
            drawn.append((*row[:8], path, places[path], text, *row[8:]))
    return tuple(sorted(drawn, key=lambda row: (row[9], row[7] != MEASURED)))


def dot_spec(
    y: Column, rows: Sequence[tuple[Any, ...]], order: Sequence[str], beside: Column | None = None
) -> dict[str, Any]:
    """Returns a chart of ``dot_rows``: values that are "at least" are hollow triangles, published ones diamonds.

    Args:
        order: all series of the page.
        beside: a second value of each path, drawn as a cross; it is the last column of ``rows``.
    """
    series = sorted({row[1] for row in rows if row[7] == MEASURED}, key=list(order).index)
    colour = {
        "field": "series",
        "type": "nominal",
        "legend": None,
        "scale": theme.series_scales(series, order)["color"],
    }
    numbers = [number for row in rows for number in (*row[3:6], *row[11:]) if number is not None]
    scale, title = y_axis(numbers, y.title if beside is None else f"{y.title}; {CROSS}: {beside.title}")
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
    if beside is not None:
        layers.append(
            {
                "transform": [*measured, {"filter": f"isValid(datum.{beside.name})"}],
                "mark": {"type": "text", "text": CROSS, "fontSize": 16, "yOffset": 8, "baseline": "middle"},
                "encoding": {"x": {**x, "field": beside.name}, "y": place, "color": colour},
            }
        )
        tooltip.append({"field": beside.name, "title": beside.title})
    if any(row[7] != MEASURED for row in rows):
        mark = {"type": "point", "shape": "diamond", "filled": False, "size": 110, "color": theme.DIM, "yOffset": 8}
        text = {"type": "text", "baseline": "middle", "align": "left", "dx": 9, "yOffset": 8, "color": theme.DIM}
        row_name = {"calculate": "split(split(datum.series, ': ')[1], ',')[0]", "as": "publication"}
        layers += [
            {"transform": published, "mark": mark, "encoding": {"x": x, "y": place, "tooltip": tooltip}},
            {
                "transform": [*published, row_name],
                "mark": text,
                "encoding": {"x": x, "y": place, "text": {"field": "publication"}},
            },
        ]
    return {"layer": layers}
