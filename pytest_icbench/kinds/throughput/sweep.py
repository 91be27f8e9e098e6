# SPDX-License-Identifier: BSD-3-Clause
"""The maximum forwarding rate (RFC 2285): a launch at each of several offered loads, then fresh ones at the best.

The greatest of several noisy figures is too great. Therefore the sweep only decides which load is the best. The figure
and its interval come from fresh launches at that load, as many as the precision takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.measure.case_progress import Phase
from pytest_icbench.measure.estimate import LAUNCH_OVERHEAD_S, Extent, launches_s
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.repetition import Strategy
from pytest_icbench.measure.summary.bottleneck import NEGLIGIBLE_LOSS, Bottleneck
from pytest_icbench.measure.summary.recorded import Recorded, split_valid
from pytest_icbench.measure.summary.summarize import Environment, Summary, bottleneck_of, load_indicators, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import SweepPoint
from pytest_icbench.model.verdict import Verdict

#: Default loads of a sweep, as shares of the reference link's maximum: RFC 2544 26.3 has these steps.
DEFAULT_STEPS = tuple(step / 10 for step in range(1, 11))


#: Loads with their launches.
Swept = Sequence[tuple[Rate, Launch]]


class SweepStrategy(Strategy):
    """Runs launches at several loads, then, like ``Strategy``, at the load with the greatest rate received."""

    best: Rate | None = None
    sweep_s = 0.0

    def run(self) -> None:
        super().run()
        self.gathered.duration_s += self.sweep_s

    def _rounds(self) -> None:
        self.swept: list[tuple[Rate, Launch]] = []
        self._begin()
        try:
            for rate in self._rates():
                self.detail = f"sweep {len(self.swept) + 1} at {rate}"
                self._await_state(self.swept[0][1].distance_ns if self.swept else None)
                self.swept.append((rate, self._valid_launch(self.rig, self.case.sending(rate=rate), "case")))
            self.best = max(self.swept, key=lambda point: point[1].throughput_pps)[0]
            self.detail = None
            self.case = self.case.sending(rate=self.best)
            # The time for a case limits only the launches of the figure, because the user asked for every load.
            self.sweep_s = self._elapsed()
            self.began += self.sweep_s
            self._launches()
        finally:
            self._number()

    def _rates(self) -> list[Rate]:
        loads = self.case.rate.loads
        if loads:
            return [Rate(load) for load in loads]
        self.detail = "calibration"
        greatest_loads: list[float] = []
        self._reference(lambda rig: greatest_loads.append(self._greatest(rig, self.reference, "reference")))
        greatest = greatest_loads[0] if greatest_loads else self._greatest(self.rig, self.case, "case")
        return list(dict.fromkeys(Rate(max(round(step * greatest), 1)) for step in DEFAULT_STEPS))

    def _greatest(self, rig: MeasuredRig, case: Case, phase: Phase) -> float:
        launch = self._valid_launch(rig, case.sending(rate=Rate()), phase)
        return launch.offered_pps / self.case.senders

    def _reference_launch(self, rig: MeasuredRig) -> None:
        """Does nothing: at the fixed best load there is no ratio to the reference."""

    def _number(self) -> None:
        """Numbers the launches as they ran: the sweep's come first."""
        swept = [replace(launch, index=index) for index, (_, launch) in enumerate(self.swept)]
        first = len(swept)
        self.swept = [(rate, launch) for (rate, _), launch in zip(self.swept, swept, strict=True)]
        self.gathered.launches = [replace(la, index=first + la.index) for la in self.gathered.launches]
        self.gathered.rejected = swept + [replace(la, index=first + la.index) for la in self.gathered.rejected]

    def finish(self, measurement: Measurement, around: Environment) -> Measurement:
        return with_sweep(self.case, measurement, self.swept, self.best, self.gathered.launches, around)


def with_sweep(
    case: Case,
    measurement: Measurement,
    swept: Swept,
    best: Rate | None,
    launches: Sequence[Launch],
    around: Environment,
) -> Measurement:
    """Returns the measurement with the sweep's points and its bottleneck.

    Args:
        swept: loads in the order in which they ran.
        best: the load with the greatest rate received; None if the sweep did not end.
        launches: launches at the best load, which give the figures.
    """
    numbered = sorted(measurement.per_launch, key=lambda launch: launch.index)
    points = tuple(_point(rate, launch, case.senders) for rate, launch in swept)
    swept_measurement = replace(
        measurement, figures=replace(measurement.rates, sweep=points), per_launch=tuple(numbered)
    )
    if best is None or measurement.verdict == Verdict.INVALID:
        return swept_measurement
    bottleneck = _limit(case, swept, best, launches, around)
    return replace(
        swept_measurement,
        bottleneck=bottleneck.limit,
        bottleneck_evidence=bottleneck.evidence,
        lower_bound=bottleneck.lower_bound,
    )


def _point(rate: Rate, launch: Launch, pairs: int) -> SweepPoint:
    scheduled, handled = launch.total("scheduled"), launch.total("handled")
    return SweepPoint(
        load_pps=(rate.pps or 0) * pairs,
        offered_pps=launch.offered_pps,
        throughput_pps=launch.throughput_pps,
        trial_loss_ratio=1 - handled / scheduled if scheduled else None,
        generator_bound=launch.generator_bound,
    )


def _limit(case: Case, swept: Swept, best: Rate, launches: Sequence[Launch], around: Environment) -> Bottleneck:
    """Returns the bottleneck, which shows at the loads from the best one up."""
    above = [launch for rate, launch in swept if (rate.pps or 0) >= (best.pps or 0)]
    above += launches
    offered = sum(launch.total("scheduled") for launch in above)
    missed = offered - sum(launch.total("handled") for launch in above)
    short = any(launch.generator_bound for launch in above)
    if missed <= NEGLIGIBLE_LOSS * offered and not short:
        return Bottleneck("unknown", "all of the greatest load arrived: a greater one may give more", True)
    return bottleneck_of(case, load_indicators(case, above, around), around)


def recompute_sweep(summary: Summary, recorded: Recorded) -> Measurement:
    """Returns the measurement of a recorded sweep: its first launches are those of its points."""
    case = recorded.case
    numbered = sorted(recorded.launches, key=lambda launch: launch.index)
    loads = [Rate(round(point.load_pps / case.senders)) for point in recorded.whole.rates.sweep]
    swept = list(zip(loads, numbered, strict=False))
    launches, rejected = split_valid(numbered[len(swept) :])
    log = recorded.log(launches, [launch for _, launch in swept] + rejected)
    best = max(swept, key=lambda point: point[1].throughput_pps)[0] if launches else None
    measurement = summarize(summary, case, recorded.settings, log, recorded.around)
    return with_sweep(case, measurement, swept, best, launches, recorded.around)


def sweep_s(settings: Settings, rate: Rate, extent: Extent) -> float:
    """Returns the least seconds of a sweep: a launch at each load, then those at the best one."""
    load_s = settings.warmup_s + settings.duration_s + LAUNCH_OVERHEAD_S
    loads = len(rate.loads or DEFAULT_STEPS)
    turns_s = 0.0 if rate.loads else extent.turns_s(2)
    return loads * load_s + turns_s + launches_s(settings, rate, replace(extent, reference=False))
