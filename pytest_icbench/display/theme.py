# SPDX-License-Identifier: BSD-3-Clause
"""The look of charts: colours, marks, Vega-Lite's configuration. Pure.

Colours are custom properties of the page's style sheet, so that dark mode and print change them without a new drawing.
The value after the comma is for a chart that is saved alone. They are Okabe and Ito's eight (2008), which readers with
every kind of colour vision can distinguish, with the lightest three darkened to a contrast of 3:1 with white. Marks and
dashes repeat the information, and distinguish series of equal colour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from zlib import crc32

INK = "var(--ic-ink, #1a1a1a)"
DIM = "var(--ic-dim, #595959)"
GRID = "var(--ic-grid, #d9d9d9)"
#: Colours of verdicts by the names of ``Verdict.colour``.
VERDICTS = {
    "good": "var(--ic-good, #00664b)",
    "bad": "var(--ic-bad, #a33c00)",
    "warn": "var(--ic-warn, #7a5200)",
    "ink": INK,
}
PAPER = "var(--ic-paper, #ffffff)"

#: Blue, vermilion, green, black, purple, orange, sky blue, yellow.
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#1a1a1a", "#c46a9b", "#c07f00", "#3793cf", "#8f8400")
COLOURS = tuple(f"var(--ic-c{place}, {colour})" for place, colour in enumerate(LIGHT))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 2], [10, 4], [1, 3], [6, 2, 1, 2, 1, 2])
#: The switches by their colours. The ninth and later ones share a colour and have other marks and dashes.
_SWITCHES = ("ovs", "testpmd", "vpp", "direct", "snabb", "linux-bridge", "basicfwd", "sriov")
_SHARING = ("forward", "forward-raw", "veth")
#: Kinds of containers, which never share a chart with switches.
_CONTAINERS = ("lxc", "netns", "oci", "fork", "podman", "docker")
#: The distance to the first mark and dash of a switch that shares its colour.
_SHARED_LOOK = 4
#: Number of pairs of a mark and a dash. Their numbers have no common divisor, so counting both up gives all pairs.
_LOOKS = len(SHAPES) * len(DASHES)


def series_scales(series: Sequence[str], order: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns scales for ``color``, ``shape`` and ``strokeDash``: a series looks the same in every chart of a page.

    Args:
        series: the series of the chart.
        order: all series of the page.
    """
    looks = _looks(order)
    shown = [looks[name] for name in series]
    return {
        "color": {"domain": list(series), "range": [COLOURS[colour] for colour, _ in shown]},
        "shape": {"domain": list(series), "range": [SHAPES[look % len(SHAPES)] for _, look in shown]},
        "strokeDash": {"domain": list(series), "range": [DASHES[look % len(DASHES)] for _, look in shown]},
    }


#: Legends without dashes, which would fray the outlines of marks.
LEGEND: dict[str, Any] = {"title": None, "encoding": {"symbols": {"update": {"strokeDash": {"value": []}}}}}


def encoding(channel: str, scales: dict[str, dict[str, Any]], legend: dict[str, Any] | None = LEGEND) -> dict[str, Any]:
    """Returns the encoding of series by a channel of ``series_scales``."""
    return {"field": "series", "type": "nominal", "scale": scales[channel], "legend": legend}


def _looks(order: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Returns for each series the place of its colour, and the number of its mark and dash.

    They follow from the names, not from the order of the run. The first series of each switch gets the switch's look.
    """
    names = sorted(set(order))
    first_of = {_switch(name): name for name in reversed(names)}
    looks: dict[str, tuple[int, int]] = {}
    taken: set[tuple[int, int]] = set()
    for name in sorted(names, key=lambda name: (first_of[_switch(name)] != name, name)):
        colour, look = _own_look(_switch(name))
        free = next((number for number in range(look, look + _LOOKS) if (colour, number % _LOOKS) not in taken), look)
        looks[name] = colour, free % _LOOKS
        taken.add(looks[name])
    return looks


def _switch(series: str) -> str:
    """Returns the name of the switch at the beginning of a path."""
    for switch in sorted((*_SWITCHES, *_SHARING), key=len, reverse=True):
        if re.match(rf"{switch}(?![\w.])", series):
            return switch
    return re.split(r"[+: ]|-c\d", series)[0]


def _own_look(switch: str) -> tuple[int, int]:
    """Returns the place of a switch's colour and the number of its first mark and dash, which repeat the colour."""
    for names in (_SWITCHES, _CONTAINERS):
        if switch in names:
            return names.index(switch), names.index(switch)
    if burst := re.fullmatch(r"b(\d+)", switch):  # instead of a switch, in charts whose lines are the bursts of a path
        return int(burst[1]).bit_length() % len(COLOURS), int(burst[1]).bit_length()
    place = _SHARING.index(switch) if switch in _SHARING else crc32(switch.encode()) % len(COLOURS)
    return place, place + _SHARED_LOOK


CONFIG: dict[str, Any] = {
    "aria": False,  # a chart is one picture with a text alternative
    "background": None,
    "font": "system-ui, sans-serif",
    "padding": 4,
    "view": {"stroke": GRID},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": DIM,
        "tickColor": DIM,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelOverlap": True,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "labelLimit": 260,
        "orient": "bottom",
        "symbolSize": 90,
        "symbolStrokeWidth": 2,
        "symbolOpacity": 1,
    },
    "text": {"color": INK, "fontSize": 11},
    "rule": {"color": DIM},
}
