# SPDX-License-Identifier: BSD-3-Clause
"""The share of a path's value that a network function leaves. Pure.

The reference of a case with a function is the same path without the function, measured in the same case. If references
are switched off, a case of the same run without the function serves as the reference, if there is one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from pytest_icbench.display.case_names import main_figure, number
from pytest_icbench.model.measurement import Result
from pytest_icbench.stats.quantiles import Estimate


def with_plain(results: Sequence[Result]) -> list[Result]:
    """Returns the results; those with a function have ``plain`` if the path without it was measured."""
    if not any(result.point.function for result in results):
        return list(results)
    plain = {_key(result): result for result in results if result.point.function is None}
    return [_with(result, plain.get(_key(result))) if result.point.function else result for result in results]


def plain_ratio(result: Result) -> Estimate | None:
    """Returns the value over that of the path without the function; for round trips the inverse."""
    return number(result, result.ratio_to_plain or result.plain)


def _with(result: Result, plain: Result | None) -> Result:
    if plain is None or result.ratio_to_plain is not None:
        return result
    value, before = main_figure(result), main_figure(plain)
    # A given load is not the path's capability.
    if not value or not before or not result.figures.is_capability(result.metric):
        return result
    return replace(result, plain=over(before, value) if result.figures.LESS_IS_BETTER else over(value, before))


def over(above: Estimate, below: Estimate) -> Estimate:
    """Returns a ratio whose interval holds every ratio of the two intervals, which are independent."""
    if above.low is None or above.high is None or not below.low or not below.high:
        return Estimate(above / below)
    return Estimate(above / below, above.low / below.high, above.high / below.low)


def _key(result: Result) -> Hashable:
    """Returns the key that a case with a function shares with the case without it."""
    point = replace(result.point, function=None, chain=1)
    machine = result.identity.get("machine")
    return point, result.metric, result.placement, result.run, str(machine)
