# SPDX-License-Identifier: BSD-3-Clause
"""Rates of results as rows and charts, and the charts over offered load. Pure.

``scaling`` has the charts over the axes of cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_icbench.display.case_names import METRIC_NAMES, maxima, number, path_of, traffic, without_rate
from pytest_icbench.display.chart import MEASURED, Axes, Column, Figure, interval_columns, interval_spec
from pytest_icbench.display.points import OFFERED, SIZE, best_text, dot_plot, finding, row, scaled
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.trials import SweepPoint
from pytest_icbench.report.figure.published import stated
from pytest_icbench.wording import grouped

PAIRS = Column("pairs", "pairs")
#: The most charts with the bursts of one path.
MOST_OF_BURSTS = 12


def all_series(results: Iterable[Result]) -> list[str]:
    """Returns the paths of the page in the order in which they were measured."""
    return list(dict.fromkeys(path_of(result) for result in results))


def published_rows(result: Result, x: float, factor: float) -> list[tuple[Any, ...]]:
    """Returns rows of the published values of the case; ``factor`` converts frames per second to the chart's unit."""
    return [
        (
            result.case,
            f"{path_of(result)}: {publication.label}",
            x,
            scaled(publication.value, factor),
            None,
            None,
            False,
            f"published, {publication.label}: {publication.source}; {publication.hardware}",
        )
        for publication in stated(result)
    ]


def _present(rows: Iterable[tuple[Any, ...] | None]) -> tuple[tuple[Any, ...], ...]:
    return tuple(sorted((row for row in rows if row is not None), key=lambda row: (str(row[1]), float(row[2]))))


@dataclass(frozen=True, slots=True)
class Heading:
    """What a chart is called.

    Attributes:
        id: id of the element, unique on a page.
        kind: the section that it belongs to.
        title: its heading.
    """

    id: str
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Wording:
    """The text of a chart of rates below its heading.

    Attributes:
        unit: of the rates.
        note: a sentence after the finding.
        detail: further sentences for readers who cannot see the chart.
    """

    unit: str = "Mpps"
    note: str = ""
    detail: str = ""


_BARE = Wording()


def rate_chart(
    heading: Heading,
    axes: Axes,
    rows: tuple[tuple[Any, ...], ...],
    order: Sequence[str],
    wording: Wording = _BARE,
    *,
    extra: Sequence[dict[str, Any]] = (),
) -> Figure:
    """Returns a chart of rates over an axis, one line a series.

    Args:
        axes: the axis, which may be an offered rate on the scale of the rates, and the rate.
        rows: the data in the order of ``interval_columns``.
        order: all series of the page.
        extra: further layers, below these.
    """
    unit, note = wording.unit, wording.note
    return Figure(
        id=heading.id,
        kind=heading.kind,
        title=heading.title,
        text=" ".join(filter(None, (finding(rows, unit), note))),
        aria=" ".join(filter(None, (best_text(rows, unit), wording.detail, note))),
        values=(*((axes.x.name,) if axes.equal else ()), axes.y.name, "low", "high"),
        spec=interval_spec(axes, rows, order, extra=extra),
        columns=interval_columns(axes.x, axes.y),
        rows=rows,
    )


def _sweep_point(result: Result, point: SweepPoint) -> tuple[Any, ...]:
    offered = (point.load_pps or point.offered_pps) / 1e6
    received = scaled(point.throughput_pps, 1e-6)
    return (result.case, path_of(result), offered, received, None, None, False, MEASURED)


def _load_points(result: Result) -> list[tuple[Any, ...] | None]:
    """Returns the rows of a result over offered load: one for a fixed rate, several for a sweep, and published ones."""
    if result.metric == "fixed":
        asked = result.point.rate.pps
        offered = number(result, result.frames.offered_pps) if asked is None else asked * result.point.senders
        if not offered:
            return []
        return [
            row(result, offered / 1e6, result.frames.throughput_pps, 1e-6),
            *published_rows(result, offered / 1e6, 1e-6),
        ]
    if number(result, result.frames.throughput_pps) is None:
        return []
    return [_sweep_point(result, point) for point in result.rates.sweep]


def _load_chart(id_: str, what: str, rows: tuple[tuple[Any, ...], ...], order: Sequence[str]) -> Figure:
    heading = Heading(id_, "load", f"Received against offered: {what}")
    axes = Axes(OFFERED, Column("received", "received, Mpps"), equal=True)
    return rate_chart(heading, axes, rows, order, Wording(note="Dotted line: all that is offered arrives."))


def by_load(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of A2: received against offered rate, from fixed rates and the points of sweeps."""
    figures = []
    groups = grouped(results, lambda result: traffic(result)._replace(rate=""))
    for place, (key, group) in enumerate(groups.items()):
        rows = _present(point for result in group for point in _load_points(result))
        if _several_loads(rows):
            figures.append(_load_chart(f"load-{place}", key.say("rate"), rows, order))
    return figures


def bursts_by_load(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each path with sweeps at several bursts, one line a burst."""
    groups = grouped(results, lambda result: (path_of(result), traffic(result)._replace(rate="", burst=0)))
    figures: list[Figure] = []
    for (path, key), group in sorted(groups.items(), key=lambda item: order.index(item[0][0])):
        points = [(result, point) for result in group for point in _load_points(result)]
        # The series are bursts instead of paths, named as in ids.
        rows = _present(
            point and (point[0], f"b{traffic(result).burst}", *point[2:])
            for result, point in points
            if point and point[7] == MEASURED
        )
        bursts = sorted({traffic(result).burst for result in group})
        if len(bursts) < 2 or not _several_loads(rows):
            continue
        names = [f"b{burst}" for burst in bursts]
        figures.append(
            _load_chart(f"load-bursts-{len(figures)}", f"{path} by burst, {key.say('rate', 'burst')}", rows, names)
        )
        if len(figures) == MOST_OF_BURSTS:
            break
    return figures


def _several_loads(rows: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a series has the two points or more that a line needs."""
    return any(len({row[2] for row in of_series}) > 1 for of_series in grouped(rows, lambda row: row[1]).values())


def one_size(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a dot plot for each traffic whose maximum was measured with one packet size.

    ``results``: results of throughput.
    """
    figures = []
    groups = grouped(maxima(results), lambda result: (result.metric, traffic(result)._replace(packet_size=0)))
    for place, ((metric, _), group) in enumerate(groups.items()):
        if len({traffic(result).packet_size for result in group}) > 1:
            continue
        key, y = traffic(group[0]), Column("rate", f"{metric}, Mpps")
        rows = [point for result in group for point in _rate(result, float(key.packet_size))]
        figures += dot_plot(
            f"one-size-{place}", "size", f"{METRIC_NAMES[metric].capitalize()}: {key.say()}", rows, (SIZE, y), order
        )
    return figures


def one_load(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a dot plot for each traffic that several paths were offered at one rate, such as table 5.2 of A1.

    ``results``: results of throughput.
    """
    fixed = [result for result in results if result.metric == "fixed" and result.frames.loss_event_count is None]
    figures = []
    for place, group in enumerate(grouped(fixed, without_rate).values()):
        paths = [path_of(result) for result in group]
        if len(paths) < 2 or len(set(paths)) < len(paths):
            continue
        key, y = traffic(group[0]), Column("received", "received, Mpps")
        rows = [point for result in group for point in _rate(result, _offered(result))]
        figures += dot_plot(f"one-load-{place}", "load", f"Received: {key.say()}", rows, (OFFERED, y), order)
    return figures


def _offered(result: Result) -> float:
    pps = result.point.rate.pps
    return (result.frames.offered_pps or 0.0) / 1e6 if pps is None else pps * result.point.senders / 1e6


def _rate(result: Result, x: float) -> list[tuple[Any, ...]]:
    """Returns the measured and the published rates of a result; none without a measured rate."""
    point = row(result, x, result.frames.throughput_pps, 1e-6)
    return [] if point is None else [point, *published_rows(result, x, 1e-6)]
