# SPDX-License-Identifier: BSD-3-Clause
"""The charts of rates over an axis; those of round-trip times are in ``latency``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytest_icbench.model.result import Result
from pytest_icbench.model.trials import SweepPoint
from pytest_icbench.report.axes import MAXIMA, METRIC_NAMES, grouped, number, path_of, short, traffic
from pytest_icbench.report.figure.figure import MEASURED, Column, Figure, interval_columns, interval_spec
from pytest_icbench.report.figure.ideal import IDEAL, growth, ideal_lines
from pytest_icbench.report.figure.link import limit_by_size
from pytest_icbench.report.figure.published import stated
from pytest_icbench.stats.quantiles import Estimate

OFFERED = Column("offered", "offered, Mpps")
SIZE = Column("size", "packet size, bytes with FCS")
PAIRS = Column("pairs", "pairs")

#: Rates in the charts' units: the function that reads them from a result, the unit, and the factor to it.
_Rate = tuple[Callable[[Result], Estimate | None], str, float]
_PPS: _Rate = (lambda result: result.throughput_pps, "Mpps", 1e-6)
_GBPS: _Rate = (lambda result: result.throughput_gbps, "Gbit/s", 1.0)


def all_series(results: Iterable[Result]) -> list[str]:
    """Returns the paths of the page in the order in which they were measured."""
    return list(dict.fromkeys(path_of(result) for result in results))


def row(
    result: Result, x: float, figure: Estimate | None, factor: float, *, least: bool | None = None
) -> tuple[Any, ...] | None:
    """Returns a row of ``interval_columns``; None where the result has no such value.

    Args:
        x: the value on the horizontal axis.
        figure: the result's value, which is multiplied by ``factor``.
        least: whether the value is "at least"; by default the result says so.
    """
    figure = number(result, figure)
    if figure is None:
        return None
    return (
        result.case,
        path_of(result),
        x,
        _scaled(figure, factor),
        _scaled(figure.low, factor),
        _scaled(figure.high, factor),
        result.lower_bound if least is None else least,
        MEASURED,
    )


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else float(f"{value * factor:.7g}")


def published_rows(result: Result, x: float, factor: float) -> list[tuple[Any, ...]]:
    """Returns rows of the published values of the case; ``factor`` converts frames per second to the chart's unit."""
    return [
        (
            result.case,
            f"{path_of(result)}: {publication.label}",
            x,
            _scaled(publication.value, factor),
            None,
            None,
            False,
            f"published, {publication.label}: {publication.source}; {publication.hardware}",
        )
        for publication in stated(result)
    ]


def _present(rows: Iterable[tuple[Any, ...] | None]) -> tuple[tuple[Any, ...], ...]:
    return tuple(sorted((row for row in rows if row is not None), key=lambda row: (str(row[1]), float(row[2]))))


def best_text(rows: Sequence[tuple[Any, ...]], unit: str, *, least_wins: bool = False) -> str:
    """Returns the text alternative: the best measured point and the range of each series."""
    measured = [row for row in rows if row[7] == MEASURED]
    if not measured:
        return ""
    best = (min if least_wins else max)(measured, key=lambda row: float(row[3]))
    parts = [f"{'Least' if least_wins else 'Greatest'}: {best[1]} with {short(best[3])} {unit}."]
    for name, series_rows in _by_series(measured).items():
        values = [float(row[3]) for row in series_rows]
        parts.append(
            f"{name}: {short(min(values))} to {short(max(values))}."
            if len(series_rows) > 1
            else f"{name}: {short(values[0])}."
        )
    if len(measured) < len(rows):
        parts.append("Hollow diamonds are published values from other hardware.")
    return " ".join(parts)


def finding(rows: Sequence[tuple[Any, ...]], unit: str, *, least_wins: bool = False) -> str:
    """Returns the caption: the best measured point, and what diamonds are."""
    measured = [row for row in rows if row[7] == MEASURED]
    if not measured:
        return ""
    best = (min if least_wins else max)(measured, key=lambda row: float(row[3]))
    text = f"{'Least' if least_wins else 'Greatest'}: {best[1]}, {'≥ ' if best[6] else ''}{short(best[3])} {unit}."
    return text + (" Hollow diamonds: published values, other hardware." if len(measured) < len(rows) else "")


def _by_series(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    rows_by_series: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        rows_by_series.setdefault(str(row[1]), []).append(row)
    return rows_by_series


def _sweep_point(result: Result, point: SweepPoint) -> tuple[Any, ...]:
    offered = (point.load_pps or point.offered_pps) / 1e6
    received = _scaled(point.throughput_pps, 1e-6)
    return (result.case, path_of(result), offered, received, None, None, False, MEASURED)


def by_load(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of A2: received against offered rate, from fixed rates and the points of sweeps."""

    def points(result: Result) -> list[tuple[Any, ...] | None]:
        if result.metric == "fixed":
            asked = result.point.rate.pps
            offered = number(result, result.offered_pps) if asked is None else asked * result.point.pairs
            if not offered:
                return []
            return [
                row(result, offered / 1e6, result.throughput_pps, 1e-6),
                *published_rows(result, offered / 1e6, 1e-6),
            ]
        if number(result, result.throughput_pps) is None:
            return []
        return [_sweep_point(result, point) for point in result.sweep]

    figures = []
    groups = grouped(results, lambda result: traffic(result)._replace(rate=""))
    for place, (key, group) in enumerate(groups.items()):
        rows = _present(point for result in group for point in points(result))
        if not any(len({row[2] for row in series_rows}) > 1 for series_rows in _by_series(rows).values()):
            continue
        y = Column("received", "received, Mpps")
        figures.append(
            Figure(
                id=f"load-{place}",
                kind="load",
                title=f"Received against offered: {key.say('rate')}",
                text="Dotted line: all that is offered arrives.",
                aria=best_text(rows, "Mpps"),
                spec=interval_spec(OFFERED, y, rows, order, equal=True),
                values=("offered", "received", "low", "high"),
                columns=interval_columns(OFFERED, y),
                rows=rows,
            )
        )
    return figures


def _maxima(results: Iterable[Result]) -> list[Result]:
    return [result for result in results if result.metric in MAXIMA and not result.back_to_back]


def by_size(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of A3, A4 and A5: the maximum in frames and in bits; ``single`` has those of one size."""
    figures = []
    groups = grouped(_maxima(results), lambda result: (result.metric, traffic(result)._replace(packet_size=0)))
    for place, ((metric, key), group) in enumerate(groups.items()):
        if len({traffic(result).packet_size for result in group}) < 2:
            continue
        for figure_of, unit, factor in (_PPS, _GBPS):
            rows = _present(
                chart_row
                for result in group
                for chart_row in (
                    row(result, result.point.traffic.mean_bytes, figure_of(result), factor),
                    *published_rows(result, result.point.traffic.mean_bytes, _per_frame(result, unit)),
                )
            )
            if not rows:
                continue
            y = Column("rate", f"{metric}, {unit}")
            limits = limit_by_size(group, (SIZE.name, y.name), bits=factor == 1.0)
            figures.append(
                Figure(
                    id=f"size-{place}-{'pps' if factor < 1 else 'gbps'}",
                    kind="size",
                    title=f"{METRIC_NAMES[metric].capitalize()} in {unit}: {key.say('packet_size')}",
                    text=finding(rows, unit),
                    aria=best_text(rows, unit),
                    values=("rate", "low", "high"),
                    spec=interval_spec(SIZE, y, rows, order, log_x=True, extra=limits),
                    columns=interval_columns(SIZE, y),
                    rows=rows,
                )
            )
    return figures


def _per_frame(result: Result, unit: str) -> float:
    return 1e-6 if unit == "Mpps" else result.point.traffic.gbps_per_pps


def by_pairs(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of A6: the mean rate of the pairs (M), and their total (T) beside the ideal lines."""
    figures = []
    groups = grouped(_maxima(results), lambda result: (result.metric, traffic(result)._replace(pairs=0)))
    for place, ((metric, key), group) in enumerate(groups.items()):
        if len({traffic(result).pairs for result in group}) < 2:
            continue
        for quantity in ("Mean of the pairs (M)", "Total (T)"):
            total = quantity.startswith("Total")
            rows = _present(
                row(
                    result, result.point.pairs, result.throughput_pps if total else result.throughput_per_pair_pps, 1e-6
                )
                for result in group
            )
            if not rows:
                continue
            y = Column("rate", f"{metric}, Mpps")
            figures.append(
                Figure(
                    id=f"pairs-{place}-{'t' if total else 'm'}",
                    kind="pairs",
                    title=f"{quantity} against pairs: {key.say('pairs')}",
                    text=finding(rows, "Mpps"),
                    aria=best_text(rows, "Mpps") + (f" {growth(rows, 'pair')} {IDEAL}" if total else ""),
                    values=("rate", "low", "high"),
                    spec=interval_spec(
                        PAIRS, y, rows, order, log_x=True, extra=[ideal_lines(rows, order, PAIRS, y)] if total else []
                    ),
                    columns=interval_columns(PAIRS, y),
                    rows=rows,
                )
            )
    return figures
