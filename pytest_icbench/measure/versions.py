# SPDX-License-Identifier: BSD-3-Clause
"""Measures a candidate beside its base."""

from __future__ import annotations

from dataclasses import replace

from pytest_icbench.driver.application.protocol import Application
from pytest_icbench.errors import UsageError
from pytest_icbench.measure.comparing import Criteria
from pytest_icbench.measure.progress import OnProgress
from pytest_icbench.measure.rig import MeasuredRig
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.strategy.side_by_side import PairStrategy
from pytest_icbench.measure.summary.gathered import LaunchLog
from pytest_icbench.measure.summary.states import split_by_state
from pytest_icbench.measure.summary.summarize import summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.comparison import SideBySide
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.quantiles import Estimate


def check_comparable(case: Case) -> None:
    """Raises UsageError for a search or a sweep, whose launches have no neighbour to be compared with."""
    if case.rate.is_search or case.rate.is_sweep:
        raise UsageError(
            f"{case.rate.typed} is looked for, not launched, so versions cannot take turns: with --icbench-candidate"
            f" give"
            " --icbench-rate max or a load"
        )


def measure_versions(
    candidate: Side,
    base: Side,
    settings: Settings,
    criteria: Criteria,
    on_progress: OnProgress | None = None,
    *,
    application: Application | None = None,
) -> tuple[Measurement, Measurement]:
    """Measures a candidate beside its base.

    Args:
        candidate: the candidate on its rig, running.
        base: its base on another rig, paused. At the end the rigs are as before.
        criteria: what decides the comparison.
        application: the server and the client of a case that names some.

    Returns:
        The candidate's measurement, with ``side_by_side``, and the base's. Both are INVALID if one of them is.

    Raises:
        UsageError: the rate is a search or a sweep. Errors of ``measure`` pass through.
    """
    check_comparable(candidate.case)
    strategy = PairStrategy(candidate, base, settings, criteria, on_progress, application)
    strategy.run_and_leave()
    gathered = split_by_state(strategy.gathered)  # both sides in one state
    logs = [
        LaunchLog(
            launches=launches,
            rejected=rejected,
            invalid=gathered.invalid,
            faults=gathered.faults,
            repeated=[launch for launch in gathered.repeated if launch.repeated == phase],
            others=[replace(launch, repeated="case") for launch in gathered.others if launch.repeated == phase],
            ended_by=gathered.ended_by,
            started_at=gathered.started_at,
            duration_s=gathered.duration_s,
            clock_step_s=gathered.clock_step_s,
        )
        for launches, rejected, phase in (
            (gathered.launches, gathered.rejected, "case"),
            (gathered.reference, [], "reference"),
        )
    ]
    now, then = (
        summarize(side.case, settings, log, side.environment(shared=_shares_a_cpu(side.rig)))
        for side, log in zip((candidate, base), logs, strict=True)
    )
    return with_comparison(now, strategy.comparison), then


def _shares_a_cpu(rig: MeasuredRig) -> bool:
    """Whether two endpoints of a rig on one host have the same CPU."""
    return len(set(rig.placement.endpoints)) < len(rig.placement.endpoints)


def with_comparison(now: Measurement, comparison: SideBySide | None) -> Measurement:
    """Returns the candidate's measurement with its comparison; unchanged without one."""
    if comparison is None:
        return now
    return replace(
        now,
        side_by_side=comparison,
        decision=comparison.decision,
        ratio_to_base=Estimate(comparison.ratio, comparison.ratio_low, comparison.ratio_high),
    )
