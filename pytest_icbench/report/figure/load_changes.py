# SPDX-License-Identifier: BSD-3-Clause
"""A chart for each case whose load changes: offered and received load over the seconds of a launch. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import in_order, path_of, traffic
from pytest_icbench.display.chart import CASE, Column, Figure, tooltips
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.trace import LoadChange
from pytest_icbench.report import remarks
from pytest_icbench.wording import grouped

_COLUMNS = (
    CASE,
    Column("series", "pair"),
    Column("begin", "from, s"),
    Column("end", "to, s"),
    Column("load", "load, frames/s"),
    Column("offered", "offered, frames/s"),
    Column("received", "received, frames/s"),
    Column("arrived", "95 % of the change arrived at, s"),
)


_MARKS = "Dashed: the load; thin: offered; thick: received; diamonds: when a change had arrived."


def following_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each case whose load changed, with the offered and the received load of each pair."""
    changing = in_order((result for result in results if result.frames.followed and result.is_number), order)
    return [
        Figure(
            id=f"followed-{place}",
            kind="followed",
            title=f"{path_of(result)}: {traffic(result).say()}",
            text=f"{remarks.load_changes(result).removesuffix('; …')}. {_MARKS}",
            spec=_spec(rows),
            columns=_COLUMNS,
            rows=rows,
            height=220,
        )
        for place, result in enumerate(changing)
        if (rows := _rows(result))
    ]


def _rows(result: Result) -> tuple[tuple[Any, ...], ...]:
    """Returns a row for each time between two changes of a pair; the load received before the first is unknown."""
    rows: list[tuple[Any, ...]] = []
    last = float(result.settings.get("duration_s") or 0)
    for pair, changes in grouped(result.frames.followed or (), lambda change: change.pair).items():
        name, first = f"pair {pair}", changes[0]
        rows.append((result.case, name, 0, first.second, first.from_pps, None, None, None))
        ends = [*(later.second for _, later in pairwise(changes)), max(last, changes[-1].second + 1)]
        for change, end in zip(changes, ends, strict=True):
            arrived = None if change.follow_s is None else round(change.second + change.follow_s, 3)
            rates = change.to_pps, round(change.offered_pps), round(change.received_pps)
            frozen = _frozen_from(result, change)
            rows.append((result.case, name, change.second, min(end, frozen), *rates, arrived))
            rows += [(result.case, name, frozen, end, 0, None, None, None)] if frozen < end else []
    return tuple(rows)


def _frozen_from(result: Result, change: LoadChange) -> float:
    """Returns the second from which the function of a pair is frozen again; inf if it is not."""
    trace = result.point.rate.trace
    if trace is None or not trace.freezes:
        return inf
    due = trace.due(change.pair, result.point.pairs)
    return next((float(second) for second in range(change.second, len(due)) if not due[second]), inf)


def _spec(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    names = list(dict.fromkeys(row[1] for row in rows))
    x = {"field": "begin", "type": "quantitative", "axis": {"title": "seconds after the warm-up"}}
    y = {"type": "quantitative", "scale": {"zero": True}, "axis": {"title": "frames/s", "format": "~s"}}
    colour = {
        "field": "series",
        "type": "nominal",
        "legend": {"title": None, "symbolType": "stroke"},
        "scale": {"domain": names, "range": [theme.COLOURS[place % len(theme.COLOURS)] for place in range(len(names))]},
    }
    tooltip = tooltips(_COLUMNS)
    return {
        "layer": [
            {
                "mark": {"type": "rule", "strokeDash": [5, 3], "strokeWidth": 1.2},
                "encoding": {"x": x, "x2": {"field": "end"}, "y": {**y, "field": "load"}, "color": colour},
            },
            *(
                {
                    "transform": [{"filter": f"isValid(datum.{name})"}],
                    "mark": {"type": "rule", "strokeWidth": width, "opacity": 0.7},
                    "encoding": {
                        "x": x,
                        "x2": {"field": "end"},
                        "y": {**y, "field": name},
                        "color": colour,
                        "tooltip": tooltip,
                    },
                }
                for name, width in (("offered", 1), ("received", 3))
            ),
            {
                "transform": [{"filter": "isValid(datum.arrived)"}],
                "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "x": {**x, "field": "arrived"},
                    "y": {**y, "field": "received"},
                    "color": colour,
                    "tooltip": tooltip,
                },
            },
        ]
    }
