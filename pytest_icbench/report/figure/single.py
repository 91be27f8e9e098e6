# SPDX-License-Identifier: BSD-3-Clause
"""Charts of a traffic that was measured at one point only: the paths in order, not a pile above one size. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display.axes import METRIC_NAMES, Traffic, grouped, maxima, number, of_kind, path_of, traffic
from pytest_icbench.display.chart import Column, Figure
from pytest_icbench.model.figures import Latency
from pytest_icbench.model.result import Result
from pytest_icbench.report.figure.delay import covered
from pytest_icbench.report.figure.figures import OFFERED, SIZE, best_text, finding, published_rows, row, scaled
from pytest_icbench.report.figure.ranked import STEP, dot_columns, dot_rows, dot_spec

_P99 = Column("p99", "99th percentile RTT, µs")


def one_size(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a dot plot for each traffic whose maximum was measured with one packet size.

    Args:
        results: results of throughput.
        order: all series of the page.
    """
    figures = []
    groups = grouped(maxima(results), lambda result: (result.metric, traffic(result)._replace(packet_size=0)))
    for place, ((metric, _), group) in enumerate(groups.items()):
        if len({traffic(result).packet_size for result in group}) > 1:
            continue
        key, y = traffic(group[0]), Column("rate", f"{metric}, Mpps")
        rows = [point for result in group for point in _rate(result, float(key.packet_size))]
        figures += _figure(
            f"one-size-{place}", "size", f"{METRIC_NAMES[metric].capitalize()}: {key.say()}", rows, (SIZE, y), order
        )
    return figures


def one_load(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a dot plot for each traffic that several paths were offered at one rate, as of table 5.2 of A1.

    Args:
        results: results of throughput.
        order: all series of the page.
    """
    fixed = [result for result in results if result.metric == "fixed" and result.frames.loss_event_count is None]
    figures = []
    for place, group in enumerate(grouped(fixed, _any_rate).values()):
        paths = [path_of(result) for result in group]
        if len(paths) < 2 or len(set(paths)) < len(paths):
            continue
        key, y = traffic(group[0]), Column("received", "received, Mpps")
        rows = [point for result in group for point in _rate(result, _offered(result))]
        figures += _figure(f"one-load-{place}", "load", f"Received: {key.say()}", rows, (OFFERED, y), order)
    return figures


def one_time(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns a dot plot for each traffic whose round trips were measured with one packet size and at one load.

    Args:
        results: results of both dimensions.
        order: all series of the page.
    """
    times = of_kind(results, Latency)
    several = covered(results)
    figures = []
    for place, group in enumerate(grouped(times, lambda item: traffic(item)._replace(packet_size=0)).values()):
        if len({traffic(result).packet_size for result in group}) > 1 or _any_rate(group[0]) in several:
            continue
        key, y = traffic(group[0]), Column("rtt", "median RTT, µs")
        rows = [point for result in group if (point := _time(result, float(key.packet_size))) is not None]
        title = f"Median round-trip time: {key.say()}"
        figures += _figure(f"one-time-{place}", "latency", title, rows, (SIZE, y, _P99), order, unit="µs")
    return figures


def _figure(
    id_: str,
    kind: str,
    title: str,
    rows: Sequence[tuple[Any, ...]],
    columns: tuple[Column, ...],
    order: Sequence[str],
    *,
    unit: str = "Mpps",
) -> list[Figure]:
    drawn = dot_rows(rows, unit, least_wins=unit == "µs")
    if not drawn:
        return []
    text, aria = (say(rows, unit, least_wins=unit == "µs") for say in (finding, best_text))
    spec = dot_spec(columns[1], drawn, order, *columns[2:])
    height = STEP * (1 + max(row[9] for row in drawn))
    return [Figure(id_, kind, title, text, spec, dot_columns(*columns), drawn, aria, height=height)]


def _time(result: Result, x: float) -> tuple[Any, ...] | None:
    point, p99 = (
        row(result, x, result.round_trips.rtt_p50_ns, 1e-3, least=False),
        number(result, result.round_trips.rtt_p99_ns),
    )
    return None if point is None else (*point, scaled(p99, 1e-3))


def _any_rate(result: Result) -> Traffic:
    return traffic(result)._replace(rate="")


def _offered(result: Result) -> float:
    pps = result.point.rate.pps
    return (result.frames.offered_pps or 0.0) / 1e6 if pps is None else pps * result.point.senders / 1e6


def _rate(result: Result, x: float) -> list[tuple[Any, ...]]:
    """Returns the measured and the published rates of a result; published ones without a measured one are left out."""
    point = row(result, x, result.frames.throughput_pps, 1e-6)
    return [] if point is None else [point, *published_rows(result, x, 1e-6)]
