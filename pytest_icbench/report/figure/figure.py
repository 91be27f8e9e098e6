# SPDX-License-Identifier: BSD-3-Clause
"""A chart: a Vega-Lite specification without its data, and the data as a table. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from pytest_icbench.report.figure import theme

#: Ratio of the greatest to the least value above which an axis is logarithmic.
LOG_RATIO = 50.0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a chart's data: ``name`` of the field, and ``title`` in tables and CSV (with its unit)."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its data.

    Attributes:
        id: id of the element, unique on a page.
        kind: the section that it belongs to.
        title: its heading.
        text: its content in words, for readers who cannot see it.
        spec: Vega-Lite without ``data`` and ``width``.
        columns, rows: the data. The first column is the case's id, by which the page filters.
    """

    id: str
    kind: str
    title: str
    text: str
    spec: dict[str, Any]
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON data for the page's script."""
        return {
            "id": self.id,
            "kind": self.kind,
            "title": self.title,
            "text": self.text,
            "spec": self.spec,
            "columns": [[column.name, column.title] for column in self.columns],
            "rows": [list(row) for row in self.rows],
        }


#: Columns of every chart with one value and its interval for each case.
CASE = Column("case", "case")
SERIES = Column("series", "path")
SOURCE = Column("source", "source")
AT_LEAST = Column("least", "at least")

MEASURED = "measured"

#: The mark of a second value, as a text: series have shapes of their own.
_CROSS = "\u00d7"


def interval_columns(x: Column, y: Column) -> tuple[Column, ...]:
    """Returns the columns that ``interval_spec`` draws: ``case series x y low high least source``."""
    low, high = Column("low", f"{y.title}, low"), Column("high", f"{y.title}, high")
    return (CASE, SERIES, x, y, low, high, AT_LEAST, SOURCE)


def interval_spec(
    x: Column,
    y: Column,
    rows: Sequence[Sequence[Any]],
    order: Sequence[str],
    *,
    log_x: bool = False,
    equal: bool = False,
    beside: Column | None = None,
    extra: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Returns a chart of marks with intervals over ``x``, one line a series; published values are hollow diamonds.

    Args:
        rows: the data in the order of ``interval_columns``.
        order: all series of the page.
        log_x: whether the axis is logarithmic, with a tick at every value.
        equal: whether a thin line at y = x is drawn.
        beside: a second value of each point, drawn as a cross; it follows the other columns in ``rows``.
        extra: further layers.
    """
    series = sorted({row[1] for row in rows if row[7] == MEASURED}, key=order.index)
    scales = theme.series_scales(series, order)
    legend = {"title": None}
    colour = {"field": "series", "type": "nominal", "scale": scales["color"], "legend": legend}
    values = sorted({row[2] for row in rows})
    x_axis: dict[str, Any] = {"title": x.title}
    x_scale: dict[str, Any] = {"zero": True}
    if log_x:
        x_axis |= {"values": values, "format": "d"}
        x_scale = {"type": "log", "base": 2, "padding": 12, "nice": False}
    # With the line at y = x both axes begin at zero.
    drawn = [number for row in rows for number in (*row[3:6], *row[8:])]
    y_scale, y_title = y_axis(
        [] if equal else drawn, y.title if beside is None else f"{y.title}; {_CROSS}: {beside.title}"
    )
    at = {
        "x": {"field": x.name, "type": "quantitative", "scale": x_scale, "axis": x_axis},
        "y": {"field": y.name, "type": "quantitative", "scale": y_scale, "axis": {"title": y_title}},
    }
    tooltip = [
        {"field": column.name, "title": column.title} for column in interval_columns(x, y) if column is not AT_LEAST
    ]
    measured = [{"filter": f"datum.source === '{MEASURED}'"}]
    published = [{"filter": f"datum.source !== '{MEASURED}'"}]
    layers: list[dict[str, Any]] = [*extra]
    if equal:
        greatest = max(values, default=1.0)
        line = [{x.name: 0, y.name: 0}, {x.name: greatest, y.name: greatest}]
        layers.append(
            {
                "data": {"values": line},
                "mark": {"type": "line", "color": theme.DIM, "strokeDash": [1, 3]},
                "encoding": at,
            }
        )
    layers += [
        {
            "transform": measured,
            "mark": {"type": "line", "strokeWidth": 1.5},
            "encoding": {
                **at,
                "color": colour,
                "strokeDash": {
                    "field": "series",
                    "type": "nominal",
                    "scale": scales["strokeDash"],
                    "legend": legend,
                },
            },
        },
        {
            "transform": [*measured, {"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "errorbar", "ticks": {"size": 7}, "thickness": 1.5},
            "encoding": {
                "x": at["x"],
                "y": {"field": "low", "type": "quantitative", "title": y_title, "scale": y_scale},
                "y2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "transform": measured,
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {
                **at,
                "color": colour,
                "shape": {"field": "series", "type": "nominal", "scale": scales["shape"], "legend": legend},
                "tooltip": tooltip,
            },
        },
        {
            "transform": [*measured, {"filter": "datum.least === true"}],
            "mark": {"type": "text", "text": "≥", "dx": -9, "dy": -7},
            "encoding": at,
        },
    ]
    if beside is not None:
        across = {"field": beside.name, "type": "quantitative", "scale": y_scale, "title": y_title}
        layers.append(
            {
                "transform": [*measured, {"filter": f"isValid(datum.{beside.name})"}],
                "mark": {"type": "text", "text": _CROSS, "fontSize": 16},
                "encoding": {"x": at["x"], "y": across, "color": colour},
            }
        )
        tooltip.append({"field": beside.name, "title": beside.title})
    if any(row[7] != MEASURED for row in rows):
        marks = {"type": "point", "shape": "diamond", "filled": False, "size": 130, "strokeWidth": 1.5}
        layers += [
            {"transform": published, "mark": {**marks, "color": theme.DIM}, "encoding": {**at, "tooltip": tooltip}},
            {
                "transform": published,
                "mark": {"type": "text", "align": "left", "dx": 9, "color": theme.DIM},
                "encoding": {**at, "text": {"field": "series"}},
            },
        ]
    return {"height": 300, "layer": layers}


def y_axis(values: Sequence[Any], title: str) -> tuple[dict[str, Any], str]:
    """Returns a scale and the axis' title. Where values lie far apart, the scale is logarithmic, as the title says."""
    known = [float(value) for value in values if isinstance(value, int | float) and isfinite(value)]
    if known and min(known) > 0 and max(known) / min(known) > LOG_RATIO:
        return {"type": "log", "nice": True}, f"{title} (logarithmic)"
    return {"zero": True, "nice": True}, title
