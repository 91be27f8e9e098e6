# SPDX-License-Identifier: BSD-3-Clause
"""Trends: the history of each case on each host, with its levels and changes, from which charts are drawn. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pytest_icbench.model.codec import encode
from pytest_icbench.stats.change_points import LEAST_EFFECT, Level, levels
from pytest_icbench.store.history_file import FIGURES, Entry
from pytest_icbench.wording import grouped


@dataclass(frozen=True, slots=True)
class Point:
    """A result in a trend: seconds since the epoch, value, interval (None without one)."""

    at: float
    value: float
    low: float | None
    high: float | None
    run: str
    version: str | None
    verdict: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the level.

    Attributes:
        index: index of the first point of the new level.
        at: time of that point, in seconds since the epoch.
        before, after: the levels: medians of their points, in the unit of ``Trend.figure``.
        relative: (after - before) / before.
        better: whether a rate became greater or a time less.
        version_before, version_after: the switch's versions around the change; None if unknown.
        run_before, run_after: names of the two runs between which it lies.
        apart_s: seconds between them.
    """

    index: int
    at: float
    before: float
    after: float
    relative: float
    better: bool
    version_before: str | None
    version_after: str | None
    run_before: str = ""
    run_after: str = ""
    apart_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Trend:
    """The values of one result of one case on one host, in the order of time.

    Attributes:
        figure: name of the result, with its unit: ``throughput_pps``, ``rtt_p50_ns``, ...
        less_is_better: whether less is better, as for a time.
        host: digest of the facts that must match in a comparison.
        machine: the host's name for readers.
    """

    case: str
    dimension: str
    metric: str
    figure: str
    less_is_better: bool
    host: str
    machine: str
    points: tuple[Point, ...]
    levels: tuple[Level, ...]
    changes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON data."""
        data: dict[str, Any] = encode(self)
        return data


def trends(entries: Iterable[Entry], *, least_effect: float = LEAST_EFFECT, every_figure: bool = False) -> list[Trend]:
    """Returns the trend of each case, metric and host, in the order of cases.

    Args:
        entries: in any order; see ``store.history_file``.
        least_effect: smallest change of a level, as a part of it; smaller ones are ignored.
        every_figure: whether all of ``FIGURES`` are included, not only the first of each dimension.

    Raises UsageError if the library for change points is missing.
    """
    groups = grouped(entries, lambda entry: (entry.dimension, entry.case, entry.metric, entry.host))
    all_trends = []
    for _, group in sorted(groups.items()):
        group.sort(key=lambda entry: entry.at)
        named = FIGURES.get(group[0].dimension, ())
        for name, less in named if every_figure else named[:1]:
            points = [point for entry in group if (point := _point(entry, name)) is not None]
            if points:
                all_trends.append(_trend(group[-1], name, less, points, least_effect))
    return all_trends


def _point(entry: Entry, name: str) -> Point | None:
    figure = entry.figure(name)
    if figure is None:
        return None
    return Point(entry.at, figure.value, figure.low, figure.high, entry.run, entry.version, entry.verdict)


def _trend(last: Entry, name: str, less: bool, points: Sequence[Point], least_effect: float) -> Trend:
    trend_levels = levels([point.value for point in points], least_effect)
    changes = []
    for before, after in pairwise(trend_levels):
        changes.append(
            Change(
                index=after.first,
                at=points[after.first].at,
                before=before.value,
                after=after.value,
                relative=(after.value - before.value) / before.value if before.value else 0.0,
                better=(after.value < before.value) == less,
                version_before=points[before.last].version,
                version_after=points[after.first].version,
                run_before=points[before.last].run,
                run_after=points[after.first].run,
                apart_s=points[after.first].at - points[before.last].at,
            )
        )
    return Trend(
        case=last.case,
        dimension=last.dimension,
        metric=last.metric,
        figure=name,
        less_is_better=less,
        host=last.host,
        machine=last.machine,
        points=tuple(points),
        levels=tuple(trend_levels),
        changes=tuple(changes),
    )
