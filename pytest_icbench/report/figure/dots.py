# SPDX-License-Identifier: BSD-3-Clause
"""Dot plots (Cleveland) of the first screen: the paths of one traffic with intervals, the best first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import Traffic, main_figure, main_unit, path_of, traffic, value_text
from pytest_icbench.display.chart import CASE, CROSS, HAS_INTERVAL, MEASURED, SERIES, SOURCE, Column, Figure
from pytest_icbench.display.points import scaled
from pytest_icbench.kinds.registry import KINDS, kind_of
from pytest_icbench.model.measurement import Result
from pytest_icbench.report.answer import first_traffics
from pytest_icbench.report.overview import REFERENCES, contestants
from pytest_icbench.report.remarks import shares_cpus
from pytest_icbench.wording import grouped

#: Width of a row and of the column of values, in pixels.
ROW_PX, VALUES_PX = 22, 172

#: How a path is drawn.
_PLAIN, _AT_LEAST, _REFERENCE = "measured", "at least", "reference link"


#: What follows the value of a path whose endpoints share CPUs.
_SHARED = " *"
#: What the marks mean, for rates and for round trips.
_CAPTION = ("bar: 95 % interval; ▷ at least", f"● p50, bar: 95 %, {CROSS} p99")
#: The section of each dimension.
_SECTIONS = {kind.figures.DIMENSION: kind.ranked.section for kind in KINDS if kind.ranked is not None}


def dot_charts(results: Sequence[Result], order: Sequence[str], dimension: str) -> list[Figure]:
    """Returns a chart for each of the first traffics: rates flat out, round trips, or rates of applications.

    ``dimension``: the dimension of the results that the charts show.
    """
    shown = [
        result
        for result in contestants(results)
        if result.dimension == dimension
        and result.figures.is_capability(result.metric)
        and main_figure(result) is not None
    ]
    groups = grouped(shown, lambda result: (result.metric, result.placement, traffic(result)))
    keys = first_traffics(shown)
    order = list(dict.fromkeys([*order, *map(path_of, shown)]))  # the name of a single run is left out
    kind = _SECTIONS.get(dimension, "rates")
    return [_chart(f"{kind}-{place}", kind, key, groups[key], order) for place, key in enumerate(keys)]


def _chart(
    name: str, kind: str, key: tuple[str, str, Traffic], group: Sequence[Result], order: Sequence[str]
) -> Figure:
    latency = group[0].figures.LESS_IS_BETTER
    unit, factor = main_unit(group[0])
    metric, _, load = key
    columns = [
        CASE,
        SERIES,
        Column("value", f"{group[0].figures.TITLE if latency else metric}, {unit}"),
        Column("low", f"{unit}, low"),
        Column("high", f"{unit}, high"),
        Column("kind", "kind"),
        Column("label", "value as text"),
        SOURCE,
    ]
    if latency:
        columns.append(Column("p99", f"99th percentile RTT, {unit}"))
    rows = tuple(_row(result, factor) for result in _ordered(group))
    left_out = () if load.pairs > 1 else ("pairs",)
    rest = load.say("packet_size", *left_out, *(("rate",) if load.rate == "max" else ()))
    head = "Round trip" if latency else "Rate flat out" if metric == "frmol" else f"Rate ({metric})"
    traffic_text = load.say(*left_out) if load.load else f"{load.frames}, {rest}"
    best = rows[0]
    shared = "; * shared CPU" if any(row[6].endswith(_SHARED) for row in rows) else ""
    return Figure(
        id=name,
        kind=kind,
        title=f"{head}, {traffic_text} ({_CAPTION[latency]}{shared})",
        text="",
        aria=f"The first is {best[1]} with {best[6]}. " + " ".join(f"{row[1]}: {row[6]}." for row in rows),
        spec=_spec([row[1] for row in rows], order, f"{unit}@kind", latency=latency),
        columns=tuple(columns),
        rows=rows,
        values=("value", "low", "high", *(("p99",) if latency else ())),
        height=ROW_PX * len(rows),
    )


def _ordered(group: Sequence[Result]) -> list[Result]:
    """Returns the best result of each path: switches first, the best first, then reference links."""
    less_is_better = group[0].figures.LESS_IS_BETTER
    by_value = sorted(group, key=lambda result: float(main_figure(result) or 0.0), reverse=not less_is_better)
    best: dict[str, Result] = {}
    for result in by_value:
        best.setdefault(path_of(result), result)
    return sorted(best.values(), key=lambda result: result.switch in REFERENCES)


def _row(result: Result, factor: float) -> tuple[Any, ...]:
    main = main_figure(result)
    assert main is not None
    least = result.at_least
    drawn = _AT_LEAST if least else _REFERENCE if result.switch in REFERENCES else _PLAIN
    label = value_text(result)
    shared = _SHARED if shares_cpus(result) else ""
    low, high = (scaled(end, factor) for end in (main.low, main.high))
    row: tuple[Any, ...] = (result.case, path_of(result), scaled(main, factor), low, high, drawn)
    text, *tail = kind_of(result).mark(result, label)
    return (*row, text + shared, MEASURED, *tail)


def _spec(paths: Sequence[str], order: Sequence[str], title: str, *, latency: bool) -> dict[str, Any]:
    look = theme.series_scales(paths, order)
    colour = {"field": "series", "type": "nominal", "scale": look["color"], "legend": None}
    links = " || ".join(f"datum.value === '{name}' || indexof(datum.value, '{name} ') === 0" for name in REFERENCES)
    y = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(paths)},
        "axis": {
            "title": None,
            "ticks": False,
            "domain": False,
            "labelLimit": {"expr": "width < 450 ? 130 : 240"},
            "labelFontStyle": {"condition": {"test": links, "value": "italic"}, "value": "normal"},
            "labelPadding": 8,
        },
    }
    scale = {"@scale": "value", "range": [0, {"expr": f"width - {VALUES_PX}"}]}
    # The unit is below the values, at the height of the ticks' labels.
    unit = {"titleX": {"expr": f"width - {VALUES_PX - 10}"}, "titleY": 7, "titleAlign": "left", "titleBaseline": "top"}
    # The last label ends with the axis: the unit begins there.
    ticks = {"labelFlush": 24, "labelOverlap": "greedy", "labelSeparation": 8, "tickCount": 6}
    axis = {"title": title, "grid": True, **ticks, **unit}
    x = {"field": "value", "type": "quantitative", "scale": scale, "axis": axis}
    tooltip = [{"field": "series", "title": "path"}, {"field": "label", "title": "value"}]
    tooltip += [{"field": name, "title": f"interval, {name}"} for name in ("low", "high")]
    layers: list[dict[str, Any]] = [
        {
            "transform": [HAS_INTERVAL],
            "mark": {"type": "rule", "strokeWidth": 6, "opacity": 0.4, "strokeCap": "round"},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
        }
    ]
    if latency:
        tooltip.append({"field": "p99", "title": "99th percentile"})
        layers += [
            {
                "transform": [{"filter": "isValid(datum.p99)"}],
                "mark": {"type": "rule", "strokeWidth": 1, "strokeDash": [1, 3]},
                "encoding": {"x": x, "x2": {"field": "p99"}, "y": y, "color": colour},
            },
            {
                "transform": [{"filter": "isValid(datum.p99)"}],
                "mark": {"type": "text", "text": CROSS, "fontSize": 18, "baseline": "middle"},
                "encoding": {"x": {**x, "field": "p99"}, "y": y, "color": colour},
            },
        ]
    for drawn, mark in (
        (_PLAIN, {"shape": "circle", "filled": True, "size": 110}),
        (_AT_LEAST, {"shape": "triangle-right", "fill": theme.PAPER, "size": 110, "strokeWidth": 2}),
        (_REFERENCE, {"shape": "circle", "fill": theme.PAPER, "size": 90, "strokeWidth": 1.6}),
    ):
        layers.append(
            {
                "transform": [
                    {"filter": f"datum.kind === '{drawn}'"},
                    {
                        "calculate": f"datum.kind === '{_AT_LEAST}' && isValid(datum.low) ? datum.low : datum.value",
                        "as": "at",
                    },
                ],
                "mark": {"type": "point", "opacity": 1, **mark},
                "encoding": {"x": {**x, "field": "at"}, "y": y, "color": colour, "tooltip": tooltip},
            }
        )
    layers.append(
        {
            "mark": {"type": "text", "align": "left", "baseline": "middle", "fontSize": 12},
            "encoding": {"x": {"value": {"expr": f"width - {VALUES_PX - 10}"}}, "y": y, "text": {"field": "label"}},
        }
    )
    return {"view": {"stroke": None}, "layer": layers}
