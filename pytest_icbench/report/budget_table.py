# SPDX-License-Identifier: BSD-3-Clause
"""Which functional splits of a radio access network fit on which path, at which load and size. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.display.case_names import label, number, shared, three
from pytest_icbench.display.table import Cells, grid, listing
from pytest_icbench.kinds.latency.latency_columns import round_trips
from pytest_icbench.model.measurement import Result
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.store.thresholds import SPLITS, Budget
from pytest_icbench.wording import grouped, wrapped

_NOTES = (
    "a cell: half of the round trip as a part of a split's greatest one-way latency (3GPP TR 38.801, table A-1)",
    "?: the interval has the limit in it, or there is no interval",
    "a row holds for its own load; for the reference cell the splits carry, down and up in Gbit/s: "
    + ", ".join(f"{budget.name[6:]} {budget.gbps[0]:g} and {budget.gbps[1]:g}" for budget in SPLITS),
)


def budget_table(results: Sequence[Result], width: int) -> list[str]:
    """Returns the table of the results with round trips, and what it means; nothing without any."""
    rows = [(result, *judged) for result in results if (judged := _one_way(result)) is not None]
    if not rows:
        return []
    left_out = shared([result.case for result, *_ in rows])
    levels = grouped(sorted(SPLITS, key=lambda budget: budget.one_way_ns), lambda budget: budget.one_way_ns)
    columns = [
        Cells("Gbit/s", [_load(result) for result, *_ in rows]),
        Cells("one way µs", [f"{percentile} {three(ns / 1e3)}" for _, percentile, ns in rows]),
        *(Cells(_head(level), [_cell(ns, level[0]) for *_, ns in rows]) for level in levels.values()),
    ]
    names = [label(result.case, left_out) for result, *_ in rows]
    title = "functional splits of a radio access network" + (f", all with {left_out[1:]}" if left_out else "")
    body = grid(names, columns, width) or listing(names, columns, width)
    notes = (line for note in _NOTES for line in wrapped(note, width))
    return ["", *wrapped(title, width), *body, "", *notes]


def _one_way(result: Result) -> tuple[str, Estimate] | None:
    """Returns half of the highest percentile with enough round trips, with its name; None without a number."""
    for percentile, estimate in reversed(round_trips(result).items()):
        trip: Estimate | None = number(result, estimate)
        if trip is not None:
            return percentile, Estimate(trip / 2, *(None if end is None else end / 2 for end in (trip.low, trip.high)))
    return None


def _load(result: Result) -> str:
    gbps = number(result, result.frames.throughput_gbps)
    return "" if gbps is None else three(gbps)


def _head(level: Sequence[Budget]) -> str:
    limit_us = level[0].one_way_ns / 1e3
    limit = f"{limit_us / 1e3:g} ms" if limit_us >= 1000 else f"{limit_us:g} µs"
    return f"{' '.join(budget.name[6:] for budget in level)} ({limit})"


def _cell(one_way_ns: Estimate, budget: Budget) -> str:
    """Returns the part of the budget that a path takes, and whether it fits."""
    limit, low, high = budget.one_way_ns, one_way_ns.low, one_way_ns.high
    unsure = low is None or high is None or low <= limit < high
    text = f"{three(100 * one_way_ns / limit)} %"
    return f"{text} ?" if unsure else text if one_way_ns <= limit else f"no, {text}"
