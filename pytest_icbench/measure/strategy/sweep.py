# SPDX-License-Identifier: BSD-3-Clause
"""The maximum forwarding rate (RFC 2285): a launch at each of several offered loads, then fresh ones at the best.

The greatest of several noisy figures is too great. Therefore the sweep only decides which load is the best. The figure
and its interval come from fresh launches at that load, as many as the precision takes.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_icbench.measure.progress import Phase
from pytest_icbench.measure.rig import MeasuredRig
from pytest_icbench.measure.strategy.repeat import Strategy
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.measure.summary.sweep import with_sweep
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate

#: Default loads of a sweep, as shares of the reference link's maximum: RFC 2544 26.3 has these steps.
DEFAULT_STEPS = tuple(step / 10 for step in range(1, 11))


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
