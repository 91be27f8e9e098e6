# SPDX-License-Identifier: BSD-3-Clause
"""Runs a search on rigs, from calibration to what limited its bound, and makes a result of its outcome."""

from __future__ import annotations

import time
from collections.abc import Sequence
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
from pytest_icbench.measure.case_progress import Phase
from pytest_icbench.measure.estimate import LAUNCH_OVERHEAD_S, Extent
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.method import Method
from pytest_icbench.measure.repetition import TYPICAL_OVERHEAD_S, Strategy
from pytest_icbench.measure.summary.bottleneck import BUSY_SHARE, NEGLIGIBLE_LOSS, Bottleneck
from pytest_icbench.measure.summary.frame_figures import as_kind, frame_figures, with_rate
from pytest_icbench.measure.summary.launch_log import LaunchLog
from pytest_icbench.measure.summary.recorded import Recorded, split_valid
from pytest_icbench.measure.summary.summarize import Environment, Summary, bottleneck_of, load_indicators, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.figures import Search
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate, exact_percent
from pytest_icbench.model.search_goal import PRESETS, Goal
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import SearchLog, Trial
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import Estimate

#: The figures of the launches at the lower bound.
SEARCH = Summary(lambda case, log: as_kind(Search, frame_figures(case, log.launches)))


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The outcome of a search. Loads are per pair but for the trials'. Each of ``trials`` has one of ``launches``."""

    goal: Goal
    bounds: Bounds | None
    least_pps: float | None
    greatest_pps: float | None
    calibrated_on: str | None
    reference_fails: bool | None
    limit_s: float
    trials: Sequence[Trial]
    launches: Sequence[Launch]

    def offered_share(self, load_pps: float | None, pairs: int) -> float:
        """Returns the share of a load that its good trials together really offered, 0 to 1."""
        good = [trial for trial, _ in self.at(load_pps, pairs) if trial.good]
        scheduled, missing = sum(trial.scheduled for trial in good), sum(trial.not_offered for trial in good)
        return scheduled / (scheduled + missing) if scheduled else 1.0

    def at(self, load_pps: float | None, pairs: int) -> list[tuple[Trial, Launch]]:
        """Returns the trials of the case at a load per pair, with their launches."""
        both = zip(self.trials, self.launches, strict=True)
        return [(t, la) for t, la in both if load_pps is not None and t.of == "case" and t.load_pps == load_pps * pairs]


@dataclass(frozen=True, slots=True)
class _Finding:
    """The finding on a search as a whole.

    Attributes:
        limited: whether the rate is only "at least".
        generator: whether the generator is the limit.
    """

    ended_by: str
    evidence: str | None = None
    reason: str | None = None
    limited: bool = False
    generator: bool = False


def with_search(case: Case, measurement: Measurement, outcome: SearchOutcome, around: Environment) -> Measurement:
    """Returns the measurement of the trials at the lower bound with the result of the whole search."""
    pairs, bounds = case.senders, outcome.bounds
    invalid = measurement.verdict == Verdict.INVALID
    finding = _Finding("invalid") if invalid or bounds is None else _finding(case, outcome, bounds)
    kept = {launch.index: launch for launch in measurement.per_launch}
    common = replace(
        measurement,
        metric=case.rate.metric,
        precision=None,
        confidence=None,
        dependence=None,
        drift=None,
        levels=tuple(replace(level, values=()) for level in measurement.levels),  # trials are of several loads
        ended_by=finding.ended_by,
        per_launch=tuple(kept[index] for index in sorted(kept)),
        generator_bound=finding.generator,
    )
    figures = replace(
        measurement.searched,
        search_lower_pps=_scaled(bounds.lower_pps if bounds else None, pairs),
        search_upper_pps=_scaled(bounds.upper_pps if bounds else None, pairs),
        search=_search(outcome, finding, pairs),
    )
    if invalid or bounds is None or finding.reason is not None:
        nothing = replace(common, figures=with_rate(figures, case, None))
        if finding.reason is None:
            return nothing
        return replace(nothing, verdict=Verdict.INVALID, reason=finding.reason, evidence=finding.evidence)
    share = outcome.offered_share(bounds.lower_pps, pairs)
    rate, upper = (_scaled(bounds.conditional_pps, pairs) or 0.0) * share, _scaled(bounds.upper_pps, pairs)
    high = None if finding.limited else upper
    bottleneck = _limit(case, outcome, bounds, finding, around)
    ratio = None
    if outcome.calibrated_on == "reference" and outcome.greatest_pps and not measurement.reference_evidence:
        ratio = Estimate(rate / (outcome.greatest_pps * pairs))
    return replace(
        common,
        figures=with_rate(figures, case, Estimate(rate, rate, high)),
        ratio_to_reference=ratio,
        bottleneck=bottleneck.limit,
        bottleneck_evidence=bottleneck.evidence,
        lower_bound=finding.limited or bottleneck.lower_bound,
    )


def _finding(case: Case, outcome: SearchOutcome, bounds: Bounds) -> _Finding:
    lower, upper, pairs = bounds.lower_pps, bounds.upper_pps, case.senders
    late = not bounds.reached
    generator = outcome.reference_fails is True or _mostly_generator_bound(outcome, upper, pairs)
    if lower is None:
        return _nothing_proven(case, outcome, bounds, generator)
    if upper is None and late:
        return _Finding("max-duration", _out_of_time(outcome, bounds, pairs), limited=True)
    if upper is None:
        where = "the reference link sustains" if outcome.calibrated_on == "reference" else "the senders can offer"
        offered = lower * outcome.offered_share(lower, pairs)
        evidence = f"the greatest load that {where}, {_mpps(offered, pairs)}, passes: the device takes at least that"
        return _Finding("generator-bound", evidence, limited=True, generator=True)
    if generator:
        lossy = f"the reference link loses more than {_goal(outcome.goal)} there too"
        why = lossy if outcome.reference_fails else "the senders cannot offer it"
        evidence = f"the upper bound of {_mpps(upper, pairs)} is not the device's: {why}"
        return _Finding("generator-bound", evidence, limited=True, generator=True)
    return _Finding("max-duration", _out_of_time(outcome, bounds, pairs)) if late else _Finding("goal")


def _nothing_proven(case: Case, outcome: SearchOutcome, bounds: Bounds, generator: bool) -> _Finding:
    if not bounds.reached:
        return _Finding("max-duration", _out_of_time(outcome, bounds, case.senders), "unfinished")
    trials = [trial for trial, _ in outcome.at(bounds.upper_pps, case.senders) if not trial.good]
    worst = max(trials, key=lambda trial: trial.trial_loss_ratio, default=None)
    shown = ""
    if worst is not None:
        missing = worst.scheduled - worst.received
        shown = f": {missing} of {worst.scheduled} frames lost or refused in {worst.duration_s:g} s"
    load = _mpps(bounds.upper_pps or 0.0, case.senders)
    condition = "without loss" if outcome.goal.loss_ratio == 0 else f"with at most {_goal(outcome.goal)} loss"
    if generator:
        cause = "the reference link does not either" if outcome.reference_fails else "the senders cannot offer it"
        evidence = f"{load} does not pass {condition}{shown}, but {cause}"
        return _Finding("generator-bound", evidence, "generator-bound", True, True)
    return _Finding("goal", f"no load passes {condition} down to the least, {load}{shown}", "lossy")


def _out_of_time(outcome: SearchOutcome, bounds: Bounds, pairs: int) -> str:
    target = f"within {exact_percent(outcome.goal.width)} %"
    head = f"ended after {outcome.limit_s:g} s, before its goal"
    if bounds.width is not None:
        apart = exact_percent(round(bounds.width, 6))
        return f"{head}: the bounds are {apart} % apart, not {target}; give it more time (--icbench-max-duration)"
    ends = (("above", bounds.lower_pps), ("below", bounds.upper_pps))
    proven = [f"{word} {_mpps(end, pairs)}" for word, end in ends if end is not None]
    short = [
        f"{word} {_mpps(end, pairs)}"
        for word, end in zip(("above", "below"), bounds.coarse, strict=True)
        if end is not None
    ]
    result = f"proven: {' and '.join(proven)}" if proven else "no bound was proven"
    more = f"; shorter trials put it {' and '.join(short)}" if short and short != proven else ""
    return f"{head}: {result}{more}; give it more time (--icbench-max-duration)"


def _mostly_generator_bound(outcome: SearchOutcome, load_pps: float | None, pairs: int) -> bool:
    bad = [trial for trial, _ in outcome.at(load_pps, pairs) if not trial.good]
    return 2 * sum(trial.generator_bound for trial in bad) > len(bad)


def _limit(case: Case, outcome: SearchOutcome, bounds: Bounds, finding: _Finding, around: Environment) -> Bottleneck:
    """Returns the bottleneck, which shows at the upper bound, where the goal is missed."""
    if finding.generator:
        return Bottleneck("endpoint", finding.evidence or "", True)
    launches = [launch for trial, launch in outcome.at(bounds.upper_pps, case.senders) if not trial.good]
    if not launches:
        return Bottleneck("unknown", "no load was measured at which it loses more", finding.limited)
    indicators = load_indicators(case, launches, around)
    lost = max(indicators.dropped_share, indicators.loss_share)
    if lost <= NEGLIGIBLE_LOSS and not indicators.refusing and (indicators.busy_share or 0.0) < BUSY_SHARE:
        return Bottleneck("unknown", f"{lost:.3%} are lost at the upper bound, too few to tell where", finding.limited)
    return bottleneck_of(case, indicators, around)


def _search(outcome: SearchOutcome, finding: _Finding, pairs: int) -> SearchLog:
    goal, bounds = outcome.goal, outcome.bounds
    return SearchLog(
        preset=goal.preset,
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        width=goal.width,
        initial_trial_s=goal.initial_trial_s,
        final_trial_s=goal.final_trial_s,
        duration_sum_s=goal.duration_sum_s,
        least_pps=_scaled(outcome.least_pps, pairs),
        greatest_pps=_scaled(outcome.greatest_pps, pairs),
        calibrated_on=outcome.calibrated_on,
        reached=bounds is not None and bounds.reached,
        evidence=finding.evidence,
        trials=tuple(outcome.trials),
    )


def _scaled(load_pps: float | None, pairs: int) -> float | None:
    return None if load_pps is None else load_pps * pairs


def _mpps(load_pps: float, pairs: int) -> str:
    return f"{load_pps * pairs / 1e6:.4g} Mpps"


def _goal(goal: Goal) -> str:
    return f"{exact_percent(goal.loss_ratio)} %"


def recompute_search(recorded: Recorded) -> Measurement:
    """Repeats the search with the recorded answer to each load. Raises DamagedData if a trial has no launch."""
    search, case, settings = recorded.whole.searched.search, recorded.case, recorded.settings
    if search is None:  # it did not begin
        return recorded.summarized(SEARCH)
    goal, senders = settings.goal(case.rate), case.senders
    launches = _of_trials(search, recorded.launches, recorded.reference)
    of_case = [(trial, launch) for trial, launch in zip(search.trials, launches, strict=True) if trial.of == "case"]
    bounds = fails = None
    if search.least_pps is not None and search.greatest_pps is not None:
        bounds = _bounds_of(goal, search, senders, of_case)
        asked = _after_the_last_of_the_case(search)
        fails = 2 * sum(trial.good for trial in asked) < len(asked) if asked else None
    lower = bounds.lower_pps * senders if bounds and bounds.lower_pps is not None else None
    at_bound = {id(launch) for trial, launch in of_case if trial.load_pps == lower}
    figures = [launch for launch in recorded.launches if id(launch) in at_bound]
    others = [launch for launch in recorded.launches if id(launch) not in at_bound]
    log = recorded.log(figures, others, "unfinished", "lossy", "generator-bound")
    outcome = SearchOutcome(
        goal=goal,
        bounds=bounds,
        least_pps=None if search.least_pps is None else search.least_pps / senders,
        greatest_pps=None if search.greatest_pps is None else search.greatest_pps / senders,
        calibrated_on=search.calibrated_on,
        reference_fails=fails,
        limit_s=settings.search_limit_s,
        trials=search.trials,
        launches=launches,
    )
    return with_search(case, summarize(SEARCH, case, settings, log, recorded.around), outcome, recorded.around)


def _bounds_of(goal: Goal, search: SearchLog, senders: int, ran: Sequence[tuple[Trial, Launch]]) -> Bounds:
    """Returns the bounds of the recorded trials on the case. The first one calibrated if no reference link did."""
    answers = iter([_tried(trial, launch) for trial, launch in (ran[1:] if search.calibrated_on == "case" else ran)])

    def answer(_duration_s: float, _load_pps: float) -> Tried:
        try:
            return next(answers)
        except StopIteration:
            raise OutOfTime from None

    return find_bounds(goal, (search.least_pps or 0.0) / senders, (search.greatest_pps or 0.0) / senders, answer)


def _of_trials(search: SearchLog, launches: Sequence[Launch], reference: Sequence[Launch]) -> list[Launch]:
    """Returns the launch of each trial; launches are numbered as they ran. Raises DamagedData if some are missing."""
    left = {
        "case": iter(sorted(split_valid(launches)[0], key=lambda launch: launch.index)),
        "reference": iter(sorted(reference, key=lambda launch: launch.index)),
    }
    try:
        return [next(left[trial.of]) for trial in search.trials]
    except StopIteration:
        raise DamagedData("a search has more trials than launches") from None


def _tried(trial: Trial, launch: Launch) -> Tried:
    unsent = launch.total("not_offered") if trial.generator_bound else 0
    return Tried(launch.total("scheduled"), launch.total("handled"), trial.effective_s, unsent)


def _after_the_last_of_the_case(search: SearchLog) -> list[Trial]:
    places = [place for place, trial in enumerate(search.trials) if trial.of == "case"]
    return list(search.trials[places[-1] + 1 :]) if places else []


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
        overhead_s = self.ran[-1].launch.overhead_s if self.ran else TYPICAL_OVERHEAD_S
        if self._elapsed() + self._warmup_s + duration_s + overhead_s > self.settings.search_limit_s:
            raise OutOfTime
        self._tell_detail(self._trial_detail(load_pps))
        trial = self._run(self.rig, self.case, "case", load_pps, duration_s).trial
        unsent = trial.not_offered if trial.generator_bound else 0
        return Tried(trial.scheduled, trial.received, trial.effective_s, unsent)

    @property
    def _warmup_s(self) -> float:
        return max(self.settings.warmup_s, FIXED_WARMUP_S) if self.settings.settles else self.settings.warmup_s

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
        """Waits for the state in which the search began: a trial in another state decides nothing."""
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
