# SPDX-License-Identifier: BSD-3-Clause
"""The windows of a case over time, and its percentile curve. A result's line has neither. Pure.

The chart of windows has no data: the page fills it in for the case that the reader chooses. A page holds the windows of
thousands of cases, so they are rounded, and adjacent ones are merged if there are too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.chart import CASE, HAS_INTERVAL, Column, Figure
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.wording import grouped

#: Number of windows of a case above which adjacent ones are merged.
MOST_POINTS = 600
#: The same limit for all cases of a page together.
MOST_ON_A_PAGE = 500_000


@dataclass(frozen=True, slots=True)
class Windows:
    """The kept windows of a case in the order in which they ran, all pairs together.

    Attributes:
        unit: ``kpps`` for the received rate, ``us`` for the median round trip of a window.
        launches: for each launch its index, the seconds from the first launch to its first window, the length of a
            point in seconds, and the points; a point is None where it has no value.
        disturbed: for each launch the indices of the points in which the host took time from an endpoint.
    """

    unit: str
    launches: tuple[tuple[int, float, float, tuple[float | None, ...]], ...]
    disturbed: tuple[tuple[int, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON data for the page's script."""
        return {
            "unit": self.unit,
            "launches": [[index, start, step, list(points)] for index, start, step, points in self.launches],
            "disturbed": [list(places) for places in self.disturbed],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Windows:
        """Reverses ``to_dict``."""
        launches = tuple((index, start, step, tuple(points)) for index, start, step, points in data["launches"])
        return cls(data["unit"], launches, tuple(tuple(places) for places in data["disturbed"]))

    @property
    def count(self) -> int:
        """The number of points of all launches."""
        return sum(len(launch[3]) for launch in self.launches)


def windows_of(measurement: Measurement) -> Windows | None:
    """Returns the kept windows of a measurement; None without windows, as after reading a result's line."""
    launches = [launch for launch in measurement.per_launch if any(window.kept for window in launch.windows)]
    if not launches:
        return None
    of_trips = measurement.figures.LESS_IS_BETTER
    begin = min(launch.started_at for launch in launches)
    points, disturbed = [], []
    for launch in launches:
        columns = _columns(launch)
        values = [_median_rtt(column) if of_trips else _rate(column) for column in columns]
        step = columns[0][0].duration_ns / 1e9
        points.append((launch.index, round(launch.started_at - begin, 3), round(step, 6), tuple(values)))
        disturbed.append(
            tuple(place for place, column in enumerate(columns) if any(window.disturbed for window in column))
        )
    return thinned(Windows("us" if of_trips else "kpps", tuple(points), tuple(disturbed)), MOST_POINTS)


def _columns(launch: Launch) -> list[list[Window]]:
    """Returns lists of kept windows in the order of their numbers: one list holds the same window of every pair."""
    kept = grouped((window for window in launch.windows if window.kept), lambda window: window.number)
    return [windows for _, windows in sorted(kept.items())]


def _rate(column: Sequence[Window]) -> float:
    """Returns the rate of all pairs in thousands of frames per second."""
    return float(f"{sum(window.throughput_pps for window in column) / 1e3:.4g}")


def _median_rtt(column: Sequence[Window]) -> float | None:
    """Returns the greatest of the pairs' medians, since medians cannot be merged; in microseconds."""
    known = [window.rtt_p50_ns for window in column if window.rtt_p50_ns is not None]
    return float(f"{max(known) / 1e3:.4g}") if known else None


def thinned(windows: Windows, most: int) -> Windows:
    """Returns at most about ``most`` points: adjacent points of a launch are merged to their mean."""
    if windows.count <= most:
        return windows
    width = -(-windows.count // most)
    launches, disturbed = [], []
    for (index, start, step, points), places in zip(windows.launches, windows.disturbed, strict=True):
        merged = []
        for begin in range(0, len(points), width):
            known = [value for value in points[begin : begin + width] if value is not None]
            merged.append(float(f"{sum(known) / len(known):.4g}") if known else None)
        launches.append((index, start, step * width, tuple(merged)))
        disturbed.append(tuple(sorted({place // width for place in places})))
    return Windows(windows.unit, tuple(launches), tuple(disturbed))


def for_page(all_windows: Iterable[Windows | None]) -> list[Windows | None]:
    """Thins the windows of all cases so that the page stays small."""
    windows_of_cases = list(all_windows)
    most = max(MOST_ON_A_PAGE // max(sum(windows is not None for windows in windows_of_cases), 1), 20)
    return [None if windows is None else thinned(windows, most) for windows in windows_of_cases]


_X = {"field": "seconds", "type": "quantitative", "axis": {"title": "seconds from the first launch", "tickCount": 8}}
_Y = {"field": "value", "type": "quantitative", "scale": {"zero": False, "nice": True}, "axis": {"title": "@unit"}}
_BLUE, _VERMILION = theme.COLOURS[0], theme.COLOURS[1]


def _windows_spec() -> dict[str, Any]:
    """Returns the specification in which the page replaces ``@unit @value @low @high``."""
    band = {"low": "@low", "high": "@high", "value": "@value"}
    tooltip = [
        {"field": "launch", "title": "launch"},
        {"field": "seconds", "title": "seconds"},
        {"field": "value", "title": "@unit"},
        {"field": "disturbed", "title": "disturbed by the host"},
    ]
    return {
        "layer": [
            {
                "data": {"values": [band]},
                "transform": [HAS_INTERVAL],
                "mark": {"type": "rect", "color": theme.DIM, "opacity": 0.18},
                "encoding": {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": [band]},
                "transform": [{"filter": "isValid(datum.value)"}],
                "mark": {"type": "rule", "color": theme.DIM, "strokeDash": [6, 3]},
                "encoding": {"y": {"field": "value", "type": "quantitative"}},
            },
            {
                "mark": {"type": "line", "color": _BLUE, "strokeWidth": 1},
                "encoding": {"x": _X, "y": _Y, "detail": {"field": "launch"}},
            },
            {
                "transform": [{"filter": "!datum.disturbed"}],
                "mark": {"type": "point", "filled": True, "size": 18, "color": _BLUE, "opacity": 1},
                "encoding": {"x": _X, "y": _Y, "tooltip": tooltip},
            },
            {
                "transform": [{"filter": "datum.disturbed"}],
                "mark": {"type": "point", "shape": "M-1,-1L1,1M1,-1L-1,1", "size": 30, "color": _VERMILION},
                "encoding": {"x": _X, "y": _Y, "tooltip": tooltip},
            },
        ]
    }


WINDOWS = Figure(
    id="windows",
    kind="windows",
    height=260,
    title="Windows over time",
    text="",
    spec=_windows_spec(),
    columns=(
        CASE,
        Column("launch", "launch"),
        Column("seconds", "seconds"),
        Column("value", "@unit"),
        Column("disturbed", "disturbed by the host"),
    ),
    rows=(),
)
