# SPDX-License-Identifier: BSD-3-Clause
"""Charts of the history of cases with change points, from the trends of a history file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.chart import CASE, HAS_INTERVAL, Column, Figure, tooltips, y_axis
from pytest_icbench.report.trends import Change, Trend, trends
from pytest_icbench.store.history_file import read
from pytest_icbench.wording import counted, printable, show

#: Least height of the axis, as a share of the middle value.
LEAST_SPAN = 0.1
#: Number of days below which the axis shows the time of day.
LONG_DAYS = 6
#: Greatest number of charts on a page; the trends that changed come first.
MOST = 200

_COLUMNS = (
    CASE,
    Column("at", "when (UTC)"),
    Column("value", "value"),
    Column("low", "low"),
    Column("high", "high"),
    Column("level", "level"),
    Column("change", "change"),
    Column("version", "version"),
    Column("run", "run"),
    Column("verdict", "verdict"),
)


def history_figures(all_trends: Sequence[Trend]) -> list[Figure]:
    """Returns a chart for each trend of at least two points, in microseconds or millions of frames per second."""
    shown = [trend for trend in all_trends if len(trend.points) > 1]
    shown.sort(key=lambda trend: (not trend.changes, trend.case))
    # Hosts with the same processor are distinguished by their names in icbench history.
    titles = Counter(map(_title, shown))
    hosts = [f" (host {trend.host})" if titles[_title(trend)] > 1 else "" for trend in shown]
    return [_figure(place, trend, _title(trend) + hosts[place]) for place, trend in enumerate(shown[:MOST])]


def history_of(file: Path, cases: Collection[str]) -> tuple[list[Figure], list[str]]:
    """Returns the charts of some cases from a history file, and a sentence for each line that could not be read.

    Raises UsageError if the file cannot be read, or the library for change points is missing.
    """
    entries, troubles = read(file)
    return history_figures(trends([entry for entry in entries if entry.case in cases])), troubles


def _name(trend: Trend) -> str:
    return printable(trend.figure.removesuffix("_ns").removesuffix("_pps"))


def _title(trend: Trend) -> str:
    return f"{printable(trend.case)}: {_name(trend)} on {printable(trend.machine)}"


def _figure(place: int, trend: Trend, title: str) -> Figure:
    time = trend.figure.endswith("_ns")
    factor, unit = (1e-3, "µs") if time else (1e-6, "Mpps") if trend.figure.endswith("_pps") else (1.0, "")
    name = _name(trend)
    rows = tuple(_rows(trend, factor))
    levels = counted(len(trend.levels), "level")
    text = f"{counted(len(trend.points), 'result')}, {levels}, {'less' if trend.less_is_better else 'more'} is better. "
    text += " ".join(_sentence(change, factor, unit) for change in trend.changes[-5:]) or "No change of the level."
    text += " The axis need not begin at zero."
    return Figure(
        id=f"history-{place}",
        kind="history",
        height=260,
        title=title,
        text=text,
        spec=_spec(rows, f"{name}, {unit}" if unit else name),
        columns=_COLUMNS,
        rows=rows,
    )


def _sentence(change: Change, factor: float, unit: str) -> str:
    versions = ""
    if change.version_after and change.version_before != change.version_after:
        versions = f", version {printable(str(change.version_before))} to {printable(change.version_after)}"
    word = "better" if change.better else "worse"
    before, after = show(change.before * factor), show(change.after * factor)
    return f"{_when(change.at)[:10]}: {change.relative:+.1%} ({word}), {before} to {after} {unit}{versions}."


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _rows(trend: Trend, factor: float) -> list[tuple[Any, ...]]:
    changes = {change.index: change for change in trend.changes}
    rows = []
    for place, point in enumerate(trend.points):
        level = next(level for level in trend.levels if level.first <= place <= level.last)
        change = changes.get(place)
        low, high = (None if end is None else end * factor for end in (point.low, point.high))
        change_text = None if change is None else f"{change.relative:+.1%} {'better' if change.better else 'worse'}"
        figures = (point.value * factor, low, high, level.value * factor)
        rows.append((trend.case, _when(point.at), *figures, change_text, point.version, point.run, point.verdict))
    return rows


def _scale(values: Sequence[float | None], title: str) -> tuple[dict[str, Any], str]:
    """Returns a scale as wide as the values, so that a small step is visible, but of ``LEAST_SPAN`` at least."""
    scale, title = y_axis(values, title)
    if "zero" not in scale:
        return scale, title
    known = [value for value in values if value is not None]
    middle = (min(known) + max(known)) / 2
    half = max(max(known) - min(known), LEAST_SPAN * middle) / 2 * 1.05
    return {**scale, "zero": False, "domain": [max(middle - half, 0.0), middle + half or 1.0]}, title


def _spec(rows: Sequence[tuple[Any, ...]], title: str) -> dict[str, Any]:
    scale, y_title = _scale([number for row in rows for number in row[2:5]], title)
    days = (datetime.fromisoformat(rows[-1][1]) - datetime.fromisoformat(rows[0][1])).days
    format_ = "%Y-%m-%d" if days >= LONG_DAYS else "%Y-%m-%d %H:%M"
    axis = {"title": "when (UTC)", "format": format_, "tickCount": 6, "labelSeparation": 10}
    x = {"field": "at", "type": "temporal", "scale": {"type": "utc"}, "axis": axis}
    y = {"field": "value", "type": "quantitative", "scale": scale, "axis": {"title": y_title}}
    tooltip = tooltips(_COLUMNS)
    blue, vermilion = theme.COLOURS[0], theme.COLOURS[1]
    changed = [{"filter": "isValid(datum.change)"}]
    return {
        "layer": [
            {
                "mark": {"type": "line", "interpolate": "step-after", "color": theme.DIM, "strokeWidth": 2},
                "encoding": {"x": x, "y": {**y, "field": "level"}},
            },
            {
                "transform": [HAS_INTERVAL],
                "mark": {"type": "errorbar", "thickness": 1.5, "color": blue},
                "encoding": {
                    "x": x,
                    "y": {"field": "low", "type": "quantitative", "scale": scale, "title": y_title},
                    "y2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1, "color": blue},
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            {
                "transform": changed,
                "mark": {"type": "rule", "color": vermilion, "strokeDash": [4, 3]},
                "encoding": {"x": x},
            },
            {
                "transform": changed,
                "mark": {"type": "text", "align": "left", "dx": 4, "baseline": "top", "color": vermilion},
                "encoding": {"x": x, "y": {"value": 4}, "text": {"field": "change"}},
            },
        ]
    }
