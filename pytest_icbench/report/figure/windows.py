# SPDX-License-Identifier: BSD-3-Clause
"""The chart of a case's windows over time: the page fills it in for the case that the reader chooses. Pure."""

from __future__ import annotations

from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.chart import CASE, HAS_INTERVAL, Column, Figure

_X = {"field": "seconds", "type": "quantitative", "axis": {"title": "seconds from the first launch", "tickCount": 8}}
_Y = {"field": "value", "type": "quantitative", "scale": {"zero": False, "nice": True}, "axis": {"title": "@unit"}}
_BLUE, _VERMILION = theme.COLOURS[0], theme.COLOURS[1]


def _spec() -> dict[str, Any]:
    """Returns the specification in which the page replaces ``@unit @value @low @high``."""
    band = {"low": "@low", "high": "@high", "value": "@value"}
    tooltip = [
        {"field": "launch", "title": "launch"},
        {"field": "seconds", "title": "seconds"},
        {"field": "value", "title": "@unit"},
        {"field": "disturbed", "title": "disturbed by the host"},
    ]
    return {
        "layer": [
            {
                "data": {"values": [band]},
                "transform": [HAS_INTERVAL],
                "mark": {"type": "rect", "color": theme.DIM, "opacity": 0.18},
                "encoding": {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": [band]},
                "transform": [{"filter": "isValid(datum.value)"}],
                "mark": {"type": "rule", "color": theme.DIM, "strokeDash": [6, 3]},
                "encoding": {"y": {"field": "value", "type": "quantitative"}},
            },
            {
                "mark": {"type": "line", "color": _BLUE, "strokeWidth": 1},
                "encoding": {"x": _X, "y": _Y, "detail": {"field": "launch"}},
            },
            {
                "transform": [{"filter": "!datum.disturbed"}],
                "mark": {"type": "point", "filled": True, "size": 18, "color": _BLUE, "opacity": 1},
                "encoding": {"x": _X, "y": _Y, "tooltip": tooltip},
            },
            {
                "transform": [{"filter": "datum.disturbed"}],
                "mark": {"type": "point", "shape": "M-1,-1L1,1M1,-1L-1,1", "size": 30, "color": _VERMILION},
                "encoding": {"x": _X, "y": _Y, "tooltip": tooltip},
            },
        ],
    }


WINDOWS = Figure(
    id="windows",
    kind="windows",
    height=260,
    title="Windows over time",
    text="",
    spec=_spec(),
    columns=(
        CASE,
        Column("launch", "launch"),
        Column("seconds", "seconds"),
        Column("value", "@unit"),
        Column("disturbed", "disturbed by the host"),
    ),
    rows=(),
)
