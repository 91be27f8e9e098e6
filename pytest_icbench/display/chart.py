# SPDX-License-Identifier: BSD-3-Clause
"""A chart: a Vega-Lite specification without its data, and the data as a table. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, log2
from typing import Any

from pytest_icbench.display import theme

#: Ratio of the greatest to the least value above which an axis is logarithmic.
LOG_RATIO = 50.0
#: Distance of two labels on a logarithmic axis, as a part of its length, below which one goes a line lower.
NEAR = 0.11


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a chart's data: ``name`` of the field, and ``title`` in tables and CSV (with its unit)."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Axes:
    """The columns of a chart's two axes, and the scale of the horizontal one.

    ``equal``: whether both have the scale of the values, and a thin line at y = x is drawn; otherwise the horizontal
    axis is logarithmic, with a tick at every value.
    """

    x: Column
    y: Column
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its data.

    Attributes:
        id: id of the element, unique on a page.
        kind: the section that it belongs to.
        text: the caption: one finding, or what marks mean.
        spec: Vega-Lite without ``data``, ``width`` and ``height``. An object ``{"@scale": axis}`` is the scale of the
            values, and ``@kind`` at the end of a title says whether it is logarithmic: the page fills in both. It is
            empty for a kind that ``charts.js`` shows as markup.
        columns, rows: the data. The first column is the case's id, by which the page filters.
        aria: its content in words, for readers who cannot see it; by default the caption.
        values: the columns that determine the scale ``@scale``. A section has one scale, and published values do
            not count.
        height: the height of the plot in pixels.
        choices: other columns that can take the place of ``values``: a name with them; the first name is the default's.
    """

    id: str
    kind: str
    title: str
    text: str
    spec: dict[str, Any]
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    aria: str = ""
    values: tuple[str, ...] = ()
    height: int = 300
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON data for the page's script."""
        return {
            "id": self.id,
            "kind": self.kind,
            "title": self.title,
            "text": self.text,
            "aria": self.aria or self.text,
            "values": list(self.values),
            "height": self.height,
            "choices": [[name, list(columns)] for name, columns in self.choices],
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

#: The label of a ratio on an axis: its change in per cent.
RATIO_AS_CHANGE = "datum.value == 1 ? '0 %' : format((datum.value - 1) * 100, '+,.6~r') + ' %'"
#: Keeps the rows that have an interval.
HAS_INTERVAL = {"filter": "isValid(datum.low) && isValid(datum.high)"}
#: The mark of a second value. It is a text, since each series has another shape.
CROSS = "\u00d7"
#: Pixels between the intervals of two series at one place, and the greatest distance of all from its middle.
_APART_PX, _MOST_APART_PX = 7.0, 18.0


def tooltips(columns: Iterable[Column]) -> list[dict[str, str]]:
    """Returns the fields of the row that a mark shows."""
    return [{"field": column.name, "title": column.title} for column in columns]


def interval_columns(x: Column, y: Column) -> tuple[Column, ...]:
    """Returns the columns that ``interval_spec`` draws: ``case series x y low high least source``."""
    low, high = Column("low", f"{y.title}, low"), Column("high", f"{y.title}, high")
    return (CASE, SERIES, x, y, low, high, AT_LEAST, SOURCE)


def interval_spec(
    axes: Axes,
    rows: Sequence[Sequence[Any]],
    order: Sequence[str],
    *,
    cross: Column | None = None,
    extra: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Returns a chart of marks with intervals over an axis, one line a series; published values are hollow diamonds.

    Args:
        rows: the data in the order of ``interval_columns``.
        order: all series of the page.
        cross: a second value of each point, drawn as a cross; it follows the other columns in ``rows``.
        extra: further layers, below these.
    """
    x, y = axes.x, axes.y
    series = sorted({row[1] for row in rows if row[7] == MEASURED}, key=order.index)
    look = theme.series_scales(series, order)
    colour = theme.encoding("color", look)
    values = sorted({row[2] for row in rows})
    x_axis: dict[str, Any] = {"title": x.title, "labelSeparation": 6}
    x_scale: dict[str, Any]
    if axes.equal:
        x_axis["title"] = f"{x.title}@kind"
        x_scale = {"@scale": x.name}
    else:
        x_axis |= {"values": values, "labelExpr": _staggered(values), "labelOverlap": False}
        x_scale = {"type": "log", "base": 2, "padding": 24, "nice": False}
    y_scale = {"@scale": y.name}
    # A longer title would not fit along the axis; the caption explains the cross.
    y_title = (y.title if cross is None else f"{y.title}; {CROSS}: {cross.name}") + "@kind"
    at = {
        "x": {"field": x.name, "type": "quantitative", "scale": x_scale, "axis": x_axis},
        "y": {"field": y.name, "type": "quantitative", "scale": y_scale, "axis": {"title": y_title}},
    }
    tooltip = [
        {"field": column.name, "title": column.title} for column in interval_columns(x, y) if column is not AT_LEAST
    ]
    measured = [{"filter": f"datum.source === '{MEASURED}'"}]
    published = [{"filter": f"datum.source !== '{MEASURED}'"}]
    # A point that is moved aside would lie above or below the line of equal values.
    aside = {} if axes.equal else {"xOffset": {"expr": offsets(series)}}
    layers: list[dict[str, Any]] = [*extra]
    if axes.equal:
        least, greatest = min(values, default=0.0), max(values, default=1.0)
        line = [{x.name: end, y.name: end} for end in (least, greatest)]
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
            "mark": {"type": "line", "strokeWidth": 1.5, **aside},
            "encoding": {**at, "color": colour, "strokeDash": theme.encoding("strokeDash", look)},
        },
        {
            "transform": [*measured, HAS_INTERVAL],
            "mark": {"type": "rule", "strokeWidth": 1.5, "strokeCap": "round", **aside},
            "encoding": {"x": at["x"], "y": {**at["y"], "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "transform": measured,
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, **aside},
            "encoding": {**at, "color": colour, "shape": theme.encoding("shape", look), "tooltip": tooltip},
        },
        {
            "transform": [*measured, {"filter": "datum.least === true"}],
            "mark": {"type": "text", "text": "≥", "dx": -9, **aside},
            "encoding": {"x": at["x"], "y": {**at["y"], "field": "low"}, "color": colour},
        },
    ]
    if cross is not None:
        layers.append(
            {
                "transform": [*measured, {"filter": f"isValid(datum.{cross.name})"}],
                "mark": {"type": "text", "text": CROSS, "fontSize": 16, **aside},
                "encoding": {"x": at["x"], "y": {**at["y"], "field": cross.name}, "color": colour},
            }
        )
        tooltip.append({"field": cross.name, "title": cross.title})
    if any(row[7] != MEASURED for row in rows):
        marks = {"type": "point", "shape": "diamond", "filled": False, "size": 130, "strokeWidth": 1.5}
        layers.append(
            {"transform": published, "mark": {**marks, "color": theme.DIM}, "encoding": {**at, "tooltip": tooltip}}
        )
    return {"layer": layers}


def with_own(order: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Returns all series of the page, followed by the series that only these rows have."""
    return list(dict.fromkeys([*order, *(str(row[1]) for row in rows)]))


def offsets(series: Sequence[str]) -> str:
    """Returns the expression that moves the marks of a series aside, so that intervals at one place can be seen."""
    if len(series) < 2:
        return "0"
    step = min(_APART_PX, 2 * _MOST_APART_PX / (len(series) - 1))
    return f"(indexof({json.dumps(list(series))}, datum.series) - {(len(series) - 1) / 2:g}) * {step:g}"


def _staggered(values: Sequence[float]) -> str:
    """Returns the expression of the labels on a logarithmic axis: one too near to the last goes a line lower."""
    if not values:
        return "datum.label"
    span = log2(max(values) / min(values)) or 1.0
    last_of_line: list[float] = []
    texts = {}
    for value in values:
        near = [line for line, last in enumerate(last_of_line) if log2(value / last) >= NEAR * span]
        line = near[0] if near else len(last_of_line)
        last_of_line[line : line + 1] = [value]
        # Vega trims lines, and browsers ignore a line without characters.
        texts[f"{value:g}"] = [*["\u200b"] * line, f"{value:g}"]
    return f"({json.dumps(texts)})[toString(datum.value)]"


def y_axis(values: Sequence[Any], title: str) -> tuple[dict[str, Any], str]:
    """Returns a scale and the axis' title. If the values differ widely, the scale is logarithmic; the title says so."""
    known = [float(value) for value in values if isinstance(value, int | float) and isfinite(value)]
    if known and min(known) > 0 and max(known) / min(known) > LOG_RATIO:
        return {"type": "log", "nice": True}, f"{title} (logarithmic)"
    return {"zero": True, "nice": True}, title
