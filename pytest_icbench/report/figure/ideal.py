# SPDX-License-Identifier: BSD-3-Clause
"""What cores or pairs would carry if each one added as much as the first, as a layer of charts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.axes import grouped, short
from pytest_icbench.display.chart import Column

#: The sentences about the lines in a chart's text; the second where they are those of ``benchmark_lines``.
IDEAL = "Dotted: what it would be if each added as much as the first."
BENCHMARK = "Dotted: what the best path carries through one function, times their number."
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
    series = grouped(rows, lambda row: row[1]).values()
    return _lines([(of_one[0], of_one[-1][2]) for of_one in series], rows, order, x, y)


def single_bests(
    rows: Sequence[tuple[Any, ...]], function_of: Mapping[str, str | None]
) -> dict[str, tuple[Any, ...]] | None:
    """Returns the row of each function's best path with one function; None unless each function has one.

    Args:
        function_of: the function of each case.
    """
    bests: dict[str, tuple[Any, ...]] = {}
    for function, of_one in grouped(rows, lambda row: function_of.get(row[0])).items():
        singles = [row for row in of_one if row[2] == 1]
        if function is None or not singles:
            return None
        bests[function] = max(singles, key=lambda row: float(row[3]))
    return bests


def benchmark_lines(
    rows: Sequence[tuple[Any, ...]],
    function_of: Mapping[str, str | None],
    bests: Mapping[str, tuple[Any, ...]],
    order: Sequence[str],
    x: Column,
    y: Column,
) -> dict[str, Any]:
    """Returns a layer of one dotted line for each function: what its best path carries, times the number."""
    most = {function: max(row[2] for row in rows if function_of.get(row[0]) == function) for function in bests}
    return _lines([(best, most[function]) for function, best in bests.items()], rows, order, x, y)


def benchmark_growth(
    rows: Sequence[tuple[Any, ...]], function_of: Mapping[str, str | None], bests: Mapping[str, tuple[Any, ...]]
) -> str:
    """Returns what the greatest number of functions of each path carries of the line."""
    sentences = []
    for name, of_one in grouped(rows, lambda row: row[1]).items():
        last, best = of_one[-1], bests[str(function_of[of_one[-1][0]])]
        if last[2] > 1 and best[3]:
            share = last[3] / (best[3] * last[2])
            sentences.append(f"{name}: {last[2]} functions carry {short(share * 100)} % of the line.")
    return " ".join(sentences)


def _lines(
    series_ends: Sequence[tuple[tuple[Any, ...], float]],
    rows: Sequence[tuple[Any, ...]],
    order: Sequence[str],
    x: Column,
    y: Column,
) -> dict[str, Any]:
    """Returns a layer of lines from 0 through a row each, from that row on.

    Args:
        series_ends: the rows, each with where its line ends.
    """
    points = []
    cap = MOST * max(float(row[3]) for row in rows)
    for first, last in series_ends:
        share = first[3] / first[2]
        if share:
            end = min(float(last), cap / share)
            steps = sorted({row[2] for row in rows if first[2] <= row[2] < end} | {end})
            points += [{"series": first[1], x.name: step, y.name: share * step} for step in steps]
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
