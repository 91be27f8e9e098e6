# SPDX-License-Identifier: BSD-3-Clause
"""Measures a candidate beside its base."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_icbench.driver.application.protocol import Application
from pytest_icbench.errors import UsageError
from pytest_icbench.measure.comparing import Allowances
from pytest_icbench.measure.progress import OnProgress
from pytest_icbench.measure.rig import MeasuredRig
from pytest_icbench.measure.strategy.side_by_side import PairStrategy
from pytest_icbench.measure.summary.gathered import LaunchLog
from pytest_icbench.measure.summary.states import split_by_state
from pytest_icbench.measure.summary.summarize import Environment, summarize
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
    rigs: tuple[MeasuredRig, MeasuredRig],
    case: Case,
    settings: Settings,
    allowed: Allowances,
    cases: int,
    around: tuple[Environment, Environment],
    *,
    base: Case | None = None,
    apis: tuple[str | None, str | None] = (None, None),
    on_progress: OnProgress | None = None,
    executables: tuple[Path | None, Path | None] = (None, None),
    application: Application | None = None,
) -> tuple[Measurement, Measurement]:
    """Measures a candidate beside its base.

    Args:
        rigs: the candidate's, running, and the base's, paused; at the end they are so again.
        case: the candidate's case.
        allowed: how much worse the candidate may be.
        cases: number of comparisons in the session.
        around: the environment of each side's figures.
        base: the base's case; None: that of the candidate.
        apis: the techniques of both sides' endpoints; None: that of the case.
        application: the server and the client of a case that names some.

    Returns:
        The candidate's measurement, with ``side_by_side``, and the base's. Both are INVALID if one of them is.

    Raises:
        UsageError: the rate is a search or a sweep. Errors of ``measure`` pass through.
    """
    check_comparable(case)
    both = case, base or case.base
    launched = [replace(each, api=api or each.api) for each, api in zip(both, apis, strict=True)]
    strategy = PairStrategy(*rigs, launched[0], settings, allowed, cases, on_progress, executables)
    strategy.reference = launched[1]
    strategy.case_id, strategy.base_id = both[0].id, both[1].id
    if application is not None:
        strategy.run_by(application)
    strategy.run_and_leave()
    gathered = split_by_state(strategy.gathered)  # both sides in one state
    shared = [len(set(rig.placement.endpoints)) < len(rig.placement.endpoints) for rig in rigs]
    sides = [
        LaunchLog(
            launches=launches,
            rejected=rejected,
            invalid=gathered.invalid,
            faults=gathered.faults,
            repeated=[launch for launch in gathered.repeated if launch.repeated == side],
            others=[replace(launch, repeated="case") for launch in gathered.others if launch.repeated == side],
            ended_by=gathered.ended_by,
            started_at=gathered.started_at,
            duration_s=gathered.duration_s,
            clock_step_s=gathered.clock_step_s,
        )
        for launches, rejected, side in (
            (gathered.launches, gathered.rejected, "case"),
            (gathered.reference, [], "reference"),
        )
    ]
    now, then = (
        summarize(measured, settings, side, replace(surroundings, shared=crowded))
        for measured, side, surroundings, crowded in zip(both, sides, around, shared, strict=True)
    )
    return with_comparison(now, strategy.comparison), then


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
