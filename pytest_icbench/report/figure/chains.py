# SPDX-License-Identifier: BSD-3-Clause
"""Rates against the length of a chain of functions; ``latency`` has the round trips. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_icbench.display.axes import grouped, path_of, traffic
from pytest_icbench.display.chart import Axes, Column, Figure, with_own
from pytest_icbench.model.result import Result
from pytest_icbench.report.figure.figures import Heading, Wording, rate_chart, row

LENGTH = Column("chain", "functions in a row")
_RATE = Column("rate", "rate, Mpps")
_FLAT_OUT = "Flat out, functions that share a CPU spend it on frames that a later one drops."


def without_length(result: Result) -> str:
    """Returns the path's name without the length of its chain."""
    return path_of(replace(result, axes={**result.axes, "chain": 1}))


def rates_by_length(results: Sequence[Result], order: Sequence[str]) -> list[Figure]:
    """Returns charts of E7: rates against the length of a chain, one line a path and load.

    A search's rate and the one flat out are in one chart, and the second one's line is marked so.

    Args:
        results: results of throughput.
        order: all series of the page.
    """
    figures = []
    chained = (result for result in results if result.point.function is not None and not result.rates.sweep)
    groups = grouped(chained, lambda result: traffic(result)._replace(rate=""))
    for place, (key, group) in enumerate(groups.items()):
        rows = _rows(group)
        if len({line[2] for line in rows}) < 2:
            continue
        names = with_own(order, rows)
        flat_out = any(result.metric == "frmol" for result in group)
        heading = Heading(f"chains-{place}", "chains", f"Rate against the length of a chain: {key.say('rate')}")
        wording = Wording(note=_FLAT_OUT if flat_out else "")
        figures.append(rate_chart(heading, Axes(LENGTH, _RATE), rows, names, wording))
    return figures


def _rows(group: Sequence[Result]) -> tuple[tuple[Any, ...], ...]:
    rows = []
    for result in group:
        if (line := row(result, result.point.chain, result.frames.throughput_pps, 1e-6)) is not None:
            load = "flat out" if result.metric == "frmol" else traffic(result).rate
            rows.append((line[0], f"{without_length(result)}, {load}", *line[2:]))
    return tuple(sorted(rows, key=lambda line: (str(line[1]), float(line[2]))))
