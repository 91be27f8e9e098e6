# SPDX-License-Identifier: BSD-3-Clause
"""What a network function leaves of the value of its path. Pure.

A case with a function is measured beside the same path without it, unless its reference is switched off. Then the case
without a function in the same run stands for it, if there is one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from pytest_icbench.display.case_names import main_figure, number
from pytest_icbench.model.result import Result
from pytest_icbench.stats.quantiles import Estimate


def with_plain(results: Sequence[Result]) -> list[Result]:
    """Returns the results, of which those with a function have ``plain`` where a path without it was measured."""
    if not any(result.point.function for result in results):
        return list(results)
    plain = {_key(result): result for result in results if result.point.function is None}
    return [_with(result, plain.get(_key(result))) if result.point.function else result for result in results]


def plain_ratio(result: Result) -> Estimate | None:
    """Returns the value over that of the path without the function, of round trips the other way about."""
    return number(result, result.ratio_to_plain or result.plain)


def _with(result: Result, plain: Result | None) -> Result:
    if plain is None or result.ratio_to_plain is not None:
        return result
    value, before = main_figure(result), main_figure(plain)
    if not value or not before or not _has_reference(result):
        return result
    return replace(result, plain=_over(before, value) if result.figures.LESS_IS_BETTER else _over(value, before))


def _has_reference(result: Result) -> bool:
    """Whether the value is the path's own, and not that of a load which was given."""
    return result.figures.is_capability(result.metric)


def _over(above: Estimate, below: Estimate) -> Estimate:
    """Returns a ratio whose interval holds every ratio of the two intervals, which were measured apart."""
    if above.low is None or above.high is None or not below.low or not below.high:
        return Estimate(above / below)
    return Estimate(above / below, above.low / below.high, above.high / below.low)


def _key(result: Result) -> Hashable:
    """Returns what a case with a function has in common with the one without it."""
    point = replace(result.point, function=None, chain=1)
    machine = result.identity.get("machine")
    return point, result.metric, result.placement, result.run, str(machine)
