# SPDX-License-Identifier: BSD-3-Clause
"""Heat maps over packet size and burst: one for each path. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import main_figure, main_unit, path_of, short, traffic, value_text
from pytest_icbench.display.chart import CASE, SERIES, Column, Figure
from pytest_icbench.model.measurement import Result
from pytest_icbench.wording import grouped

#: The fewest sizes and the fewest bursts of a chart: lines show fewer of them better.
FEWEST_SIZES, FEWEST_BURSTS = 2, 3
#: The greatest number of charts on a page.
MOST = 60
#: Height of a row of cells.
_STEP = 26
#: The ends of the colour scale. It is the same in light and dark mode, because it is the background of text.
_RANGE = ("#dce6f0", "#08306b")


def heat_maps(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each path and metric with several sizes and bursts."""
    groups = grouped(
        (result for result in results if main_figure(result) is not None and not result.rates.back_to_back),
        lambda result: (
            result.dimension,
            result.metric,
            path_of(result),
            traffic(result)._replace(packet_size=0, burst=0),
        ),
    )
    figures: list[Figure] = []
    for (_, metric, path, key), group in sorted(groups.items(), key=lambda item: order.index(item[0][2])):
        sizes = {traffic(result).packet_size for result in group}
        bursts = {traffic(result).burst for result in group}
        if len(sizes) < FEWEST_SIZES or len(bursts) < FEWEST_BURSTS or len(figures) == MOST:
            continue
        figures_of = group[0].figures
        value = figures_of.TITLE.format(metric=metric)
        unit, factor = main_unit(group[0])
        last = {_place(result): result for result in group}  # the last of several results of a case counts
        rows = tuple(_row(result, factor) for _, result in sorted(last.items()))
        figures.append(
            Figure(
                id=f"heat-{len(figures)}",
                kind="heat",
                title=f"{path}: {value} in {unit} by packet size and burst, {key.say('packet_size', 'burst')}",
                text=_text(rows, unit, least_wins=figures_of.LESS_IS_BETTER),
                spec=_spec(rows, f"{value}, {unit}"),
                columns=(
                    CASE,
                    SERIES,
                    Column("size", "packet size, bytes with FCS"),
                    Column("burst", "burst"),
                    Column("value", f"{value}, {unit}"),
                    Column("text", "shown"),
                ),
                rows=rows,
                height=_STEP * len(sizes),
            )
        )
    return figures


def _place(result: Result) -> tuple[float, int]:
    return traffic(result).packet_size, traffic(result).burst


def _row(result: Result, factor: float) -> tuple[Any, ...]:
    size, burst = _place(result)
    value = (main_figure(result) or 0.0) * factor
    return result.case, path_of(result), size, burst, float(f"{value:.5g}"), value_text(result)


def _text(rows: Sequence[tuple[Any, ...]], unit: str, *, least_wins: bool) -> str:
    best = (min if least_wins else max)(rows, key=lambda row: float(row[4]))
    worst = (max if least_wins else min)(rows, key=lambda row: float(row[4]))
    return (
        f"Best: {short(best[4])} {unit} at {best[2]} B in bursts of {best[3]}; "
        f"worst: {short(worst[4])} {unit} at {worst[2]} B in bursts of {worst[3]}."
    )


def _spec(rows: Sequence[tuple[Any, ...]], title: str) -> dict[str, Any]:
    values = [float(row[4]) for row in rows]
    low, high = min(values), max(values)
    x = {"field": "burst", "type": "ordinal", "axis": {"title": "burst", "orient": "bottom", "labelAngle": 0}}
    y = {"field": "size", "type": "ordinal", "axis": {"title": "packet size, bytes with FCS"}}
    log = low > 0 and high / low > 10
    colour = {
        "field": "value",
        "type": "quantitative",
        "legend": None,
        "scale": {
            "type": "log" if log else "linear",
            "range": list(_RANGE),
            "domain": [low, high if high > low else low + 1],
        },
    }
    # Text is dark on the light half of the range.
    middle = (low * high) ** 0.5 if log else (low + high) / 2
    tooltip = [{"field": "case", "title": "case"}, {"field": "value", "title": title}]
    return {
        "layer": [
            {
                "mark": {"type": "rect", "stroke": theme.GRID},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
            },
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    "x": x,
                    "y": y,
                    "text": {"field": "text"},
                    "color": {
                        "condition": {"test": f"datum.value <= {middle}", "value": "#1a1a1a"},
                        "value": "#ffffff",
                    },
                },
            },
        ]
    }
