# SPDX-License-Identifier: BSD-3-Clause
"""Charts of all percentiles of the round-trip time, and of the share of requests answered within a time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import grouped, in_order, number, of_kind, path_of, short, times, traffic
from pytest_icbench.display.chart import CASE, HAS_INTERVAL, SERIES, Column, Figure, offsets, tooltips
from pytest_icbench.model.figures import Latency
from pytest_icbench.model.result import Result
from pytest_icbench.stats.quantiles import SAMPLES_BEYOND, merge

_NAMED = {"p50": 2.0, "p90": 10.0, "p99": 100.0, "p99.9": 1e3, "p99.99": 1e4}
#: Number of points of a percentile curve in each decade.
PER_DECADE = 8

_COLUMNS = (
    CASE,
    SERIES,
    Column("beyond", "1/(1-q)"),
    Column("percentile", "percentile"),
    Column("rtt", "RTT, µs"),
    Column("low", "RTT, µs, low"),
    Column("high", "RTT, µs, high"),
)


def by_percentile(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of all percentiles.

    Args:
        results: results of all kinds.
        order: all series of the page.
    """
    figures = []
    for index, (key, group) in enumerate(grouped(of_kind(results, Latency), traffic).items()):
        rows = [point for result in group for point in _curve_rows(result)]
        if rows:
            figures.append(
                Figure(
                    id=f"percentiles-{index}",
                    kind="percentiles",
                    title=f"Round-trip time by percentile: {key.say()}",
                    text="Bars: 95 % intervals of the named percentiles.",
                    aria=_text(group),
                    values=("rtt", "low", "high"),
                    height=320,
                    spec=_percentile_spec(rows, order),
                    columns=_COLUMNS,
                    rows=tuple(rows),
                )
            )
    return figures


def curve_of(result: Result) -> list[tuple[float, float]]:
    """Returns the merged round-trip times of a result as points (1/(1-q), ns); empty without round trips.

    At least ten requests are slower than a percentile. Lost requests count as slower than any answered one.
    """
    if not result.is_number:
        return []
    merged = merge([launch.rtt for launch in result.per_launch if launch.rtt is not None])
    if merged is None or not merged.count:
        return []
    requests = merged.count + merged.lost
    points = []
    step = 0
    targets: list[float] = []
    while (target := 10 ** (step / PER_DECADE)) <= requests / SAMPLES_BEYOND:
        targets.append(target)
        step += 1
    seen, place = 0, 0
    for value, count in merged.counts:
        seen += count
        while place < len(targets) and seen >= requests * (1 - 1 / targets[place]):
            points.append((round(targets[place], 4), float(min(value, merged.maximum or value))))
            place += 1
    return points


def _curve_rows(result: Result) -> list[tuple[Any, ...]]:
    if not result.is_number:
        return []
    head = (result.case, path_of(result))
    points: dict[float, tuple[float, float | None, float | None]] = {
        inverse_tail: (value / 1e3, None, None) for inverse_tail, value in curve_of(result)
    }
    for name, rtt in times(result, "rtt", *_NAMED).items():
        if rtt is not None:
            low, high = (None if end is None else end / 1e3 for end in (rtt.low, rtt.high))
            points[_NAMED[name]] = (rtt / 1e3, low, high)
    return [(*head, x, _percentile(x), *points[x]) for x in sorted(points)]


def _percentile(inverse_tail: float) -> str:
    return f"{100 * (1 - 1 / inverse_tail):.7g} %"


def _text(group: Sequence[Result]) -> str:
    sentences = []
    for result in group:
        rtt = times(result, "rtt", *_NAMED)
        named = [(name, number(result, rtt[name])) for name in ("p50", "p99", "p99.9")]
        known = [f"{name} {short(value / 1000)} µs" for name, value in named if value is not None]
        if known:
            sentences.append(f"{path_of(result)}: {', '.join(known)}.")
    return " ".join(sentences) + " Bars are 95 % intervals of the named percentiles."


def _percentile_spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str]) -> dict[str, Any]:
    series = sorted({row[1] for row in rows}, key=order.index)
    look = theme.series_scales(series, order)
    colour = theme.encoding("color", look)
    last = max(row[2] for row in rows)
    ticks = [inverse_tail for inverse_tail in (1.0, 2.0, 4.0, 10.0, 100.0, 1e3, 1e4, 1e5) if inverse_tail <= 10 * last]
    x = {
        "field": "beyond",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {
            "title": "percentile, on the axis 1/(1-q)",
            "values": ticks,
            "labelExpr": "format((1 - 1 / datum.value) * 100, '.6~g') + ' %'",
        },
    }
    y = {"field": "rtt", "type": "quantitative", "scale": {"@scale": "rtt"}, "axis": {"title": "RTT, µs@kind"}}
    aside = {"xOffset": {"expr": offsets(series)}}
    marked = [HAS_INTERVAL]
    tooltip = [{"field": column.name, "title": column.title} for column in _COLUMNS if column.name != "beyond"]
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": theme.encoding("strokeDash", look)},
        },
        {
            "transform": marked,
            "mark": {"type": "rule", "strokeWidth": 1.5, **aside},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "transform": marked,
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, **aside},
            "encoding": {"x": x, "y": y, "color": colour, "shape": theme.encoding("shape", look), "tooltip": tooltip},
        },
    ]
    return {"layer": layers}


#: Percentiles of a curve: a hundredth of the requests each at the ends, five hundredths between.
_SHARES = (*range(1, 5), *range(5, 95, 5), *range(95, 100))
#: The greatest number of charts on a page.
MOST_CDFS = 60

_CDF_COLUMNS = (CASE, SERIES, Column("rtt", "RTT, µs"), Column("share", "answered within it, %"))


def cdf_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each traffic: the share of all requests that were answered within a time.

    Lost requests never reach it, so the curve of a path that loses some ends below 100 %.

    Args:
        results: results of all kinds.
        order: all series of the page.
    """
    figures: list[Figure] = []
    known = [result for result in of_kind(results, Latency) if result.is_number]
    for key, group in grouped(known, traffic).items():
        if len(figures) == MOST_CDFS:
            break
        rows = tuple(row for result in in_order(group, order) for row in _cdf_rows(result))
        if rows:
            figures.append(
                Figure(
                    id=f"cdf-{len(figures)}",
                    kind="percentiles",
                    title=f"Share of round trips within a time: {key.say()}",
                    text="Requests without an answer keep a curve below 100 %.",
                    aria=_cdf_text(rows),
                    spec=_cdf_spec(rows, order),
                    columns=_CDF_COLUMNS,
                    rows=rows,
                )
            )
    return figures


def _cdf_rows(result: Result) -> list[tuple[Any, ...]]:
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


def _cdf_text(rows: Sequence[tuple[Any, ...]]) -> str:
    sentences = []
    for name, points in grouped(rows, lambda row: row[1]).items():
        at = {row[3]: row[2] for row in points}
        known = [f"{share} % within {short(at[share])} µs" for share in (50, 90, 99) if share in at]
        if known:
            sentences.append(f"{name}: {', '.join(known)}.")
    return " ".join(sentences)


def _cdf_spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str]) -> dict[str, Any]:
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
                    "tooltip": tooltips(_CDF_COLUMNS),
                },
            }
        ],
    }
