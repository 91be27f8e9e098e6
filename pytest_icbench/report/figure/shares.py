# SPDX-License-Identifier: BSD-3-Clause
"""Functions with parts of a CPU: the error of each goodput, and the total against their number. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import Traffic, path_of, rate_text, short, traffic
from pytest_icbench.display.chart import (
    AT_LEAST,
    HAS_INTERVAL,
    MEASURED,
    Axes,
    Column,
    Figure,
    interval_columns,
    offsets,
    tooltips,
    with_own,
)
from pytest_icbench.display.points import row, scaled
from pytest_icbench.model.measurement import Result
from pytest_icbench.report.figure.rate_charts import Heading, rate_chart
from pytest_icbench.wording import grouped

_NUMBER = Column("functions", "functions on one CPU")
_TOTAL = Column("rate", "rate of all, Mpps")
_ERROR = Column("error", "error of the goodput, %")
#: The published bound of the error in per cent (E5).
_PUBLISHED = 3.5
_NOTE = (
    "At 0 a function got its promised share of the goodput that it has alone. Dotted: 3.5 % to either side, the"
    " greatest error in the literature (E5), on other hardware; with separate function and I/O up to 175 %."
)


def share_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of E5: the error of the goodput against shares, and against CPU quotas, for each traffic.

    ``results``: results of throughput.
    """
    figures = []
    promised = [result for result in results if result.is_number and result.point.cpu_allocations]
    for place, (key, group) in enumerate(grouped(promised, traffic).items()):
        for name, other in (("cpu_share", "cpu_quota"), ("cpu_quota", "cpu_share")):
            kept = [result for result in group if getattr(result.point, other) is None]
            if rows := tuple(sorted(_rows(kept, name), key=lambda line: (line[1], line[2]))):
                figures.append(_figure(f"shares-{place}-{name}", name, key.say(), rows, order))
    return figures


def totals_by_number(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of E4: the rate of all functions with equal parts of a CPU against their number.

    The offered load of all functions together is the same in a chart. ``results``: results of throughput.
    """
    figures = []
    equal = [result for result in results if len(set(result.point.cpu_allocations)) == 1]
    for place, (key, group) in enumerate(grouped(equal, _together).items()):
        lines = (row(result, result.point.pairs, result.frames.throughput_pps, 1e-6) for result in group)
        kept = zip(group, lines, strict=True)
        rows = tuple(
            sorted(
                ((line[0], _with_equal_parts(result), *line[2:]) for result, line in kept if line is not None),
                key=lambda line: (line[1], line[2]),
            )
        )
        if len({line[2] for line in rows}) > 1:
            title = f"Rate of functions with equal parts of one CPU: {key.say('pairs')}"
            names = with_own(order, rows)
            heading = Heading(f"totals-{place}", "shares", title)
            figures.append(rate_chart(heading, Axes(_NUMBER, _TOTAL), rows, names))
    return figures


def _together(result: Result) -> Traffic:
    """Returns the traffic of all pairs together; a fixed rate is the sum of all pairs."""
    rate = result.axes.get("rate")
    of_all = f"{rate_text(rate * result.point.pairs)} together" if isinstance(rate, int) else traffic(result).rate
    return traffic(result)._replace(pairs=0, rate=of_all)


def _with_equal_parts(result: Result) -> str:
    """Returns the path's name without the per cents of the parts, which follow from their number."""
    point = result.point
    kinds = " and ".join(
        f"{name.removeprefix('cpu_')}s" for name in ("cpu_share", "cpu_quota") if getattr(point, name) is not None
    )
    return f"{path_of(replace(result, axes={**result.axes, 'cpu_share': None, 'cpu_quota': None}))}, equal {kinds}"


def _rows(group: Sequence[Result], name: str) -> list[tuple[Any, ...]]:
    """Returns a row for each function whose error is known."""
    rows = []
    for result in group:
        path = path_of(replace(result, axes={**result.axes, name: None}))
        for function, work in zip(result.point.functions, result.functions or (), strict=False):
            if work.goodput_error is not None:
                ends = (work.goodput_error, work.goodput_error_low, work.goodput_error_high)
                series = f"{path}: {function}" if result.point.mixed else path
                errors = (scaled(end, 100) for end in ends)
                rows.append((result.case, series, getattr(work, name), *errors, False, MEASURED))
    return rows


def _figure(id_: str, name: str, load: str, rows: tuple[tuple[Any, ...], ...], order: Sequence[str]) -> Figure:
    part = Column(name, f"{name.removeprefix('cpu_')} of the CPU, %")
    columns = interval_columns(part, _ERROR)
    names = with_own(order, rows)
    worst = max(rows, key=lambda row: abs(row[3]))
    text = f"Greatest error: {short(worst[3])} % at {worst[2]} %, {worst[1]}."
    return Figure(
        id=id_,
        kind="shares",
        title=f"Error of the goodput against the {name.removeprefix('cpu_')}: {load}",
        text=f"{text} {_NOTE}",
        spec=_spec(part, columns, rows, names),
        columns=columns,
        rows=rows,
    )


def _spec(
    part: Column, columns: Sequence[Column], rows: Sequence[Sequence[Any]], order: Sequence[str]
) -> dict[str, Any]:
    series = sorted({row[1] for row in rows}, key=order.index)
    look = theme.series_scales(series, order)
    colour, aside = theme.encoding("color", look), {"xOffset": {"expr": offsets(series)}}
    x = {"field": part.name, "type": "quantitative", "scale": {"domain": [0, 100]}, "axis": {"title": part.title}}
    y = {"field": _ERROR.name, "type": "quantitative", "axis": {"title": _ERROR.title}}
    level = {"type": "rule", "color": theme.DIM}
    return {
        "layer": [
            {"data": {"values": [{"error": 0}]}, "mark": level, "encoding": {"y": y}},
            {
                "data": {"values": [{"error": -_PUBLISHED}, {"error": _PUBLISHED}]},
                "mark": {**level, "strokeDash": [1, 4]},
                "encoding": {"y": y},
            },
            {
                "transform": [HAS_INTERVAL],
                "mark": {"type": "rule", "strokeWidth": 1.5, "strokeCap": "round", **aside},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, **aside},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "shape": theme.encoding("shape", look),
                    "tooltip": tooltips(column for column in columns if column is not AT_LEAST),
                },
            },
        ]
    }
