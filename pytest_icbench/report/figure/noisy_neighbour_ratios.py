# SPDX-License-Identifier: BSD-3-Clause
"""The effect of noisy neighbours: a row for each value of a case, with its ratio to launches without them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import in_order, path_of, short, traffic
from pytest_icbench.display.chart import CASE, HAS_INTERVAL, SERIES, Column, Figure, tooltips
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.noisy_neighbour import excludes_one
from pytest_icbench.wording import grouped

#: Height of a row: a line of text, and the interval below it.
_STEP = 36
_COLUMNS = (
    CASE,
    SERIES,
    Column("row", "row"),
    Column("value", "value"),
    Column("ratio", "with the noisy neighbour over without it"),
    Column("low", "low"),
    Column("high", "high"),
    Column("shown", "change"),
)
_LABEL = {"type": "text", "baseline": "middle", "dy": -9, "fontSize": 12}
_TEXT = (
    "Value with the noisy neighbour over value without it, with the interval; at the line nothing changed. Hollow: no"
    " change shown."
)


def noisy_neighbour_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each traffic that was measured with noisy neighbours."""
    affected = in_order(
        (result for result in results if result.frames.noisy_neighbour is not None and result.is_number), order
    )
    figures = []
    for place, (key, group) in enumerate(grouped(affected, traffic).items()):
        if rows := tuple(row for result in group for row in _rows(result)):
            title, height = f"With noisy neighbours: {key.say()}", _STEP * len(rows)
            figures.append(
                Figure(
                    f"noisy neighbours-{place}",
                    "noisy_neighbours",
                    title,
                    _TEXT,
                    _spec(rows),
                    _COLUMNS,
                    rows,
                    height=height,
                )
            )
    return figures


def _rows(result: Result) -> list[tuple[Any, ...]]:
    assert result.frames.noisy_neighbour is not None
    path = path_of(result)
    return [
        (
            result.case,
            path,
            f"{path}, {name}",
            name,
            *(None if end is None else float(f"{end:.4g}") for end in (ratio.value, ratio.low, ratio.high)),
            f"{short(ratio.value)} times" if excludes_one(ratio) else "no change shown",
        )
        for name, ratio in result.frames.noisy_neighbour.ratios.items()
    ]


def _spec(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    ends = [end for row in rows for end in row[4:7] if end]
    names = [row[2] for row in rows]
    y = {
        "field": "row",
        "type": "nominal",
        "sort": names,
        "axis": None,
        "scale": {"paddingInner": 0, "paddingOuter": 0},
    }
    x = {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [min(1.0, *ends) / 1.1, max(1.0, *ends) * 1.1], "nice": False},
        "axis": {"title": "times as much as without the noisy neighbour", "format": "~g", "tickCount": 6},
    }
    colour = {"value": theme.COLOURS[0]}
    return {
        "layer": [
            {"data": {"values": [{"ratio": 1}]}, "mark": {"type": "rule", "color": theme.DIM}, "encoding": {"x": x}},
            {
                "transform": [HAS_INTERVAL],
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5, "yOffset": 8},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
            },
            {
                "mark": {"type": "point", "size": 70, "opacity": 1, "strokeWidth": 1.5, "yOffset": 8},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "fill": {
                        "condition": {"test": "datum.shown === 'no change shown'", "value": theme.PAPER},
                        **colour,
                    },
                    "tooltip": tooltips(_COLUMNS),
                },
            },
            {
                "mark": {**_LABEL, "align": "left", "dx": 4, "limit": {"expr": "width - 120"}},
                "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "row"}},
            },
            {
                "mark": {**_LABEL, "align": "right", "dx": -4, "fontWeight": "bold"},
                "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "shown"}},
            },
        ]
    }
