# SPDX-License-Identifier: BSD-3-Clause
"""The lines of a session about its cases: first their number and time, at the end the skipped ones with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_icbench.config.options import Options
from pytest_icbench.plugin.items import PUBLISHED, Benchmark
from pytest_icbench.plugin.schedule.forecast import estimates
from pytest_icbench.plugin.schedule.plan import is_adaptive, longest_s, reason_lines
from pytest_icbench.testbed.testbed import Testbed
from pytest_icbench.wording import clock, counted

#: A session that takes longer, in seconds, says how it would be shorter.
LONG_S = 60.0
#: The budget that a longer session is offered, in seconds.
BUDGET_S = 300.0
#: Times that differ by less than this share are one.
_ALIKE = 0.2


def forecast_line(testbed: Testbed, options: Options, planned: Sequence[Benchmark]) -> str:
    """Returns how many cases run on this host, how long that takes, and what makes it shorter."""
    least = estimates(testbed, planned, options.soak_duration, budgeted=options.budget is not None)
    number, least_s = sum(seconds > 0 for seconds in least), sum(least)
    if not number:
        return "none of them can run here; the end says why"
    most_s = sum(longest_s(benchmark, seconds) for benchmark, seconds in zip(planned, least, strict=True))
    if options.budget is not None:
        least_s = most_s = max(least_s, options.budget)
    said = f"{number} of {counted(len(planned), 'case')} can run here: {_time(least_s, most_s)}"
    if most_s < LONG_S:
        return said
    ways = ["fewer by -k"]
    if any(is_adaptive(benchmark.case, benchmark.settings) for benchmark in planned):
        ways += ["--icbench-protocol quick"] + ["--icbench-budget 5m"] * (options.budget is None and most_s > BUDGET_S)
    return f"{said}; for less: {', '.join(ways)}"


def left_out_line(testbed: Testbed | None, options: Options, left_out: Sequence[Benchmark]) -> str:
    """Returns how many long forms a session leaves out, and how long they take.

    Args:
        testbed: of this host, for the time; None leaves it out.
    """
    said = f"{counted(len(left_out), f'{PUBLISHED} case')} left out"
    if testbed is not None:
        least = estimates(testbed, left_out, options.soak_duration)
        said += f"; {sum(seconds > 0 for seconds in least):,} of them take at least {clock(sum(least))} here"
    return f"{said}; they run with: -m {PUBLISHED}"


def write_skips(reporter: Any, skipped: Sequence[tuple[str, str]], *, measured: bool) -> None:
    """Writes the cases that were skipped, by reason, and before them that nothing was measured.

    Args:
        skipped: node ids of cases, with their reasons.
        measured: whether the session has a result.
    """
    if not measured:
        reporter.write_sep("=", "icbench: nothing was measured", yellow=True)
    elif skipped:
        reporter.write_sep("=", f"icbench: {counted(len(skipped), 'case')} skipped")
    for line in reason_lines(skipped):
        reporter.write_line(line)


def _time(least_s: float, most_s: float) -> str:
    """Returns a length of time, or its bounds where they are far apart."""
    if most_s <= least_s * (1 + _ALIKE):
        return f"about {clock(least_s)}"
    return f"{clock(least_s)} to {clock(most_s)}"
