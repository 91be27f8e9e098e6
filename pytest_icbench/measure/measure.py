# SPDX-License-Identifier: BSD-3-Clause
"""Measures a case on a rig, by the strategy of its rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_icbench.driver.application.protocol import Application
from pytest_icbench.errors import UsageError
from pytest_icbench.measure.cpu_allocations import by_cpu_allocation
from pytest_icbench.measure.noisy_neighbours import FEWEST_PAIRS, with_effect
from pytest_icbench.measure.part import Part
from pytest_icbench.measure.progress import OnProgress
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.strategy.repeat import Strategy
from pytest_icbench.measure.strategy.search import SearchStrategy
from pytest_icbench.measure.strategy.sweep import SweepStrategy
from pytest_icbench.measure.summary.bottleneck import with_full_table
from pytest_icbench.measure.summary.summarize import summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings

#: Strategies by rate, the first that fits; other rates have launches of one kind.
STRATEGIES: tuple[tuple[Callable[[Rate], bool], type[Strategy]], ...] = (
    (lambda rate: rate.is_search, SearchStrategy),
    (lambda rate: rate.is_sweep, SweepStrategy),
)


def measure(
    measured: Side,
    settings: Settings,
    reference: Side | None = None,
    on_progress: OnProgress | None = None,
    *,
    part: Part | None = None,
    application: Application | None = None,
) -> Measurement:
    """Measures a case on its rig, interleaved with its reference link.

    Args:
        measured: the case on its rig, built and running.
        reference: the reference on its rig, built; without one, or with ``settings.reference`` off, there is no
            ``ratio_to_reference``. The two rigs never run at once: at the end that of the case runs and that of the
            reference is paused.
        part: the round that this is; the measurement is then that of all rounds so far. Only for launches of one kind.
        application: the server and the client of a case that names some.

    Returns:
        The measurement; its verdict is None, or INVALID with a reason.

    Raises:
        WorkloadError: a process failed; with the tail of its log.
        ProvisionError: a rig could not be built anew, paused or resumed.
    """
    return Measuring(measured, settings, reference, on_progress, application=application).run(part)


class Measuring:
    """A case that is being measured on its rigs, beside which others run between its turns.

    Args:
        complete: adds what only the caller knows to the result. Others are as those of ``measure``.

    Attributes:
        strategy: runs its launches.
    """

    def __init__(
        self,
        measured: Side,
        settings: Settings,
        reference: Side | None = None,
        on_progress: OnProgress | None = None,
        *,
        application: Application | None = None,
        complete: Callable[[Measurement], Measurement] = lambda measurement: measurement,
    ) -> None:
        self._measured, self._complete = measured, complete
        case = measured.case
        if not settings.reference and case.noisy_neighbour is None:
            reference = None
        if case.noisy_neighbour is not None:
            settings = replace(settings, min_launches=max(settings.min_launches, FEWEST_PAIRS))
        self.strategy = strategy_of(case)(measured, reference, settings, on_progress, application)

    def run(self, part: Part | None = None) -> Measurement:
        """Runs all launches, or those of one round. Returns and raises as ``measure`` does."""
        if part is not None:
            self.strategy.resume(part)
        self.strategy.run_and_leave()
        return self.result()

    def take_turn(self) -> Measurement | None:
        """Runs the launches of one turn. Returns the measurement once it is over. Raises as ``measure`` does."""
        return self.result() if self.strategy.take_turn() else None

    def interrupted(self) -> Measurement | None:
        """Returns the measurement of the launches so far, after which no more come; None without any."""
        if not self.strategy.gathered.launches:
            return None
        self.strategy.interrupt()
        return self.result()

    def result(self) -> Measurement:
        """Returns the measurement of the launches that were run."""
        rig, case, strategy = self._measured.rig, self._measured.case, self.strategy
        around = self._measured.environment(shared=rig.placement.shared)
        gathered = strategy.of_one_state()
        measurement = strategy.finish(summarize(case, strategy.settings, gathered, around), around)
        works = by_cpu_allocation(strategy.functions.work, case, gathered.launches, gathered.reference)
        measurement = with_effect(measurement, case, gathered.reference, rig.noisy_neighbour_use)
        measurement = with_full_table(measurement, works)
        return self._complete(replace(measurement, functions=works))


def strategy_of(case: Case) -> type[Strategy]:
    """Returns the strategy of a case: launches of one kind, or the strategy of its rate.

    Raises:
        UsageError: the rate is a search or a sweep, but the dimension is not throughput, or there is a noisy neighbour.
    """
    if case.noisy_neighbour is not None and (case.rate.is_search or case.rate.is_sweep):
        raise UsageError(
            f"beside a noisy neighbour and without it launches have the same load, not rate {case.rate.typed}; give"
            f" max,"
            " frames per second, or a part of a rate (pdr:0.5%*0.9)"
        )
    if case.round_trips and (case.rate.is_search or case.rate.is_sweep):
        raise UsageError(
            f"round-trip times are measured at a load, not at rate {case.rate.typed}; give max or frames per second"
        )
    return next((strategy for fits, strategy in STRATEGIES if fits(case.rate)), Strategy)
