# SPDX-License-Identifier: BSD-3-Clause
"""Measuring: a case on a rig becomes a Measurement, by the strategy that its rate asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.measure.progress import OnProgress
from pytest_icbench.measure.rig import MeasuredRig
from pytest_icbench.measure.strategy.repeat import Strategy
from pytest_icbench.measure.strategy.search import SearchStrategy
from pytest_icbench.measure.strategy.sweep import SweepStrategy
from pytest_icbench.measure.summary.summarize import Surroundings, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings

#: How a rate is gone through, the first that fits; any other by launches of the same kind.
STRATEGIES: tuple[tuple[Callable[[Rate], bool], type[Strategy]], ...] = (
    (lambda rate: rate.is_search, SearchStrategy),
    (lambda rate: rate.is_sweep, SweepStrategy),
)


def measure(
    rig: MeasuredRig,
    reference_rig: MeasuredRig | None,
    case: Case,
    settings: Settings,
    on_progress: OnProgress | None = None,
    *,
    around: Surroundings | None = None,
    reference: Case | None = None,
    api: str | None = None,
    executable: Path | None = None,
) -> Measurement:
    """Measures a case on its rig, interleaved with its reference link.

    Args:
        rig: built and running.
        reference_rig: built; without one, or with ``settings.reference`` off, there is no ``ratio_to_reference``. The
            two never run at once: at the end ``rig`` runs and the reference is paused.
        reference: the case as the reference rig sees it; by default ``case`` itself.
        api: the technique that a case without one comes to; both rigs use it.
        around: what stands around the figures; read from the rig by default.

    Returns:
        The measurement; its verdict is None, or INVALID with a reason.

    Raises:
        WorkloadError: a process failed; with the tail of its log.
        ProvisionError: a rig could not be built anew, paused or resumed.
    """
    launched = [replace(each, api=each.api or api) for each in (case, reference or case)]
    beside = reference_rig if settings.reference else None
    course = strategy_of(case)(rig, beside, launched[0], launched[1], case.id, settings, on_progress, executable)
    try:
        course.run()
    except BaseException:
        if course.running is not None:  # else neither runs, and making one run could take long
            course.leave()
        raise
    course.leave()
    if around is None:
        around = Surroundings(placement=rig.placement.policy, endpoints=tuple(rig.endpoints))
    around = replace(around, shared=rig.placement.shared)
    return course.finish(summarize(case, settings, course.gathered, around), around)


def strategy_of(case: Case) -> type[Strategy]:
    """How a case is gone through: by launches of the same kind, or by what its rate asks for.

    Raises UsageError for a rate that is looked for in another dimension than throughput.
    """
    if case.dimension == "latency" and (case.rate.is_search or case.rate.is_sweep):
        raise UsageError(
            f"round-trip times are measured at a load, not at rate {case.rate.typed}; give max or frames per second"
        )
    return next((strategy for fits, strategy in STRATEGIES if fits(case.rate)), Strategy)
