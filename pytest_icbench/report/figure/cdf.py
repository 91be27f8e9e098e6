# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of round-trip times by ordinary percentile: the share of requests answered within a time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.axes import grouped, in_order, of_kind, path_of, short, traffic
from pytest_icbench.display.chart import CASE, SERIES, Column, Figure, tooltips
from pytest_icbench.model.figures import Latency
from pytest_icbench.model.result import Result
from pytest_icbench.stats.quantiles import merge

#: Percentiles of a curve: a hundredth of the requests each at the ends, five hundredths between.
_SHARES = (*range(1, 5), *range(5, 95, 5), *range(95, 100))
#: The greatest number of charts on a page.
MOST = 60

_COLUMNS = (CASE, SERIES, Column("rtt", "RTT, µs"), Column("share", "answered within it, %"))


def cdf_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each traffic: the share of all requests that were answered within a time.

    Lost requests never reach it, so the curve of a path that loses some ends below 100 %.

    Args:
        results: results of both dimensions.
        order: all series of the page.
    """
    figures: list[Figure] = []
    times = [result for result in of_kind(results, Latency) if result.is_number]
    for key, group in grouped(times, traffic).items():
        if len(figures) == MOST:
            break
        rows = tuple(row for result in in_order(group, order) for row in _rows(result))
        if rows:
            figures.append(
                Figure(
                    id=f"cdf-{len(figures)}",
                    kind="percentiles",
                    title=f"Share of round trips within a time: {key.say()}",
                    text="Requests without an answer keep a curve below 100 %.",
                    aria=_text(rows),
                    spec=_spec(rows, order),
                    columns=_COLUMNS,
                    rows=rows,
                )
            )
    return figures


def _rows(result: Result) -> list[tuple[Any, ...]]:
    merged = merge([launch.rtt for launch in result.per_launch if launch.rtt is not None])
    if merged is None or not merged.count:
        return []
    head, requests = (result.case, path_of(result)), merged.count + merged.lost
    rows, seen = [], 0
    shares = iter(_SHARES)
    share = next(shares, None)
    for value, count in merged.counts:
        seen += count
        while share is not None and seen >= requests * share / 100:
            rows.append((*head, float(f"{min(value, merged.maximum or value) / 1e3:.5g}"), share))
            share = next(shares, None)
    return rows


def _text(rows: Sequence[tuple[Any, ...]]) -> str:
    sentences = []
    for name, points in grouped(rows, lambda row: row[1]).items():
        at = {row[3]: row[2] for row in points}
        known = [f"{share} % within {short(at[share])} µs" for share in (50, 90, 99) if share in at]
        if known:
            sentences.append(f"{name}: {', '.join(known)}.")
    return " ".join(sentences)


def _spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str]) -> dict[str, Any]:
    series = sorted({row[1] for row in rows}, key=list(order).index)
    scales, legend = theme.series_scales(series, order), {"title": None}
    values = [row[2] for row in rows]
    wide = min(values) > 0 and max(values) / min(values) > 5
    scale: dict[str, Any] = {"type": "log", "nice": True} if wide else {"zero": False, "nice": True}
    title = f"RTT, µs{' (logarithmic)' if wide else ''}"
    return {
        "layer": [
            {
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
                "encoding": {
                    "x": {
                        "field": "rtt",
                        "type": "quantitative",
                        "scale": scale,
                        "axis": {"title": title, "tickCount": 6},
                    },
                    "y": {
                        "field": "share",
                        "type": "quantitative",
                        "scale": {"domain": [0, 100], "nice": False},
                        "axis": {"title": "answered within it, %", "values": [0, 25, 50, 75, 90, 100]},
                    },
                    "order": {"field": "share"},
                    "color": theme.encoding("color", scales, legend),
                    "strokeDash": theme.encoding("strokeDash", scales, legend),
                    "tooltip": tooltips(_COLUMNS),
                },
            }
        ],
    }
