# SPDX-License-Identifier: BSD-3-Clause
"""Turns the outcome of a search into a result: a rate with its bracket, "at least", or no number at all. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_icbench.kinds.search.mlrsearch import Bounds, OutOfTime, Tried, find_bounds
from pytest_icbench.measure.summary.bottleneck import BUSY_SHARE, NEGLIGIBLE_LOSS, Bottleneck
from pytest_icbench.measure.summary.frame_figures import as_kind, frame_figures, with_rate
from pytest_icbench.measure.summary.recorded import Recorded, split_valid
from pytest_icbench.measure.summary.summarize import Environment, Summary, bottleneck_of, load_indicators, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.figures import Search
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import exact_percent
from pytest_icbench.model.search_goal import Goal
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
        reason: reason of INVALID.
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
        why = (
            f"the reference link loses more than {_goal(outcome.goal)} there too"
            if outcome.reference_fails
            else "the senders cannot offer it"
        )
        evidence = f"the upper bound of {_mpps(upper, pairs)} is not the device's: {why}"
        return _Finding("generator-bound", evidence, limited=True, generator=True)
    return _Finding("max-duration", _out_of_time(outcome, bounds, pairs)) if late else _Finding("goal")


def _nothing_proven(case: Case, outcome: SearchOutcome, bounds: Bounds, generator: bool) -> _Finding:
    if not bounds.reached:
        return _Finding("max-duration", _out_of_time(outcome, bounds, case.senders), "unfinished")
    trials = [trial for trial, _ in outcome.at(bounds.upper_pps, case.senders) if not trial.good]
    worst = max(trials, key=lambda trial: trial.trial_loss_ratio, default=None)
    shown = (
        ""
        if worst is None
        else f": {worst.scheduled - worst.received} of {worst.scheduled} frames lost or refused"
        f" in {worst.duration_s:g} s"
    )
    load = _mpps(bounds.upper_pps or 0.0, case.senders)
    condition = "without loss" if outcome.goal.loss_ratio == 0 else f"with at most {_goal(outcome.goal)} loss"
    if generator:
        cause = "the reference link does not either" if outcome.reference_fails else "the senders cannot offer it"
        return _Finding(
            "generator-bound", f"{load} does not pass {condition}{shown}, but {cause}", "generator-bound", True, True
        )
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
