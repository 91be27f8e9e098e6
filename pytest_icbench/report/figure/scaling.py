# SPDX-License-Identifier: BSD-3-Clause
"""The charts of maxima over an axis of the cases: packet size, pairs, worker cores, length of a chain. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import (
    METRIC_NAMES,
    Traffic,
    gbps_per_pps,
    maxima,
    path_of,
    short,
    traffic,
    without_length,
)
from pytest_icbench.display.chart import Axes, Column, Figure, with_own
from pytest_icbench.display.points import LENGTH, SIZE, row
from pytest_icbench.model.measurement import Result
from pytest_icbench.report.figure.rate_charts import PAIRS, Heading, Wording, published_rows, rate_chart
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import grouped

#: The sentences on the dotted lines in a chart's text; the second is for lines through each function's best path.
IDEAL = "Dotted: the ideal, if each added as much as the first."
BENCHMARK = "Dotted: the rate of the best path through one function, times their number."
#: The lines end at this multiple of the greatest value, since higher ones would flatten the measured values.
MOST = 1.4


def growth(rows: Sequence[tuple[Any, ...]], unit: str) -> str:
    """Returns the last value as a share of the ideal one, for each series."""
    sentences = []
    for name, points in grouped(rows, lambda row: row[1]).items():
        first, last = points[0], points[-1]
        if last[2] > first[2] and first[3]:
            share = last[3] / (first[3] * last[2] / first[2])
            sentences.append(f"{name}: {last[2]} {unit}s carry {short(share * 100)} % of the ideal.")
    return " ".join(sentences)


def ideal_lines(rows: Sequence[tuple[Any, ...]], order: Sequence[str], x: Column, y: Column) -> dict[str, Any]:
    """Returns a layer of dotted lines: the value of each series' first point, times the cores or pairs."""
    series = grouped(rows, lambda row: row[1]).values()
    return _lines([(of_one[0], of_one[-1][2]) for of_one in series], rows, order, x, y)


def single_bests(
    rows: Sequence[tuple[Any, ...]], function_of: Mapping[str, str | None]
) -> dict[str, tuple[Any, ...]] | None:
    """Returns the row of each function's best path with one function; None unless each function has one.

    ``function_of``: the function of each case.
    """
    bests: dict[str, tuple[Any, ...]] = {}
    for function, of_one in grouped(rows, lambda row: function_of.get(row[0])).items():
        singles = [row for row in of_one if row[2] == 1]
        if function is None or not singles:
            return None
        bests[function] = max(singles, key=lambda row: float(row[3]))
    return bests


def benchmark_growth(
    rows: Sequence[tuple[Any, ...]], function_of: Mapping[str, str | None], bests: Mapping[str, tuple[Any, ...]]
) -> str:
    """Returns the rate of the greatest number of functions as a share of the dotted line, for each path."""
    sentences = []
    for name, of_one in grouped(rows, lambda row: row[1]).items():
        last, best = of_one[-1], bests[str(function_of[of_one[-1][0]])]
        if last[2] > 1 and best[3]:
            share = last[3] / (best[3] * last[2])
            sentences.append(f"{name}: {last[2]} functions carry {short(share * 100)} % of the line.")
    return " ".join(sentences)


def _lines(
    series_ends: Sequence[tuple[tuple[Any, ...], float]],
    rows: Sequence[tuple[Any, ...]],
    order: Sequence[str],
    x: Column,
    y: Column,
) -> dict[str, Any]:
    """Returns a layer of lines. Each lies on a line from 0 through its row, and begins at the row.

    ``series_ends``: the rows, each with the end of its line.
    """
    points = []
    cap = MOST * max(float(row[3]) for row in rows)
    for first, last in series_ends:
        share = first[3] / first[2]
        if share:
            end = min(float(last), cap / share)
            steps = sorted({row[2] for row in rows if first[2] <= row[2] < end} | {end})
            points += [{"series": first[1], x.name: step, y.name: share * step} for step in steps]
    series = sorted({row[1] for row in rows}, key=list(order).index)
    colour = {"field": "series", "type": "nominal", "scale": theme.series_scales(series, order)["color"]}
    return {
        "data": {"values": points},
        "mark": {"type": "line", "strokeDash": [1, 4], "strokeWidth": 1.5, "strokeCap": "round", "clip": True},
        "encoding": {
            "x": {"field": x.name, "type": "quantitative"},
            "y": {"field": y.name, "type": "quantitative"},
            "color": {**colour, "legend": {"title": None}},
        },
    }


def link_pps(result: Result) -> float | None:
    """Returns the frames per second that the link between the hosts of a case carries; None if unknown."""
    mbps = result.treatment.get("uplink_mbps")
    if not result.point.remote or not isinstance(mbps, int | float) or mbps <= 0:
        return None
    return result.point.traffic.line_pps(mbps)


def link_gbps(result: Result) -> float | None:
    """Returns the limit of the link in Gbit/s on layer 2."""
    pps = link_pps(result)
    return None if pps is None else pps * gbps_per_pps(result)


def limit_by_size(results: Iterable[Result], rate: str, *, bits: bool) -> list[dict[str, Any]]:
    """Returns a layer with the limit over packet sizes; none if it is unknown.

    Args:
        rate: its name in the chart's data.
        bits: whether it is in Gbit/s, and not in Mpps.
    """
    limits: dict[float, float] = {}
    for result in results:
        pps = link_pps(result)
        if pps is not None:
            gbps = pps * result.point.traffic.gbps_per_pps
            limits[result.point.traffic.mean_bytes] = gbps if bits else pps / 1e6
    if not limits:
        return []
    points = [{SIZE.name: bytes_, rate: limit} for bytes_, limit in sorted(limits.items())]
    at = {"x": {"field": SIZE.name, "type": "quantitative"}, "y": {"field": rate, "type": "quantitative"}}
    name = {"type": "text", "text": "the link's limit", "align": "right", "dy": -8, "color": theme.INK}
    return [
        {
            "data": {"values": points},
            "mark": {"type": "line", "color": theme.INK, "strokeDash": [6, 3], "strokeWidth": 1.2, "clip": True},
            "encoding": at,
        },
        {"data": {"values": points[-1:]}, "mark": name, "encoding": at},
    ]


#: A row of ``interval_columns``, and layers of Vega-Lite.
_Row = tuple[Any, ...]
_Layers = list[dict[str, Any]]


@dataclass(frozen=True)
class _Axis:
    """An axis of cases: its column, a result's value, and the field of the traffic that it is, if it is one."""

    column: Column
    at: Callable[[Result], float]
    part: str = ""

    def others(self, result: Result) -> Traffic:
        """Returns the traffic of a result without the axis."""
        none: dict[str, Any] = {self.part: 0} if self.part else {}
        return traffic(result)._replace(**none)


_SIZES = _Axis(SIZE, lambda result: result.point.traffic.mean_bytes, "packet_size")
_NUMBERS = _Axis(PAIRS, lambda result: result.point.pairs, "pairs")
_CORES = _Axis(Column("cores", "worker cores of the switch"), lambda result: result.point.switch_cores or 1)


@dataclass(frozen=True)
class _Rates:
    """A kind of charts: one for each metric and each traffic, apart from its axis.

    Attributes:
        id: the id of a chart, with the number of the traffic in it.
        kind: the section.
        title: what it shows, with the name of the metric in it.
        value: the rate of a result, with its unit in ``unit`` after multiplication by ``factor``.
        wanted: predicate of the results that the charts show.
        series: returns the name of a result's line.
        published: the factor of published rates to the unit; None if none are shown.
        layers: further layers of a chart, of its results, rows, series and rate.
        note: a sentence on its results and rows.
        detail: further sentences, for readers who cannot see the chart.
    """

    id: str
    kind: str
    title: str
    axis: _Axis
    value: Callable[[Result], Estimate | None] = lambda result: result.frames.throughput_pps
    unit: str = "Mpps"
    factor: float = 1e-6
    wanted: Callable[[Result], bool] = lambda _: True
    series: Callable[[Result], str] = path_of
    published: Callable[[Result], float] | None = None
    layers: Callable[[Sequence[Result], Sequence[_Row], Sequence[str], Column], _Layers] = lambda *_: []
    note: Callable[[Sequence[Result], Sequence[_Row]], str] = lambda *_: ""
    detail: Callable[[Sequence[Result], Sequence[_Row]], str] = lambda *_: ""


def _functions(group: Sequence[Result]) -> dict[str, str | None]:
    """Returns the network function of each case; a case may have several results."""
    return {result.case: result.point.function for result in group}


def _ideal_or_benchmark(group: Sequence[Result], rows: Sequence[_Row], names: Sequence[str], rate: Column) -> _Layers:
    """Returns dotted lines: the ideal, or for each function what its best path carries, times the number."""
    functions = _functions(group)
    bests = single_bests(rows, functions)
    if bests is None:
        return [ideal_lines(rows, names, PAIRS, rate)]
    most = {function: max(row[2] for row in rows if functions.get(row[0]) == function) for function in bests}
    return [_lines([(best, most[function]) for function, best in bests.items()], rows, names, PAIRS, rate)]


def _pairs_growth(group: Sequence[Result], rows: Sequence[_Row]) -> str:
    functions = _functions(group)
    bests = single_bests(rows, functions)
    return growth(rows, "pair") if bests is None else benchmark_growth(rows, functions, bests)


def _limit(group: Sequence[Result], _rows: Sequence[_Row], _names: Sequence[str], rate: Column) -> _Layers:
    """Returns a horizontal line at the limit of the link, and its name; nothing if it is unknown."""
    limit = link_gbps(group[0])
    if limit is None:
        return []
    y = {"field": rate.name, "type": "quantitative"}
    data = {"values": [{rate.name: limit, "text": f"the link's limit, {short(limit)} Gbit/s"}]}
    return [
        {"data": data, "mark": {"type": "rule", "color": theme.INK, "strokeDash": [6, 3]}, "encoding": {"y": y}},
        {
            "data": data,
            "mark": {"type": "text", "align": "left", "dx": 6, "dy": -8, "color": theme.INK},
            "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "text"}},
        },
    ]


def _limit_text(group: Sequence[Result], _rows: Sequence[_Row]) -> str:
    limit = link_gbps(group[0])
    return "" if limit is None else f"The link carries {short(limit)} Gbit/s of such frames."


_BY_SIZE = (
    _Rates(
        "size-{}-pps",
        "size",
        "{metric} in Mpps",
        _SIZES,
        published=lambda _: 1e-6,
        layers=lambda group, _, __, rate: limit_by_size(group, rate.name, bits=False),
    ),
    _Rates(
        "size-{}-gbps",
        "size",
        "{metric} in Gbit/s",
        _SIZES,
        lambda result: result.frames.throughput_gbps,
        "Gbit/s",
        1.0,
        published=gbps_per_pps,
        layers=lambda group, _, __, rate: limit_by_size(group, rate.name, bits=True),
    ),
)
_BY_PAIRS = (
    _Rates(
        "pairs-{}-m",
        "pairs",
        "Mean of the pairs (M) against pairs",
        _NUMBERS,
        lambda item: item.frames.throughput_per_pair_pps,
    ),
    _Rates(
        "pairs-{}-t",
        "pairs",
        "Total (T) against pairs",
        _NUMBERS,
        layers=_ideal_or_benchmark,
        note=lambda group, rows: IDEAL if single_bests(rows, _functions(group)) is None else BENCHMARK,
        detail=_pairs_growth,
    ),
)
_MEAN_BY_SIZE = (
    _Rates(
        "mean-{}",
        "pairs",
        "Mean of the pairs (M) against packet size",
        _SIZES,
        lambda result: result.frames.throughput_per_pair_pps,
        "Mpps a pair",
        wanted=lambda result: result.point.pairs > 1,
    ),
)
_GBPS_BY_PAIRS = (
    _Rates(
        "scaling-{}-gbps",
        "pairs",
        "Total (T) in Gbit/s against pairs",
        _NUMBERS,
        lambda result: result.frames.throughput_gbps,
        "Gbit/s",
        1.0,
        wanted=lambda result: result.point.remote,
        layers=_limit,
        note=_limit_text,
    ),
)
_BY_CORES = (
    _Rates(
        "cores-{}",
        "cores",
        "Rate against worker cores",
        _CORES,
        wanted=lambda result: result.point.switch_cores is not None,
        series=lambda result: path_of(replace(result, axes={**result.axes, "switch_cores": None})),
        layers=lambda _, rows, names, rate: [ideal_lines(rows, names, _CORES.column, rate)],
        note=lambda _, rows: f"{growth(rows, 'core')} {IDEAL}",
    ),
)


def by_size(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of A3, A4 and A5: the maximum in frames and in bits; ``single`` has those of one size."""
    return _charts(_BY_SIZE, results, order)


def by_pairs(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of A6 and A7: mean (M) and total (T) of the pairs, with the ideal lines and the link's limit."""
    return [chart for kinds in (_BY_PAIRS, _MEAN_BY_SIZE, _GBPS_BY_PAIRS) for chart in _charts(kinds, results, order)]


def by_cores(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of A10: the rate against worker cores, one line a path without its cores, with the ideal lines."""
    return _charts(_BY_CORES, results, order)


def _charts(kinds: Sequence[_Rates], results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns the charts of kinds with the same axis and results. The charts of one traffic follow each other."""
    axis, wanted = kinds[0].axis, kinds[0].wanted
    groups = grouped(filter(wanted, maxima(results)), lambda result: (result.metric, axis.others(result)))
    figures: list[Figure | None] = []
    for place, ((metric, key), group) in enumerate(groups.items()):
        if len({axis.at(result) for result in group}) > 1:
            load = key.say(*filter(None, [axis.part]))
            figures += [_chart(kind, place, metric, load, group, order) for kind in kinds]
    return [figure for figure in figures if figure is not None]


def _chart(
    kind: _Rates, place: int, metric: str, load: str, group: Sequence[Result], order: Sequence[str]
) -> Figure | None:
    rows = _rows(kind, group)
    if not rows:
        return None
    rate = Column("rate", f"{metric}, {kind.unit}")
    names = with_own(order, rows)
    title = f"{kind.title.format(metric=METRIC_NAMES[metric].capitalize())}: {load}"
    return rate_chart(
        Heading(kind.id.format(place), kind.kind, title),
        Axes(kind.axis.column, rate),
        rows,
        names,
        Wording(kind.unit, kind.note(group, rows), kind.detail(group, rows)),
        extra=kind.layers(group, rows, names, rate),
    )


def _rows(kind: _Rates, group: Iterable[Result]) -> tuple[_Row, ...]:
    rows: list[_Row] = []
    for result in group:
        x, line = kind.axis.at(result), row(result, kind.axis.at(result), kind.value(result), kind.factor)
        rows += [] if line is None else [(line[0], kind.series(result), *line[2:])]
        rows += published_rows(result, x, kind.published(result)) if kind.published else []
    return tuple(sorted(rows, key=lambda line: (str(line[1]), float(line[2]))))


_LENGTH_RATE = Column("rate", "rate, Mpps")
_FLAT_OUT = "Flat out, functions that share a CPU spend it on frames that a later one drops."


def rates_by_length(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of E7: rates against the length of a chain, one line a path and load.

    A chart has both searched rates and rates flat out; the names of the lines say which. ``results``: results of
    throughput.
    """
    figures = []
    chained = (result for result in results if result.point.function is not None and not result.rates.sweep)
    groups = grouped(chained, lambda result: traffic(result)._replace(rate=""))
    for place, (key, group) in enumerate(groups.items()):
        rows = _length_rows(group)
        if len({line[2] for line in rows}) < 2:
            continue
        names = with_own(order, rows)
        flat_out = any(result.metric == "frmol" for result in group)
        heading = Heading(f"chains-{place}", "chains", f"Rate against the length of a chain: {key.say('rate')}")
        wording = Wording(note=_FLAT_OUT if flat_out else "")
        figures.append(rate_chart(heading, Axes(LENGTH, _LENGTH_RATE), rows, names, wording))
    return figures


def _length_rows(group: Sequence[Result]) -> tuple[tuple[Any, ...], ...]:
    rows = []
    for result in group:
        if (line := row(result, result.point.chain, result.frames.throughput_pps, 1e-6)) is not None:
            load = "flat out" if result.metric == "frmol" else traffic(result).rate
            rows.append((line[0], f"{without_length(result)}, {load}", *line[2:]))
    return tuple(sorted(rows, key=lambda line: (str(line[1]), float(line[2]))))
