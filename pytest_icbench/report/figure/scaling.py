# SPDX-License-Identifier: BSD-3-Clause
"""Rates against worker cores and against pairs, beside what an ideal path or the link would carry. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_icbench.model.result import Result
from pytest_icbench.report.axes import MAXIMA, grouped, path_of, short, traffic
from pytest_icbench.report.figure.figure import Column, Figure, interval_columns, interval_spec
from pytest_icbench.report.figure.figures import PAIRS, SIZE, best_text, row
from pytest_icbench.report.figure.ideal import IDEAL, growth, ideal_lines
from pytest_icbench.report.figure.link import limit_across, link_gbps
from pytest_icbench.stats.quantiles import Estimate

CORES = Column("cores", "worker cores of the switch")

#: A row of ``interval_columns``.
_Row = tuple[Any, ...]


def core_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns the charts of A10: the rate against worker cores, one line a path, with the ideal lines.

    Args:
        results: results of throughput.
        order: all series of the page; paths without their cores are added to it.
    """
    cored = [result for result in _maxima(results) if result.point.switch_cores is not None]
    figures = []
    for place, ((metric, key), group) in enumerate(grouped(cored, lambda item: (item.metric, traffic(item))).items()):
        points = _rows(group, lambda item: item.point.switch_cores or 1, lambda item: item.throughput_pps, 1e-6)
        rows = _present((point[0], without_cores(result), *point[2:]) for point, result in points)
        if len({row[2] for row in rows}) < 2:
            continue
        y = Column("rate", f"{metric}, Mpps")
        names = [*order, *(name for name in dict.fromkeys(row[1] for row in rows) if name not in order)]
        figures.append(
            Figure(
                id=f"cores-{place}",
                kind="cores",
                title=f"Rate against worker cores: {key.say()}",
                text=f"{growth(rows, 'core')} {IDEAL}",
                aria=f"{best_text(rows, 'Mpps')} {growth(rows, 'core')} {IDEAL}",
                values=("rate", "low", "high"),
                spec=interval_spec(CORES, y, rows, names, log_x=True, extra=[ideal_lines(rows, names, CORES, y)]),
                columns=interval_columns(CORES, y),
                rows=rows,
            )
        )
    return figures


def pair_figures(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns the charts of A7: the total over two hosts against pairs in Gbit/s, with the link's limit if it is known.

    Args:
        results: results of throughput.
        order: all series of the page.
    """
    figures = []
    remote = [result for result in _maxima(results) if result.point.remote]
    groups = grouped(remote, lambda item: (item.metric, traffic(item)._replace(pairs=0)))
    for place, ((metric, key), group) in enumerate(groups.items()):
        by_pairs: Callable[[Result], int] = lambda item: item.point.pairs  # noqa: E731
        bits = _present(row for row, _ in _rows(group, by_pairs, lambda item: item.throughput_gbps, 1.0))
        if len({row[2] for row in bits}) < 2:
            continue
        limit = link_gbps(group[0])
        y = Column("rate", f"{metric}, Gbit/s")
        figures.append(
            Figure(
                id=f"scaling-{place}-gbps",
                kind="pairs",
                title=f"Total (T) in Gbit/s against pairs: {key.say('pairs')}",
                text=best_text(bits, "Gbit/s") + _limit_text(limit),
                values=("rate", "low", "high"),
                spec=interval_spec(
                    PAIRS,
                    y,
                    bits,
                    order,
                    log_x=True,
                    extra=[] if limit is None else limit_across(limit, y.name, "Gbit/s"),
                ),
                columns=interval_columns(PAIRS, y),
                rows=bits,
            )
        )
    return figures


def mean_by_size(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns the mean of the pairs (M) against packet size, a chart for each number of pairs beyond one.

    Args:
        results: results of throughput.
        order: all series of the page.
    """
    several = [result for result in _maxima(results) if result.point.pairs > 1]
    figures = []
    groups = grouped(several, lambda item: (item.metric, traffic(item)._replace(packet_size=0)))
    for place, ((metric, key), group) in enumerate(groups.items()):
        rows = _present(row for row, _ in _rows(group, lambda item: item.point.traffic.mean_bytes, _per_pair, 1e-6))
        if len({row[2] for row in rows}) < 2:
            continue
        y = Column("rate", f"{metric}, Mpps a pair")
        figures.append(
            Figure(
                id=f"mean-{place}",
                kind="pairs",
                title=f"Mean of the pairs (M) against packet size: {key.say('packet_size')}",
                text=best_text(rows, "Mpps a pair"),
                values=("rate", "low", "high"),
                spec=interval_spec(SIZE, y, rows, order, log_x=True),
                columns=interval_columns(SIZE, y),
                rows=rows,
            )
        )
    return figures


def without_cores(result: Result) -> str:
    """Returns the path's name without its number of worker cores."""
    return path_of(replace(result, axes={**result.axes, "switch_cores": None}))


def _per_pair(result: Result) -> Estimate | None:
    return result.throughput_per_pair_pps


def _maxima(results: Iterable[Result]) -> list[Result]:
    return [result for result in results if result.metric in MAXIMA and not result.back_to_back]


def _rows(
    group: Iterable[Result], x: Callable[[Result], int], value: Callable[[Result], Estimate | None], factor: float
) -> list[tuple[_Row, Result]]:
    pairs = ((row(result, x(result), value(result), factor), result) for result in group)
    return [(chart_row, result) for chart_row, result in pairs if chart_row is not None]


def _present(rows: Iterable[_Row]) -> tuple[_Row, ...]:
    return tuple(sorted(rows, key=lambda row: (str(row[1]), float(row[2]))))


def _limit_text(limit: float | None) -> str:
    return "" if limit is None else f" The link carries {short(limit)} Gbit/s of such frames."
