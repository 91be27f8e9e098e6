# SPDX-License-Identifier: BSD-3-Clause
"""What cores or pairs would carry if each one added as much as the first, as a layer of charts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.report.axes import grouped, short
from pytest_icbench.report.figure import theme
from pytest_icbench.report.figure.figure import Column

#: The sentence about the lines in a chart's text.
IDEAL = "Dotted: what it would be if each added as much as the first."
#: Height at which the lines end, over the greatest value: beyond it they would flatten what was measured.
MOST = 1.4


def growth(rows: Sequence[tuple[Any, ...]], unit: str) -> str:
    """Returns what the last value is of the ideal one, for each series."""
    sentences = []
    for name, points in grouped(rows, lambda row: row[1]).items():
        first, last = points[0], points[-1]
        if last[2] > first[2] and first[3]:
            share = last[3] / (first[3] * last[2] / first[2])
            sentences.append(f"{name}: {last[2]} {unit}s carry {short(share * 100)} % of the ideal.")
    return " ".join(sentences)


def ideal_lines(rows: Sequence[tuple[Any, ...]], order: Sequence[str], x: Column, y: Column) -> dict[str, Any]:
    """Returns a layer of dotted lines: the value of each series' first point times the cores or pairs."""
    points = []
    cap = MOST * max(float(row[3]) for row in rows)
    for name, series_rows in grouped(rows, lambda row: row[1]).items():
        first, last = series_rows[0], series_rows[-1]
        share = first[3] / first[2]
        if share:
            end = min(float(last[2]), cap / share)
            steps = sorted({row[2] for row in rows if first[2] <= row[2] < end} | {end})
            points += [{"series": name, x.name: step, y.name: share * step} for step in steps]
    series = sorted({row[1] for row in rows}, key=list(order).index)
    colour = {"field": "series", "type": "nominal", "scale": theme.series_scales(series, order)["color"]}
    return {
        "data": {"values": points},
        "mark": {"type": "line", "strokeDash": [1, 4], "strokeWidth": 1.5, "strokeCap": "round", "clip": True},
        "encoding": {
            "x": {"field": x.name, "type": "quantitative"},
            "y": {"field": y.name, "type": "quantitative"},
            "color": {**colour, "legend": {"title": None}},
        },
    }
