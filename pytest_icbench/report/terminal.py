# SPDX-License-Identifier: BSD-3-Clause
"""Results as tables of at most 100 columns. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.model.result import Result
from pytest_icbench.model.verdict import NOTABLE
from pytest_icbench.report import longruns, remarks
from pytest_icbench.report.axes import host_legend, hosts_apart, is_latency, number
from pytest_icbench.report.columns import (
    In,
    bounds,
    columns,
    first,
    rate,
    ratio,
    train,
)
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


def table(results: Sequence[Result]) -> list[str]:
    """Returns a table for each dimension and metric, one host after the other, then notes on their results."""
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
        lines += _group(dimension + on, metric, group, In.LATENCY if dimension == "latency" else In.THROUGHPUT)
        if varied := [result for result in group if number(result, result.pdv_p50_ns) is not None]:
            lines += ["", *_group(f"delay variation (RFC 5481){on}", metric, varied, In.VARIATION)]
    legend = [line for text in host_legend(results) for line in wrapped(text, WIDTH)]
    return [*lines, *_notes(apart), *legend] if lines else []


def _group(name: str, metric: str, group: Sequence[Result], where: In) -> list[str]:
    common = _common(group)
    title = name + (f", all with {' '.join(common)}" if common else "")
    kept = [("case", [_label(result, common) for result in group], False)]
    for column in columns(where):
        cells = [column.text(result) for result in group]
        if where in column.always or any(cells):
            kept.append((column.head(metric=metric), cells, column.number))
    texts = [[head, *cells] for head, cells, _ in kept]
    widths = [max(map(len, text)) for text in texts]
    widths[0] = max(min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1)), 8)
    lines = [_cut(title, WIDTH)]
    for row in zip(*texts, strict=True):
        shown = [
            _middle(text, width).rjust(width) if number else _middle(text, width).ljust(width)
            for text, width, (_, _, number) in zip(row, widths, kept, strict=True)
        ]
        lines.append("  ".join(shown).rstrip())
    return lines


def _parts(result: Result) -> list[str]:
    """Returns the end of an id: the axes that all rows often share."""
    return result.case.rsplit("-", 3)[1:] if result.case.count("-") >= 3 else []


def _common(group: Sequence[Result]) -> list[str]:
    """Returns those of burst, pairs and rate that all rows share, so that the title has them instead of each row."""
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
    """Shortens a text to ``width`` by leaving out its middle, since both ends of a case's id matter."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _shortfall(result: Result) -> str:
    """Returns the rate that was asked for, the number of launches that offered less, and the least of them."""
    rate = result.point.rate
    # A part of the rate that a search found has no number of its own.
    asked = f"{show(rate.pps * result.point.pairs)} frames/s" if rate.pps is not None else rate.typed
    offers = [launch.offered_pps for launch in result.per_launch if launch.generator_bound]
    if not offers:
        return asked
    return f"{asked} in {len(offers)} of {len(result.per_launch)} launches (least {show(min(offers))} frames/s)"


def _notes(results: Sequence[Result]) -> list[str]:
    metrics = {result.metric for result in results}
    notes = [text for metric, text in _METRICS.items() if metric in metrics]
    if any(ratio(result) for result in results):
        notes.append("ratio: to the same applications on the same CPUs with no switch between (latency: p50 over p50)")
    if any(result.side_by_side for result in results):
        notes.append("change: against its base, in the pairs of launches that decide; the values are of all launches")
    if any(first(result) for result in results):
        notes.append("first: p50 of frames that were the first of their burst")
    if any(number(result, result.floor_p50_ns) is not None for result in results):
        notes.append("floor: p50 with no switch between: the time of tool and machine alone")
    if any(train(result) for result in results):
        notes.append("train: frames of the longest train at the maximum rate that lost nothing (RFC 9004)")
    if any(bounds(result) for result in results):
        notes.append("bounds: relevant lower and upper bound, offered loads in Mpps (RFC 9971)")
    if any(rate(result).startswith("≥") for result in results):
        notes.append("≥: at least this, since the switch had idle share or the endpoints could do no more")
    for result in results:
        case = result.case + (f" ({result.host})" if result.host else "")
        if not result.is_number and result.evidence:
            notes.append(f"{case}: {result.evidence.splitlines()[0]}")
        if result.is_number and result.verdict in NOTABLE and result.reason:
            notes.append(f"{result.verdict}: {result.reason}")
        texts = remarks.bands(result), remarks.drift(result), longruns.back_to_back(result)
        notes += [f"{case}: {text}" for text in (*texts, longruns.losses(result, longruns.FEW_EVENTS)) if text]
        if result.generator_bound and result.metric == "fixed" and result.is_number:
            notes.append(f"{case}: the sender fell short of {_shortfall(result)}")
        if unsettled := result.unsettled_launches:
            launches = f"{unsettled} of {result.launches} launches"
            subject = "median round trip" if is_latency(result) else "rate"
            notes.append(f"{case}: the {subject} of {launches} did not become stationary; see --icbench-max-warmup")
        if result.is_number and result.search is not None and result.search.evidence:
            notes.append(f"{case}: {result.search.evidence}")
        if result.reference_evidence:
            notes.append(f"{case}: no ratio, {result.reference_evidence.splitlines()[0]}")
        if result.repeated:
            times = f"{result.repeated} launch{'es' if result.repeated > 1 else ''}"
            notes.append(f"{case}: {times} repeated, a fault of the harness")
    return [line for note in notes for line in wrapped(printable(note), WIDTH)]
