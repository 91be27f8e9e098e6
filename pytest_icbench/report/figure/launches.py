# SPDX-License-Identifier: BSD-3-Clause
"""Launches as strips: a dot a launch, the median and its interval, relative to the median. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import in_order, main_figure, main_unit, path_of, short, traffic
from pytest_icbench.display.chart import CASE, HAS_INTERVAL, RATIO_AS_CHANGE, SERIES, Column, Figure
from pytest_icbench.model.measurement import Result
from pytest_icbench.wording import grouped, signed_percent

#: The fewest launches for which a strip is drawn.
FEWEST = 3
#: The greatest number of charts on a page: those with the widest strips.
MOST = 40
_STEP = 34
LEGEND = (
    "Dots: launches; vertical: the median; bar: its interval, which is wider than the dots where launches depend on"
    " each other, and where a baseline's sessions differ."
)

_COLUMNS = (
    CASE,
    SERIES,
    Column("label", "row"),
    Column("launch", "launch"),
    Column("ratio", "over the median"),
    Column("low", "interval, low, over the median"),
    Column("high", "interval, high, over the median"),
    Column("value", "value"),
    Column("shown", "median"),
)


def launch_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each traffic and metric: a row a path, a dot a launch."""
    groups = grouped(
        (result for result in results if not result.figures.BRACKETED and len(_values(result)) >= FEWEST),
        lambda result: (result.dimension, result.metric, traffic(result)),
    )
    drawn = []
    for (_, metric, key), group in groups.items():
        ordered = in_order(group, order)
        rows = tuple(row for result in ordered for row in _rows(result))
        spread = max(row[4] for row in rows) - min(row[4] for row in rows)
        drawn.append((spread, metric, key, ordered, rows))
    least = min(sorted((item[0] for item in drawn), reverse=True)[:MOST], default=0.0)
    figures = []
    for place, (_, metric, key, group, rows) in enumerate([item for item in drawn if item[0] >= least][:MOST]):
        value = group[0].figures.TITLE.format(metric=metric)
        figures.append(
            Figure(
                id=f"launches-{place}",
                kind="launches",
                title=f"Launches, {value} relative to the median: {key.say()}",
                text=LEGEND,
                aria=_spans(group),
                spec=_spec(rows, order),
                columns=_COLUMNS,
                rows=rows,
                height=_STEP * len(group),
            )
        )
    return figures


def _values(result: Result) -> list[tuple[int, float]]:
    """Returns the number and the value of each valid launch; empty without a main value."""
    if main_figure(result) is None:
        return []
    launches = [launch for launch in result.per_launch if launch.invalid is None]
    values = [(launch.index, result.figures.of_launch(launch)) for launch in launches]
    return [(index, value) for index, value in values if value is not None]


def _rows(result: Result) -> list[tuple[Any, ...]]:
    main, (unit, factor) = main_figure(result), main_unit(result)
    if not main:
        return []
    ends = [None if end is None else _digits(end / main) for end in (main.low, main.high)]
    shown = f"{short(main * factor)} {unit}"
    return [
        (
            result.case,
            path_of(result),
            path_of(result),
            index,
            _digits(value / main),
            *ends,
            _digits(value * factor),
            shown,
        )
        for index, value in _values(result)
    ]


def _digits(value: float) -> float:
    return float(f"{value:.5g}")


def _spans(group: Sequence[Result]) -> str:
    """Returns the caption in words for readers who cannot see the chart."""
    sentences = []
    for result in group:
        main = main_figure(result)
        if main:
            values = [value / main for _, value in _values(result)]
            sentences.append(f"{path_of(result)}: {signed_percent(min(values))} to {signed_percent(max(values))} %.")
    return " ".join([*sentences, LEGEND])


def _spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str]) -> dict[str, Any]:
    series = list(dict.fromkeys(row[1] for row in rows))
    scales = theme.series_scales(series, order)
    colour = {"field": "series", "type": "nominal", "scale": scales["color"], "legend": None}
    ratios = [value for row in rows for value in row[4:7] if value is not None]
    low, high = min(ratios), max(ratios)
    wide = low > 0 and high / low > 10
    span = max(high - low, 0.02)
    if wide:
        scale: dict[str, Any] = {"type": "log", "domain": [low / 1.05, high * 1.05], "nice": True}
    else:
        scale = {"zero": False, "domain": [low - span * 0.04, high + span * 0.04], "nice": False}
    x = {
        "field": "ratio",
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": "a launch over the median", "labelExpr": RATIO_AS_CHANGE, "tickCount": 5},
    }
    y = {"field": "label", "type": "nominal", "sort": series, "axis": None}
    tooltip = [{"field": column.name, "title": column.title} for column in _COLUMNS if column.name != "label"]
    first = {"aggregate": [{"op": "min", "field": name, "as": name} for name in ("low", "high", "shown")]}
    by_series = [{**first, "groupby": ["label", "series"]}]
    label = {"type": "text", "baseline": "middle", "dy": -9, "fontSize": 12}
    return {
        "layer": [
            {"data": {"values": [{"ratio": 1}]}, "mark": {"type": "rule", "color": theme.DIM}, "encoding": {"x": x}},
            {
                "transform": [*by_series, HAS_INTERVAL],
                "mark": {"type": "bar", "height": 9, "opacity": 0.3, "yOffset": 8},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 40, "opacity": 0.85, "yOffset": 8},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
            },
            {
                "transform": by_series,
                "mark": {**label, "align": "left", "dx": 4},
                "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "label"}},
            },
            {
                "transform": by_series,
                "mark": {**label, "align": "right", "dx": -4, "color": theme.DIM},
                "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "shown"}},
            },
        ]
    }
