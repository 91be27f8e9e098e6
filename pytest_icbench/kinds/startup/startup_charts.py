# SPDX-License-Identifier: BSD-3-Clause
"""Charts of containers created one after the other: the time of each, and the cost of idle ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import in_order, path_of, short
from pytest_icbench.display.chart import CASE, SERIES, Column, Figure, tooltips, y_axis
from pytest_icbench.model.measurement import Result
from pytest_icbench.stats.quantiles import median
from pytest_icbench.wording import grouped

#: The most points of a line; a point is the median of adjacent containers.
MOST_POINTS = 100

_NUMBER = Column("n", "containers")
_TIME = (CASE, SERIES, _NUMBER, Column("each", "time to create it, ms"), Column("most", "the longest around it, ms"))
_TRIPS = (CASE, SERIES, Column("trip", "first round trip, ms"), Column("share", "answered within it, %"))
_MEMORY = (CASE, SERIES, _NUMBER, Column("each", "memory of all, MB"), Column("cpu", "CPU time of all, %"))


def startup_charts(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns the charts of times, of memory, and of clients' first round trips; none without such results.

    A case in which a container did not come up has the points of the containers before it.
    """
    started = in_order((result for result in results if result.containers.startups is not None), order)
    figures = []
    for number, (title, rows_of, columns, text) in enumerate(
        (
            ("Time to create the n-th container", _times, _TIME, _text),
            ("Memory of n idle containers", _memory, _MEMORY, _text),
            ("Share of new clients answered within a time", _trips, _TRIPS, _text_of_trips),
        )
    ):
        if rows := tuple(row for result in started for row in rows_of(result)):
            spec = _spec(rows, order, columns)
            figures.append(Figure(f"start-ups-{number}", "startups", title, text(rows, columns), spec, columns, rows))
    return figures


def _trips(result: Result) -> list[tuple[Any, ...]]:
    """Returns the distribution of first round trips. A client without an answer has no row, but counts."""
    assert result.containers.startups is not None
    trips = result.containers.startups.first_trip_ns
    known = sorted(trip for trip in trips if trip)
    width = -(-len(known) // MOST_POINTS) or 1
    places = sorted({*range(width - 1, len(known), width), *([len(known) - 1] if known else [])})
    return [
        (result.case, path_of(result), _rounded(known[place]), round((place + 1) / len(trips) * 100, 2))
        for place in places
    ]


def _text_of_trips(rows: Sequence[tuple[Any, ...]], _columns: Sequence[Column]) -> str:
    sentences = []
    for name, points in grouped(rows, lambda row: row[1]).items():
        half = next((row[2] for row in points if row[3] >= 50), None)
        sentences.append(f"{name}: " + ("fewer than half." if half is None else f"half within {short(half)} ms."))
    return " ".join(sentences)


def _times(result: Result) -> list[tuple[Any, ...]]:
    assert result.containers.startups is not None
    times = result.containers.startups.total_ns
    width = -(-len(times) // MOST_POINTS) or 1
    rows = []
    for begin in range(0, len(times), width):
        group = times[begin : begin + width]
        last = begin + len(group)
        rows.append((result.case, path_of(result), last, _rounded(median(group)), _rounded(max(group))))
    return rows


def _memory(result: Result) -> list[tuple[Any, ...]]:
    assert result.containers.startups is not None
    return [
        (
            result.case,
            path_of(result),
            look.containers,
            _rounded(look.memory_bytes),
            float(f"{look.cpu_share * 100:.3g}"),
        )
        for look in result.containers.startups.idle
    ]


def _rounded(millionths: float) -> float:
    """Returns ns in ms, and bytes in MB."""
    return float(f"{millionths / 1e6:.4g}")


def _text(rows: Sequence[tuple[Any, ...]], columns: Sequence[Column]) -> str:
    sentences, unit = [], columns[3].title.rpartition(", ")[2]
    for name, points in grouped(rows, lambda row: row[1]).items():
        first, last = points[0], points[-1]
        sentences.append(f"{name}: {short(first[3])} {unit} at {first[2]:,}, {short(last[3])} at {last[2]:,}.")
    return " ".join(sentences)


def _spec(rows: Sequence[tuple[Any, ...]], order: Sequence[str], columns: Sequence[Column]) -> dict[str, Any]:
    series = sorted({row[1] for row in rows}, key=list(order).index)
    scales, legend = theme.series_scales(series, order), {"title": None}
    x, y = columns[2:4]
    scale, title = y_axis([row[3] for row in rows], y.title)
    if y.name == "share":
        scale, title = {"domain": [0, 100], "nice": False}, y.title
    return {
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 1.8, "point": {"size": 18}},
                "encoding": {
                    "x": {
                        "field": x.name,
                        "type": "quantitative",
                        "scale": {"zero": True, "nice": True},
                        "axis": {"title": x.title, "tickCount": 6},
                    },
                    "y": {"field": y.name, "type": "quantitative", "scale": scale, "axis": {"title": title}},
                    "color": theme.encoding("color", scales, legend),
                    "strokeDash": theme.encoding("strokeDash", scales, legend),
                    "tooltip": tooltips(columns),
                },
            }
        ]
    }
