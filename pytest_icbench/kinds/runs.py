# SPDX-License-Identifier: BSD-3-Clause
"""How each kind is measured, and recomputed from its windows and histograms. A new kind has a row here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from pytest_icbench.errors import UsageError
from pytest_icbench.kinds.application import application_summary
from pytest_icbench.kinds.latency import latency_summary
from pytest_icbench.kinds.search import search_run
from pytest_icbench.kinds.startup.startup_run import Place, measure_startup
from pytest_icbench.kinds.startup.startup_summary import recompute_startup
from pytest_icbench.kinds.throughput import throughput_run
from pytest_icbench.measure.case_progress import OnProgress
from pytest_icbench.measure.estimate import Extent
from pytest_icbench.measure.functions import by_cpu_allocation
from pytest_icbench.measure.method import Method
from pytest_icbench.measure.noisy_neighbours import FEWEST_PAIRS, with_effect
from pytest_icbench.measure.repetition import Part
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.side_by_side import measure_side_by_side, with_comparison
from pytest_icbench.measure.soak import with_losses
from pytest_icbench.measure.stopping import Criteria
from pytest_icbench.measure.summary.bottleneck import with_full_table
from pytest_icbench.measure.summary.recorded import Recorded
from pytest_icbench.measure.summary.summarize import Environment, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.noisy_neighbour import NoisyNeighbourEffect, NoisyNeighbourUse
from pytest_icbench.model.rate import MAXIMUM, Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES


@dataclass(frozen=True, slots=True)
class OwnMethod:
    """The method of a kind that makes its own nodes. The rigs of its cases are empty."""

    measure: Callable[[Place, Settings, Environment, OnProgress | None], Measurement]
    recompute: Callable[[Recorded], Measurement]


#: The methods of kinds whose cases have launches, by the kind of a case.
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "throughput": throughput_run.METHOD,
        "search": search_run.METHOD,
        "latency": latency_summary.METHOD,
        "application": application_summary.METHOD,
    }
)
#: The methods of the other kinds.
OWN_METHODS: Mapping[str, OwnMethod] = MappingProxyType({"startup": OwnMethod(measure_startup, recompute_startup)})


def check_case(case: Case, settings: Settings) -> None:
    """Checks what a case that has launches needs: a suitable rate, the library of a search, a suitable preset.

    Raises UsageError: something is missing.
    """
    if case.noisy_neighbour is not None and case.rate.varies:
        raise UsageError(
            f"launches with and without a noisy neighbour need the same load, and rate {case.rate.typed} has several;"
            " give max, frames per second, or a part of a rate (pdr:0.5%*0.9)"
        )
    METHODS[case.kind].check(case, settings)


def check_comparable(case: Case) -> None:
    """Raises UsageError for a search or a sweep, whose launches have no neighbour to be compared with."""
    if case.rate.varies:
        raise UsageError(
            f"versions side by side need the same load, and rate {case.rate.typed} has several: with"
            " --icbench-candidate give --icbench-rate max or a load"
        )


def estimate_s(
    settings: Settings,
    *,
    reference: bool,
    build: bool = True,
    rate: Rate = MAXIMUM,
    in_turn: bool = False,
    launches: int | None = None,
) -> float:
    """Returns the least seconds of a case with launches. The arguments are those of ``Extent``.

    ``rate``: a share of a searched rate takes as long as a fixed load, because the search is a separate case.
    """
    method = METHODS[Frames(rate=rate).measured_as("throughput")]
    return method.estimate(settings, rate, Extent(reference, build, in_turn, launches))


def measure(
    measured: Side,
    settings: Settings,
    reference: Side | None = None,
    on_progress: OnProgress | None = None,
    *,
    part: Part | None = None,
) -> Measurement:
    """Measures a case on its rig, interleaved with its reference link.

    Args:
        measured: the case on its rig, built and running.
        reference: the reference on its rig, built; without one, or with ``settings.reference`` off, there is no
            ``ratio_to_reference``. The two rigs never run at once: at the end that of the case runs and that of the
            reference is paused.
        part: the round that this is; the measurement is then that of all rounds so far. Only for launches of one kind.

    Returns the measurement; its verdict is None, or INVALID with a reason.

    Raises:
        WorkloadError: a process failed; with the tail of its log.
        ProvisionError: a rig could not be built anew, paused or resumed.
    """
    return Measuring(measured, settings, reference, on_progress).run(part)


class Measuring:
    """A case that is measured on its rigs. Other cases run between its turns.

    ``complete``: adds what only the caller knows to the result. Other arguments are those of ``measure``. Raises
    UsageError: the case cannot be measured with these settings. ``strategy``: runs its launches.
    """

    def __init__(
        self,
        measured: Side,
        settings: Settings,
        reference: Side | None = None,
        on_progress: OnProgress | None = None,
        *,
        complete: Callable[[Measurement], Measurement] = lambda measurement: measurement,
    ) -> None:
        self._measured, self._complete, case = measured, complete, measured.case
        check_case(case, settings)
        if not settings.reference and case.noisy_neighbour is None:
            reference = None
        self._method = METHODS[case.kind]
        if case.noisy_neighbour is not None:
            settings = replace(settings, min_launches=max(settings.min_launches, FEWEST_PAIRS))
        self.strategy = self._method.strategy_of(case)(measured, reference, settings, on_progress)

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
        """Ends the case. Returns the measurement of the launches so far; None without any."""
        if not self.strategy.gathered.launches:
            return None
        self.strategy.interrupt()
        return self.result()

    def result(self) -> Measurement:
        """Returns the measurement of the launches that were run."""
        rig, case, strategy = self._measured.rig, self._measured.case, self.strategy
        around = self._measured.environment(shared=rig.placement.shared)
        gathered = strategy.of_one_state()
        measurement = strategy.finish(
            summarize(self._method.summary, case, strategy.settings, gathered, around), around
        )
        works = by_cpu_allocation(strategy.functions.work, case, gathered.launches, gathered.reference)
        measurement = with_effect(measurement, case, gathered.reference, rig.noisy_neighbour_use)
        return self._complete(with_full_table(replace(measurement, functions=works)))


def measure_versions(
    candidate: Side, base: Side, settings: Settings, criteria: Criteria, on_progress: OnProgress | None = None
) -> tuple[Measurement, Measurement]:
    """Measures a candidate side by side with its base. Returns and raises as ``measure_side_by_side`` does.

    Raises UsageError: the rate is a search or a sweep.
    """
    check_comparable(candidate.case)
    summary = METHODS[candidate.case.kind].summary
    return measure_side_by_side(summary, candidate, base, settings, criteria, on_progress)


def recomputed(whole: Measurement) -> Measurement:
    """Returns the recomputed measurement before it is judged: its verdict is None or INVALID.

    Raises DamagedData: parts are missing, as in a result of an earlier version.
    """
    if whole.dependence is None and whole.precision and whole.launches >= FEWEST_LAUNCHES:
        raise DamagedData(f"{whole.case}: its intervals are of an earlier version that assumed independent launches")
    recorded = Recorded.of(whole)
    kind = whole.figures.kind
    measurement = (METHODS.get(kind) or OWN_METHODS[kind]).recompute(recorded)
    # Its launches were valid by the rules of their version. No window has the counters of functions.
    measurement = with_full_table(replace(measurement, rules=whole.rules, functions=whole.functions))
    measurement = with_effect(measurement, recorded.case, recorded.reference, _use(whole.frames.noisy_neighbour))
    if whole.frames.loss_events is not None:
        measurement = with_losses(measurement)
    # The base is another result, so the recorded comparison is copied.
    return with_comparison(measurement, whole.side_by_side)


def _use(recorded: NoisyNeighbourEffect | None) -> NoisyNeighbourUse | None:
    """Returns the use of the CPU by a noisy neighbour, which no window has."""
    if recorded is None or recorded.busy is None:
        return None
    return NoisyNeighbourUse(recorded.busy, recorded.cache_bytes)


def differences(recorded: Measurement, anew: Measurement, names: Collection[str]) -> list[str]:
    """Returns the names whose values differ, to the last digit.

    ``names``: names that were recorded; an earlier version had fewer. Windows are compared by the figures from them.
    """
    before, now = (data.pop("figures") | data for data in (recorded.to_dict(), anew.to_dict()))
    return [name for name in before if name in names and before[name] != now.get(name)]
