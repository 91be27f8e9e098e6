# SPDX-License-Identifier: BSD-3-Clause
"""The values of versions side by side from the launches that decide, so that a report has one number for each. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.display.axes import gbps_per_pps
from pytest_icbench.model.comparison import SideBySide
from pytest_icbench.model.result import Result
from pytest_icbench.stats.quantiles import Estimate


def deciding(results: Sequence[Result]) -> list[Result]:
    """Returns the results with the values of the deciding pairs of launches; others are unchanged.

    A candidate's interval is that of its ratio to the base's value. A base has no interval of its own on these
    launches: it keeps that of all its launches, widened to hold the value.
    """
    compared: dict[tuple[str, str, str | None], SideBySide] = {}
    for result in results:
        if result.side_by_side is not None:
            compared.setdefault((result.side_by_side.base, result.dimension, result.run), result.side_by_side)
    return [_of(result, compared.get((result.case, result.dimension, result.run))) for result in results]


def _of(result: Result, as_base: SideBySide | None) -> Result:
    comparison = result.side_by_side or as_base
    if comparison is None or not result.is_number:
        return result
    base = comparison.base_value
    if result.side_by_side is not None:
        ends = [None if ratio is None else base * ratio for ratio in (comparison.ratio_low, comparison.ratio_high)]
        value = Estimate(base * comparison.ratio, *ends)
    else:
        value = _holding(base, result.value(comparison.figure))
    changed: dict[str, Any] = {comparison.figure: value}
    if comparison.figure == "throughput_pps":
        changed["throughput_gbps"] = _scaled(value, gbps_per_pps(result))
    return result.with_figures(**changed)


def _holding(value: float, before: Estimate | None) -> Estimate:
    if before is None or before.low is None or before.high is None:
        return Estimate(value)
    return Estimate(value, min(before.low, value), max(before.high, value))


def _scaled(value: Estimate, factor: float) -> Estimate:
    low, high = (None if end is None else end * factor for end in (value.low, value.high))
    return Estimate(value * factor, low, high)
