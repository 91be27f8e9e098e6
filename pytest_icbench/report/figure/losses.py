# SPDX-License-Identifier: BSD-3-Clause
"""The losses of long runs over time: a lane for each path, a bar for each loss event. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import in_order, path_of, traffic
from pytest_icbench.display.chart import CASE, SERIES, Column, Figure, tooltips
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.trials import LossEvent
from pytest_icbench.wording import counted, grouped

_STEP = 44
_COLUMNS = (
    CASE,
    SERIES,
    Column("start", "start, s"),
    Column("end", "end, s"),
    Column("lost", "lost, frames"),
    Column("refused", "refused, frames"),
    Column("pair", "pair"),
    Column("kind", "kind"),
    Column("shown", "in all"),
)


def loss_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each dimension and traffic of long runs: when frames were lost or refused, and how many."""
    long_runs = [result for result in results if result.frames.loss_event_count is not None and result.duration_s]
    figures = []
    groups = grouped(long_runs, lambda result: (result.dimension, traffic(result)))
    for place, ((dimension, key), group) in enumerate(groups.items()):
        ordered = in_order(group, order)
        rows = tuple(row for result in ordered for row in _rows(result))
        length = max(max(result.duration_s for result in group), max(row[3] for row in rows))
        figures.append(
            Figure(
                id=f"losses-{place}",
                kind="losses",
                title=f"Losses over time, {dimension}: {key.say()}",
                text=" ".join(f"{path_of(result)}: {_sum(result)}." for result in ordered),
                spec=_spec([path_of(result) for result in ordered], length),
                columns=_COLUMNS,
                rows=rows,
                height=_STEP * len(ordered),
            )
        )
    return figures


def _sum(result: Result) -> str:
    count = result.frames.loss_event_count or 0
    if not count:
        return f"no frame lost or refused in {result.duration_s:,.0f} s"
    kept = len(result.frames.loss_events or ())
    rest = f", the first {kept} of them drawn" if kept < count else ""
    events = counted(count, "loss event")
    return (
        f"{events}{rest}, {result.frames.lost:,} lost, {result.frames.refused:,} refused in {result.duration_s:,.0f} s"
    )


def _rows(result: Result) -> list[tuple[Any, ...]]:
    head, shown = (result.case, path_of(result)), _sum(result)
    events = result.frames.loss_events or ()
    if not events:
        return [(*head, 0.0, 0.0, 0, 0, None, "none", shown)]
    return [(*head, *_event(event, result.started_at), shown) for event in events]


def _event(event: LossEvent, began: float) -> tuple[Any, ...]:
    start = max(round(event.started_at - began, 3), 0.0)
    kind = "lost" if event.lost else "refused"
    return start, round(start + event.duration_s, 3), event.lost, event.refused, event.pair, kind


def _spec(series: Sequence[str], length: float) -> dict[str, Any]:
    lanes = list(dict.fromkeys(series))
    x = {
        "field": "start",
        "type": "quantitative",
        "scale": {"domain": [0, length], "nice": False},
        "axis": {"title": "seconds from the first window"},
    }
    y = {"field": "series", "type": "nominal", "sort": lanes, "axis": None}
    colour = {
        "field": "kind",
        "type": "nominal",
        "legend": {"title": None, "symbolType": "square"},
        "scale": {"domain": ["lost", "refused"], "range": [theme.VERDICTS["bad"], theme.COLOURS[0]]},
    }
    tooltip = tooltips(_COLUMNS)
    once = [{"aggregate": [{"op": "min", "field": "shown", "as": "shown"}], "groupby": ["series"]}]
    label = {"type": "text", "baseline": "middle", "dy": -12, "fontSize": 12}
    return {
        "layer": [
            {
                "transform": once,
                "mark": {"type": "bar", "height": 12, "yOffset": 8, "color": theme.GRID, "opacity": 0.6},
                "encoding": {"x": {"value": 0}, "x2": {"value": "width"}, "y": y},
            },
            {
                "transform": [{"filter": "datum.kind !== 'none'"}],
                "mark": {"type": "bar", "height": 20, "yOffset": 8, "stroke": None},
                "encoding": {"x": x, "x2": {"field": "end"}, "y": y, "color": colour, "tooltip": tooltip},
            },
            {
                # An event of a tenth of a second in an hour would be thinner than a pixel.
                "transform": [{"filter": "datum.kind !== 'none'"}],
                "mark": {"type": "tick", "height": 20, "thickness": 2, "yOffset": 8},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
            },
            {
                "transform": once,
                "mark": {**label, "align": "left", "dx": 4, "fontWeight": "bold"},
                "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "series"}},
            },
            {
                "transform": once,
                "mark": {**label, "align": "right", "dx": -4, "limit": {"expr": "width - 110"}},
                "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "shown"}},
            },
        ]
    }
