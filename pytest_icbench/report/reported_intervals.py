# SPDX-License-Identifier: BSD-3-Clause
"""The values and intervals that reports show. Pure.

The intervals include the session-to-session spread if a baseline knows it. Values of versions side by side are those of
the launches that decide, so that a report has one number for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_icbench.display.case_names import gbps_per_pps
from pytest_icbench.model.finding import Finding, SideBySide
from pytest_icbench.model.measurement import Result
from pytest_icbench.report.overview import in_common_states
from pytest_icbench.stats.intervals import widen_like
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.stats.verdict_rule import FEWEST_SESSIONS

#: The same value in other units.
_IN_OTHER_UNITS: Mapping[str, tuple[str, ...]] = {
    "throughput_pps": ("throughput_gbps", "throughput_l1_gbps"),
    "operations_per_second": ("goodput_gbps",),
}


def with_sessions(results: Iterable[Result]) -> list[Result]:
    """Returns the results with wider intervals of the values that were compared with the sessions of a baseline.

    A result's own interval covers the spread of its launches only, not the spread between sessions.
    """
    return [_with(result) for result in results]


def sessions_of(result: Result) -> str:
    """Returns the sessions that an interval of the result includes: ``the 20 sessions of main``; empty for none."""
    finding = next(filter(_reports, result.findings), None)
    return "" if finding is None else f"the {finding.units} sessions of {finding.baseline}"


def _reports(finding: Finding) -> bool:
    """Whether the finding compares with enough sessions to estimate their spread."""
    known = finding.ratio is not None and finding.unit == "session"
    return known and finding.units is not None and finding.units >= FEWEST_SESSIONS


def _with(result: Result) -> Result:
    changes: dict[str, Estimate] = {}
    for finding in filter(_reports, result.findings):
        assert finding.ratio is not None
        changes[finding.name] = Estimate(finding.ratio, finding.ratio_low, finding.ratio_high)
    if changes and result.ratio_to_baseline is not None:  # a main value that decides nothing has no finding
        changes[result.figures.MAIN] = result.ratio_to_baseline
    wide: dict[str, Any] = {}
    for main, change in changes.items():
        for name in (main, *_IN_OTHER_UNITS.get(main, ())):
            value = result.value(name)
            if isinstance(value, Estimate):
                wide[name] = widen_like(value, change)
    return result.with_figures(**wide) if wide else result


def deciding(results: Sequence[Result]) -> list[Result]:
    """Returns the results with the values of the deciding pairs of launches; others in the state that is compared.

    A candidate's interval is the interval of its ratio to the base, times the base's value. A base has no interval on
    these launches alone: it keeps the interval of all its launches, widened to hold the value.
    """
    compared: dict[tuple[str, str, str | None], SideBySide] = {}
    for result in results:
        if result.side_by_side is not None:
            compared.setdefault((result.side_by_side.base, result.dimension, result.run), result.side_by_side)
    return [
        _with_deciding(result, compared.get((result.case, result.dimension, result.run)))
        for result in in_common_states(results)
    ]


def _with_deciding(result: Result, as_base: SideBySide | None) -> Result:
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
