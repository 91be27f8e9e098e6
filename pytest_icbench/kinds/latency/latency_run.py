# SPDX-License-Identifier: BSD-3-Clause
"""Measures round trips, at the maximum or at a given load."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.errors import UsageError
from pytest_icbench.measure.launch.validity import OFFERED_SHARE
from pytest_icbench.measure.method import Method
from pytest_icbench.measure.summary.frame_figures import frame_figures, latency_figures
from pytest_icbench.measure.summary.launch_log import LaunchLog
from pytest_icbench.measure.summary.summarize import Summary
from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import Latency
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.quantiles import median


def _figures(case: Case, log: LaunchLog) -> Latency:
    return latency_figures(frame_figures(case, log.launches), log.launches, log.reference)


def generator_bound(case: Case, launches: Sequence[Launch]) -> tuple[str, str] | None:
    """Returns reason and evidence of INVALID if the client could not keep the rate of its round trips, else None.

    Round trips at such a rate are round trips at another rate. A single launch in which the host took the client's time
    does not decide. A received rate, as in a sweep or at the maximum, is a fact about the case all the same.
    """
    rate_pps = case.rate.pps
    if rate_pps is None or not launches:
        return None
    bound = sum(launch.generator_bound for launch in launches)
    if 2 * bound <= len(launches):
        return None
    offered = median([launch.offered_pps for launch in launches]) / case.senders
    ask = f"{rate_pps:,} frames per second; ask for less"
    if offered >= OFFERED_SHARE * rate_pps:
        return "generator-bound", f"the client sent most of its requests late, it cannot keep {ask}"
    return "generator-bound", f"the client offered {offered:,.0f} of {ask}"


def _check(case: Case, _settings: Settings) -> None:
    if case.rate.varies:
        raise UsageError(
            f"round-trip times are measured at a load, not at rate {case.rate.typed}; give max or frames per second"
        )


METHOD = Method(Summary(_figures, fault=generator_bound), check=_check)
