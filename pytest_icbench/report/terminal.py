# SPDX-License-Identifier: BSD-3-Clause
"""Results as tables of at most 100 columns. Pure: results in, lines out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pytest_icbench.model.result import Result
from pytest_icbench.report import longruns, remarks
from pytest_icbench.report.axes import hosts_apart, hosts_told, is_latency, number
from pytest_icbench.wording import printable, show, wrapped

#: Widest line of a table.
WIDTH = 100

_METRICS = {
    "frmol": "frmol: forwarding rate at maximum offered load (RFC 2285)",
    "fixed": "fixed: rate received at a fixed offered load",
    "ndr": "ndr: conditional throughput of a search for the greatest load without loss (RFC 9971)",
    "pdr": "pdr: conditional throughput of a search for the greatest load with at most the id's loss (RFC 9971)",
    "mfr": "mfr: maximum forwarding rate over several offered loads (RFC 2285)",
}


class _Column(NamedTuple):
    """``head`` can have ``{metric}``: a rate is never shown without it. ``always``: also if no row has a value."""

    head: str
    text: Callable[[Result], str]
    number: bool = True
    always: bool = False


def table(results: Sequence[Result]) -> list[str]:
    """A table for each dimension and metric, one host after the other, and below them what the rows leave to say."""
    apart = hosts_apart(results)
    hosts = list(dict.fromkeys(result.host for result in apart))
    groups: dict[tuple[str, str, str | None], list[Result]] = {}
    for result in sorted(apart, key=lambda result: hosts.index(result.host)):
        key = result.dimension, result.metric, result.host
        groups.setdefault(key, []).append(result)
    lines: list[str] = []
    for (dimension, metric, host), group in groups.items():
        if lines:
            lines.append("")
        on = f" on {host}" if host else ""
        lines += _group(dimension + on, metric, group, _columns(dimension, metric))
        if varied := [result for result in group if number(result, result.pdv_p50_ns) is not None]:
            lines += ["", *_group(f"delay variation (RFC 5481){on}", metric, varied, _VARIATION)]
    told = [line for each in hosts_told(results) for line in wrapped(each, WIDTH)]
    return [*lines, *_notes(apart), *told] if lines else []


def _group(name: str, metric: str, group: Sequence[Result], figures: Sequence[_Column]) -> list[str]:
    common = _common(group)
    title = name + (f", all with {' '.join(common)}" if common else "")
    columns = [_Column("case", lambda result: _label(result, common), number=False, always=True), *figures]
    cells = [[column.text(result) for result in group] for column in columns]
    kept = [place for place, column in enumerate(columns) if column.always or any(cells[place])]
    texts = [[columns[place].head.format(metric=metric), *cells[place]] for place in kept]
    widths = [max(map(len, text)) for text in texts]
    widths[0] = max(min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1)), 8)
    lines = [_cut(title, WIDTH)]
    for row in zip(*texts, strict=True):
        shown = [
            _middle(text, width).rjust(width) if columns[place].number else _middle(text, width).ljust(width)
            for text, width, place in zip(row, widths, kept, strict=True)
        ]
        lines.append("  ".join(shown).rstrip())
    return lines


def _columns(dimension: str, metric: str) -> list[_Column]:
    if dimension == "latency":
        figures = [
            _Column("p50 µs", lambda result: _microseconds(result, result.rtt_p50_ns)),
            _Column("p99 µs", lambda result: _microseconds(result, result.rtt_p99_ns)),
            _Column("first µs", _first),
            _Column("floor µs", lambda result: _microseconds(result, result.floor_p50_ns)),
            _Column("Mpps {metric}", _rate),
        ]
    else:
        figures = [
            _Column("Mpps {metric}", _rate, always=True),
            _Column("bounds" if metric in remarks.SEARCHES else "interval", _interval),
            _Column("Gbit/s", _gbps),
            _Column("train", _train),
        ]
    return [
        *figures,
        _Column("loss %", _loss),
        _Column("ratio", _ratio),
        _Column("limit by", _bottleneck, number=False),
        _Column("verdict", _verdict, number=False, always=True),
    ]


def _microseconds(result: Result, time_ns: float | None) -> str:
    time_ns = number(result, time_ns)
    return "" if time_ns is None else f"{time_ns / 1000:.1f}"


_VARIATION = [
    _Column("p50 µs", lambda result: _microseconds(result, result.pdv_p50_ns)),
    _Column("p90 µs", lambda result: _microseconds(result, result.pdv_p90_ns)),
    _Column("p99 µs", lambda result: _microseconds(result, result.pdv_p99_ns)),
    _Column("p99.9 µs", lambda result: _microseconds(result, result.pdv_p99_9_ns)),
    _Column("max µs", lambda result: _microseconds(result, result.pdv_max_ns)),
]


def summary_line(result: Result) -> str:
    """One result in one line: every rate with its metric."""
    parts = [f"{printable(result.case)}: {_verdict(result)}"]
    if rate := _rate(result):
        interval = _interval(result)
        bracket = f"bounds {interval}" if remarks.is_search(result) else interval
        parts.append(f"{rate} Mpps {result.metric}" + (f" [{bracket}]" if interval else ""))
    if trains := _train(result):
        parts.append(f"{trains} frames back to back")
    for text, unit in ((_gbps, "Gbit/s"), (_loss, "% loss"), (_ratio, "of the reference")):
        if value := text(result):
            parts.append(f"{value} {unit}")
    if is_latency(result):
        p50, p99 = (_microseconds(result, rtt) or "-" for rtt in (result.rtt_p50_ns, result.rtt_p99_ns))
        parts.append(f"RTT p50 {p50} µs, p99 {p99} µs")
    if bottleneck := _bottleneck(result):
        parts.append(f"bottleneck {bottleneck}")
    return ", ".join(parts)


def _rate(result: Result) -> str:
    pps = number(result, result.throughput_pps)
    if pps is None:
        return ""
    return ("≥" if result.lower_bound and not is_latency(result) else "") + remarks.mpps(pps)


def _interval(result: Result) -> str:
    if remarks.is_search(result):
        return remarks.bounds(result, "..")
    pps = number(result, result.throughput_pps)
    if pps is None or pps.low is None or pps.high is None:
        return ""
    return f"{remarks.mpps(pps.low)}..{remarks.mpps(pps.high)}"


def _gbps(result: Result) -> str:
    gbps = number(result, result.throughput_gbps)
    return "" if gbps is None else f"{gbps:.2f}" if gbps >= 1 else f"{gbps:.4f}"


def _loss(result: Result) -> str:
    loss = number(result, result.frame_loss_ratio)
    return "" if loss is None else f"{loss * 100:.2f}"


def _ratio(result: Result) -> str:
    ratio = number(result, result.ratio_to_reference)
    return "" if ratio is None else f"{ratio:.2f}"


def _train(result: Result) -> str:
    return longruns.train(result) or ""


def _first(result: Result) -> str:
    """Worth a column only where a burst has more than its first frame."""
    return "" if result.point.burst == 1 else _microseconds(result, result.rtt_first_p50_ns)


def _bottleneck(result: Result) -> str:
    return printable(result.bottleneck) if result.is_number and result.bottleneck != "unknown" else ""


def _verdict(result: Result) -> str:
    verdict = result.verdict or "-"
    if not result.is_number and result.reason:
        verdict += f" {result.reason}"
    return printable(verdict)


def _parts(result: Result) -> list[str]:
    """The end of an id: the axes that all rows often share."""
    return result.case.rsplit("-", 3)[1:] if result.case.count("-") >= 3 else []


def _common(group: Sequence[Result]) -> list[str]:
    """Burst, pairs and rate, as far as every row has the same: then they need not stand in each."""
    if len(group) < 2 or any(result.point.remote for result in group):
        return []
    tails = [_parts(result) for result in group]
    return [part for part in tails[0] if all(part in tail for tail in tails)]


def _label(result: Result, common: Sequence[str]) -> str:
    case = result.case
    tail = _parts(result)
    if tail and common:
        head = case[: len(case) - len("-".join(tail)) - 1]
        case = "-".join([head, *(part for part in tail if part not in common)])
    return printable(case)


def _middle(text: str, width: int) -> str:
    """The text, its middle left out if it is longer than ``width``: both ends of a case's id say something."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _notes(results: Sequence[Result]) -> list[str]:
    metrics = {result.metric for result in results}
    notes = [text for metric, text in _METRICS.items() if metric in metrics]
    if any(_ratio(result) for result in results):
        notes.append("ratio: to the same applications on the same CPUs with no switch between (latency: p50 over p50)")
    if any(_first(result) for result in results):
        notes.append("first: p50 of frames that were the first of their burst")
    if any(number(result, result.floor_p50_ns) is not None for result in results):
        notes.append("floor: p50 with no switch between: what tool and machine take by themselves")
    if any(_train(result) for result in results):
        notes.append("train: frames of the longest train at the maximum rate that lost nothing (RFC 9004)")
    if any(remarks.bounds(result) for result in results):
        notes.append("bounds: relevant lower and upper bound, offered loads in Mpps (RFC 9971)")
    if any(_rate(result).startswith("≥") for result in results):
        notes.append("≥: at least this, since the switch had idle share or the senders could offer no more; not ranked")
    for result in results:
        case = result.case + (f" ({result.host})" if result.host else "")
        if not result.is_number and result.evidence:
            notes.append(f"{case}: {result.evidence.splitlines()[0]}")
        if result.verdict in ("REGRESSED", "INCONCLUSIVE", "INCOMPARABLE") and result.reason:
            notes.append(f"{result.verdict}: {result.reason}")
        said = remarks.bands(result), remarks.drift(result), longruns.back_to_back(result)
        notes += [f"{case}: {text}" for text in (*said, longruns.losses(result, longruns.FEW_EVENTS)) if text]
        if result.generator_bound and result.metric == "fixed" and result.is_number:
            offered, asked = result.offered_pps, result.point.rate
            of = "less"
            if asked.pps is not None:
                of = f"{show(offered)} of {show(asked.pps * result.point.pairs)} frames/s"
            elif not asked.is_max:  # a part of what the path was found to carry
                of = f"{show(offered)} frames/s, less than {asked.typed}"
            notes.append(f"{case}: the sender could offer only {of}")
        if unsettled := result.unsettled_launches:
            of = f"{unsettled} of {result.launches} launches"
            what = "median round trip" if is_latency(result) else "rate"
            notes.append(f"{case}: the {what} of {of} did not become stationary; see --icbench-max-warmup")
        if result.is_number and result.search is not None and result.search.evidence:
            notes.append(f"{case}: {result.search.evidence}")
        if result.reference_evidence:
            notes.append(f"{case}: no ratio, {result.reference_evidence.splitlines()[0]}")
        if result.repeated:
            times = f"{result.repeated} launch{'es' if result.repeated > 1 else ''}"
            notes.append(f"{case}: {times} repeated, a fault of the harness")
    return [line for note in notes for line in wrapped(printable(note), WIDTH)]
