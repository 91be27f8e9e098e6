# SPDX-License-Identifier: BSD-3-Clause
"""Runs a search on rigs: it calibrates on the reference link, tries the case, and checks what limited the bound."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pytest_icbench.kinds.search.mlrsearch import (
    ASKED_AGAIN,
    SPAN,
    Bounds,
    OutOfTime,
    Tried,
    check_library,
    find_bounds,
)
from pytest_icbench.kinds.search.search_summary import SEARCH, SearchOutcome, recompute_search, with_search
from pytest_icbench.measure.case_progress import Phase
from pytest_icbench.measure.estimate import LAUNCH_OVERHEAD_S, Extent
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.method import Method
from pytest_icbench.measure.repetition import TYPICAL_OVERHEAD_S, Strategy
from pytest_icbench.measure.summary.launch_log import LaunchLog
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.search_goal import PRESETS, Goal
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import Trial

#: The reference link sustains a load if at most this share of it is not offered, refused or lost.
CALIBRATED_LOSS = 0.01
#: Next load of the calibration, as a share of what the last one delivered. Each has two tries: one may be disturbed.
CALIBRATION_STEP = 0.98
CALIBRATION_STEPS = 5
CALIBRATION_TRIES = 2
#: Without a reference link the greatest load is the maximum of the path itself times this factor.
PATH_MARGIN = 1.1
#: The reference link is at its limit, too, if it loses more than the goal allows in most of this many trials at a load.
REFERENCE_TRIALS = 3
#: Warm-up of a trial if that of other launches lasts until their rate is stationary, in seconds.
FIXED_WARMUP_S = 0.25
#: The fewest bursts of a trial.
LEAST_BURSTS = 10
#: Estimated number of trials in which a search comes near before it decides, with those of its calibration.
SEARCH_STEPS = 12


@dataclass(frozen=True, slots=True)
class _Ran:
    """A launch with its trial."""

    launch: Launch
    trial: Trial


class SearchStrategy(Strategy):
    """Launches of a case as the trials of a search."""

    goal: Goal
    bounds: Bounds | None = None
    least_pps: float | None = None
    greatest_pps: float | None = None
    calibrated_on: str | None = None
    reference_fails: bool | None = None

    def _rounds(self) -> None:
        self.ran: list[_Ran] = []
        self.goal = self.settings.goal(self.case.rate)
        self._begin()
        try:
            self.greatest_pps = self._calibrate()
            floor = LEAST_BURSTS * self.case.burst / self.goal.initial_trial_s
            self.least_pps = min(max(self.greatest_pps / SPAN, floor), self.greatest_pps / 2)
            self.bounds = find_bounds(self.goal, self.least_pps, self.greatest_pps, self._trial)
            upper = self.bounds.upper_pps
            if upper is not None and self.reference_rig is not None:
                self._reference(lambda rig: self._ask_reference(rig, upper))
        finally:
            self._sort_launches()
        self.gathered.ended_by = "goal" if self.bounds.reached else "max-duration"

    def _sort_launches(self) -> None:
        """Keeps the trials at the lower bound for the figures; the others are evidence."""
        lower = self.bounds.lower_pps if self.bounds else None
        loads = {ran.launch.index: ran.trial.load_pps for ran in self.ran if ran.trial.of == "case"}
        figures: list[Launch] = []
        others: list[Launch] = []
        for launch in self.gathered.launches:
            at_bound = lower is not None and loads[launch.index] == self._total(lower)
            (figures if at_bound else others).append(launch)
        self.gathered.launches, self.gathered.rejected = figures, others + self.gathered.rejected

    def _total(self, load_pps: float) -> float:
        return load_pps * self.case.senders

    # -- the greatest load

    def _calibrate(self) -> float:
        """Returns the greatest load, in frames per second and sender. Raises Invalid, and errors of launches."""
        duration_s = self.goal.initial_trial_s
        self._tell_detail("calibration")
        if self.reference_rig is not None:
            loads: list[float] = []
            self._reference(lambda rig: loads.append(self._calibrate_on_reference(rig, duration_s)))
            if loads:
                self.calibrated_on = "reference"
                return loads[0]
        self.calibrated_on = "case"
        ran = self._run(self.rig, self.case, "case", None, duration_s)
        return PATH_MARGIN * max(ran.launch.offered_pps / self.case.senders, 1.0)

    def _calibrate_on_reference(self, rig: MeasuredRig, duration_s: float) -> float:
        ran = self._run(rig, self.reference, "reference", None, duration_s)
        load = ran.launch.offered_pps / self.case.senders
        for _ in range(CALIBRATION_STEPS):
            delivered = 0.0
            for _ in range(CALIBRATION_TRIES):
                trial = self._run(rig, self.reference, "reference", load, duration_s).trial
                delivered = max(delivered, trial.received / max(trial.scheduled + trial.not_offered, 1))
                if delivered >= 1 - CALIBRATED_LOSS:
                    return load
            load = max(load * delivered * CALIBRATION_STEP, 1.0)
        return load

    # -- trials

    def _trial(self, duration_s: float, load_pps: float) -> Tried:
        trial_s = self._warmup_s + duration_s + self._overhead
        if self._elapsed() + trial_s > self.settings.search_limit_s:
            raise OutOfTime
        self._tell_detail(self._trial_detail(load_pps))
        trial = self._run(self.rig, self.case, "case", load_pps, duration_s).trial
        unsent = trial.not_offered if trial.generator_bound else 0
        return Tried(trial.scheduled, trial.received, trial.effective_s, unsent)

    @property
    def _warmup_s(self) -> float:
        return max(self.settings.warmup_s, FIXED_WARMUP_S) if self.settings.settles else self.settings.warmup_s

    @property
    def _overhead(self) -> float:
        return self.ran[-1].launch.overhead_s if self.ran else TYPICAL_OVERHEAD_S

    def _trial_detail(self, load_pps: float) -> str:
        """Returns ``trial 7 at 3.21 Mpps, bounds 3.1..3.4``: the greatest good and the least bad load so far."""
        trials = [ran.trial for ran in self.ran if ran.trial.of == "case" and ran.trial.load_pps]
        bad = min((trial.load_pps for trial in trials if not trial.good), default=None)
        good = max((t.load_pps for t in trials if t.good and (bad is None or t.load_pps < bad)), default=None)
        ends = ["" if end is None else f"{end / 1e6:.4g}" for end in (good, bad)]
        return f"trial {len(trials) + 1} at {self._total(load_pps) / 1e6:.4g} Mpps, bounds {'..'.join(ends)}"

    def _ask_reference(self, rig: MeasuredRig, load_pps: float) -> None:
        """Finds out whether the reference link, too, loses more at this load than the goal allows."""
        bad = good = 0
        most = REFERENCE_TRIALS // 2 + 1
        while bad < most and good < (1 if not bad else most):
            self._tell_detail(f"reference at {self._total(load_pps) / 1e6:.4g} Mpps")
            trial = self._run(rig, self.reference, "reference", load_pps, self.goal.final_trial_s).trial
            bad, good = bad + (not trial.good), good + trial.good
        self.reference_fails = bad >= most

    def _run(self, rig: MeasuredRig, case: Case, phase: Phase, load_pps: float | None, duration_s: float) -> _Ran:
        """Runs one launch as a trial; ``load_pps`` is per sender, None for the maximum."""
        rate = Rate() if load_pps is None else Rate(max(round(load_pps), 1))
        self._keep_to_state()
        whole, self.settings = self.settings, self._trial_settings(duration_s, paced=load_pps is not None)
        began, repeated_s = time.monotonic(), self.repeated_s
        try:
            launch = self._valid_launch(rig, case.sending(rate=rate), phase)
        finally:
            self.settings = whole
        spent = time.monotonic() - began - (self.repeated_s - repeated_s)  # what does not count proves nothing
        (self.gathered.launches if phase == "case" else self.gathered.reference).append(launch)
        scheduled, received, missing = (launch.total(name) for name in ("scheduled", "handled", "not_offered"))
        short = load_pps is not None and self.goal.falls_short(missing, scheduled + missing)
        # A path that loses too much of a lesser load would not have passed the whole load either.
        bound = short and self.goal.accepts(Tried(scheduled, received, 0.0, 0).loss_ratio)
        loss = Tried(scheduled, received, 0.0, missing if bound else 0).loss_ratio
        trial = Trial(
            of=phase,
            load_pps=0.0 if load_pps is None else self._total(load_pps),
            duration_s=launch.duration_s,
            effective_s=spent if self.goal.overheads_count else duration_s,
            scheduled=scheduled,
            not_offered=missing,
            refused=launch.total("refused"),
            received=received,
            trial_loss_ratio=loss,
            good=self.goal.accepts(loss),
            generator_bound=bound,
        )
        self.ran.append(_Ran(launch, trial))
        return self.ran[-1]

    def _trial_settings(self, duration_s: float, *, paced: bool) -> Settings:
        """Returns a trial's settings: every window counts, and a late sender does not flood the switch's input ring."""
        window_s = min(self.settings.window_s, duration_s)
        return replace(
            self.settings,
            duration_s=max(round(duration_s / window_s), 1) * window_s,
            window_s=window_s,
            warmup_s=self._warmup_s,
            max_warmup_s=0.0,  # a load that is too great never becomes stationary
            skip_s=0.0,
            keep_s=None,
            drain_s=max(self.settings.drain_s, PRESETS[self.goal.preset].drain_s),
            catch_up=max(2 * self.case.burst, self.settings.ring // 2) if paced else 0,
        )

    # -- progress and result

    def _tell_detail(self, detail: str) -> None:
        self.detail = detail
        self._tell("case", None)

    def _outlook(self, done: int) -> tuple[float, int]:
        return max(self.settings.search_limit_s - self._elapsed(), 0.0), done + 1

    def _keep_to_state(self) -> None:
        """Waits for the state in which the search began: what passes in another one is no answer to it."""
        known = [ran.launch.distance_ns for ran in self.ran if ran.trial.of == "case"]
        self._await_state(next((distance_ns for distance_ns in known if distance_ns is not None), None))

    def of_one_state(self) -> LaunchLog:
        return self.gathered  # trials answer each other, so none is taken out

    def finish(self, measurement: Measurement, around: Environment) -> Measurement:
        outcome = SearchOutcome(
            goal=self.goal,
            bounds=self.bounds,
            least_pps=self.least_pps,
            greatest_pps=self.greatest_pps,
            calibrated_on=self.calibrated_on,
            reference_fails=self.reference_fails,
            limit_s=self.settings.search_limit_s,
            trials=tuple(ran.trial for ran in self.ran),
            launches=tuple(ran.launch for ran in self.ran),
        )
        return with_search(self.case, measurement, outcome, around)


def check_search(case: Case, settings: Settings) -> None:
    """Raises UsageError if the library is missing, or the preset does not allow the loss ratio of the rate."""
    check_library()
    settings.goal(case.rate)


def search_s(settings: Settings, rate: Rate, extent: Extent) -> float:
    """Returns the seconds of a search: short trials that come near, then a good and a bad load that decide.

    Some goals ask for the bad load again at the end.
    """
    goal = settings.goal(rate)
    overhead = settings.warmup_s + LAUNCH_OVERHEAD_S
    coming_near = SEARCH_STEPS * (goal.initial_trial_s + overhead)
    deciding = 2 * max(goal.duration_sum_s * (1 - goal.exceed_ratio), goal.final_trial_s)
    more = 0.0 if goal.overheads_count else 2 * overhead
    again = (ASKED_AGAIN // 2 + 1) * (goal.final_trial_s + overhead) if goal.exceed_ratio else 0.0
    # The rigs take turns for the calibration, and for the last trials on the reference link.
    seconds = coming_near + deciding + more + again + extent.turns_s(4)
    return min(seconds, settings.search_limit_s) + extent.building_s


METHOD = Method(SEARCH, lambda _case: SearchStrategy, check_search, search_s, recompute_search)
