# SPDX-License-Identifier: BSD-3-Clause
"""The look of charts: colours, marks, Vega-Lite's configuration. Pure.

Colours are custom properties of the page's style sheet, so that dark mode and print change them without a new drawing.
The value after the comma is for a chart that is saved alone. They are Okabe and Ito's eight (2008), which readers with
every kind of colour vision can distinguish. Marks and dashes repeat the information.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

INK = "var(--ic-ink, #1a1a1a)"
DIM = "var(--ic-dim, #595959)"
GRID = "var(--ic-grid, #d9d9d9)"

#: Blue, vermilion, green, black, purple, orange, sky blue, yellow: those with most contrast to white come first.
_OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#1a1a1a", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
COLOURS = tuple(f"var(--ic-c{place}, {colour})" for place, colour in enumerate(_OKABE_ITO))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 2], [10, 4], [1, 3], [6, 2, 1, 2, 1, 2])


def series_scales(series: Sequence[str], order: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns scales for ``color``, ``shape`` and ``strokeDash``: a series looks the same in every chart of a page.

    Args:
        series: the series of the chart.
        order: all series of the page.
    """
    places = [order.index(name) for name in series]
    return {
        "color": {"domain": list(series), "range": [COLOURS[place % len(COLOURS)] for place in places]},
        "shape": {"domain": list(series), "range": [SHAPES[place % len(SHAPES)] for place in places]},
        "strokeDash": {"domain": list(series), "range": [DASHES[place % len(DASHES)] for place in places]},
    }


CONFIG: dict[str, Any] = {
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
