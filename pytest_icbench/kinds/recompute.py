# SPDX-License-Identifier: BSD-3-Clause
"""Recomputes a measurement from its windows and histograms. Pure.

The counters of pairs and the rates of launches follow from windows. The figures follow from launches, with their
latency histograms and the switch's counters. The verdict follows from the limits of the run: ``gate.judge``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_icbench.kinds.startup.startup_summary import recompute_startup
from pytest_icbench.measure.launch.windows import count_windows, kept_s
from pytest_icbench.measure.mlrsearch import Bounds, OutOfTime, Tried, find_bounds
from pytest_icbench.measure.noisy_neighbours import with_effect
from pytest_icbench.measure.strategy import trains
from pytest_icbench.measure.strategy.soak import with_losses
from pytest_icbench.measure.summary.application import OPEN_LOOP
from pytest_icbench.measure.summary.gathered import LaunchLog
from pytest_icbench.measure.summary.search import SearchOutcome, with_search
from pytest_icbench.measure.summary.summarize import Environment, summarize
from pytest_icbench.measure.summary.sweep import with_sweep
from pytest_icbench.measure.versions import with_comparison
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData, decode
from pytest_icbench.model.endpoint import Address, Endpoint, Pci, Veth
from pytest_icbench.model.figures import Figures, Startup
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.noisy_neighbour import NoisyNeighbourEffect, NoisyNeighbourUse
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.search_goal import Goal
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import SearchLog, Trial
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES

#: Recomputes measurements of kinds that make their own nodes, by the type of their figures.
_OF_OWN_RUNS: Mapping[type[Figures], Callable[[Measurement, Case, Settings, Environment], Measurement]] = {
    Startup: recompute_startup,
}


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts from which a measurement is computed.

    Attributes:
        whole: the measurement as it was recorded.
        launches: launches of the case, with recomputed counters.
        reference: launches of the reference link, with recomputed counters.
        around: the environment of the figures.
    """

    whole: Measurement
    case: Case
    settings: Settings
    launches: tuple[Launch, ...]
    reference: tuple[Launch, ...]
    around: Environment

    @classmethod
    def of(cls, whole: Measurement) -> _Parts:
        """Returns the parts of a measurement. Raises DamagedData if some are missing."""
        return cls(
            whole=whole,
            case=_case(whole),
            settings=_settings(whole),
            launches=tuple(recounted(launch) for launch in whole.per_launch),
            reference=tuple(recounted(launch) for launch in whole.per_reference_launch),
            around=_around(whole),
        )

    def gathered(self, launches: Sequence[Launch], rejected: Sequence[Launch], *follows: str) -> LaunchLog:
        """Returns the log of the launches.

        Args:
            launches: valid launches of the figures.
            rejected: invalid launches, which are only evidence.
            follows: reasons of INVALID that are recomputed and not copied.
        """
        whole = self.whole
        invalid = whole.verdict == Verdict.INVALID and whole.reason not in follows
        return LaunchLog(
            launches=list(launches),
            reference=list(self.reference),
            rejected=list(rejected),
            invalid=(whole.reason or "", whole.evidence or "") if invalid else None,
            reference_evidence=whole.reference_evidence,
            faults=list(whole.faults),
            repeated=[recounted(launch) for launch in whole.per_repeated_launch],
            others=[recounted(launch) for launch in whole.per_other_launch],
            awaited_s=whole.awaited_s,
            ended_by=whole.ended_by,
            started_at=whole.started_at,
            duration_s=whole.duration_s,
        )


def recomputed(whole: Measurement) -> Measurement:
    """Returns the recomputed measurement before it is judged: its verdict is None or INVALID.

    Raises:
        DamagedData: parts are missing, as in a result of an earlier version.
    """
    if whole.dependence is None and whole.precision and whole.launches >= FEWEST_LAUNCHES:
        raise DamagedData(f"{whole.case}: its intervals are of an earlier version that assumed independent launches")
    parts = _Parts.of(whole)
    if (recompute := _OF_OWN_RUNS.get(type(whole.figures))) is not None:
        measurement = recompute(whole, parts.case, parts.settings, parts.around)
    elif whole.searched.search is not None:
        measurement = _search(parts, whole.searched.search)
    elif whole.rates.sweep or parts.case.rate.is_sweep:
        measurement = _sweep(parts)
    else:
        measurement = _plain(parts)
    # Its launches were valid by the rules of their version. No window has the counters of functions.
    measurement = replace(measurement, rules=whole.rules, functions=whole.functions)
    measurement = with_effect(measurement, parts.case, parts.reference, _use(whole.frames.noisy_neighbour))
    if whole.frames.loss_events is not None:
        measurement = with_losses(measurement)
    # The base is another result, so the recorded comparison is copied.
    return with_comparison(measurement, whole.side_by_side)


def _use(recorded: NoisyNeighbourEffect | None) -> NoisyNeighbourUse | None:
    """Returns the use of the CPU by a noisy neighbour, which no window has."""
    if recorded is None or recorded.busy is None:
        return None
    return NoisyNeighbourUse(recorded.busy, recorded.cache_bytes)


def recounted(launch: Launch) -> Launch:
    """Returns a launch with counters and rates from its windows; unchanged without windows."""
    if not launch.windows:
        return launch
    pairs = tuple(
        replace(
            count_windows(
                *counts.account,
                [window for window in launch.windows if window.account == counts.account],
                late=counts.late,
                foreign=counts.foreign,
                corrupted=counts.corrupted,
            ),
            lossy_flows=counts.lossy_flows,
            worst_flows=counts.worst_flows,
            sent_by_queue=counts.sent_by_queue,
            received_by_queue=counts.received_by_queue,
        )
        for counts in launch.pairs
    )
    return replace(
        launch,
        pairs=pairs,
        throughput_pps=sum(pair.throughput_pps for pair in pairs),
        offered_pps=sum(pair.offered_pps for pair in pairs),
        duration_s=kept_s(launch.windows),
    )


def _case(whole: Measurement) -> Case:
    try:
        return Case.from_dict(whole.axes)
    except ValueError as error:
        raise DamagedData(f"{whole.case}: {error}") from None


def _settings(whole: Measurement) -> Settings:
    return decode(Settings, whole.settings, f"{whole.case}: settings")


_NOWHERE = Address("10.0.0.1", "02:00:00:00:00:01")


def _around(whole: Measurement) -> Environment:
    kinds = whole.treatment.get("endpoints")
    cpus = (whole.treatment.get("cpus") or {}).get("endpoints")
    if kinds is None or cpus is None:
        raise DamagedData(f"{whole.case}: the result does not name its endpoints: it is from an earlier version")
    # The figures depend only on whether all endpoints are kernel interfaces.
    kernel: Endpoint = Veth(_NOWHERE, "", None)
    other: Endpoint = Pci(_NOWHERE, "")
    return Environment(
        placement=whole.placement,
        endpoints=tuple(kernel if kind == "veth" else other for kind in kinds),
        shared=len(set(cpus)) < len(cpus),
        open_loop=whole.metric == OPEN_LOOP,
        identity=whole.identity,
        treatment=whole.treatment,
        conditions=whole.conditions,
        software=whole.software,
    )


def _valid(launches: Sequence[Launch]) -> tuple[list[Launch], list[Launch]]:
    valid = [launch for launch in launches if launch.invalid is None]
    return valid, [launch for launch in launches if launch.invalid is not None]


def _plain(parts: _Parts) -> Measurement:
    whole, case = parts.whole, parts.case
    offered = case
    load, of_pps = whole.frames.load, whole.frames.load_of_pps
    if load is not None and of_pps is not None:
        offered = case.sending(rate=Rate.part_of_found(load, of_pps, case.senders))
    launches, rejected = _valid(parts.launches)
    gathered = parts.gathered(launches, rejected, "generator-bound")
    measurement = summarize(offered, parts.settings, gathered, parts.around)
    measurement = replace(measurement, case=whole.case, axes=whole.axes)
    if load is not None:
        measurement = measurement.with_figures(load=load, load_of_pps=of_pps)
    if whole.rates.back_to_back is None:
        return measurement
    ladder = trains.Ladder(*(int(number) for number in str(parts.settings.train).split(":")))
    rate = trains.burst_rate(launches[0]) if not measurement.verdict else None
    climbs = trains.climbs([window for window in launches[0].windows if window.pair == 1], ladder)
    # The rate within trains is that of the first launch, which measurement the ladder and is not kept.
    recorded = whole.rates.back_to_back
    figures = trains.back_to_back(climbs, recorded.rate_pps or rate or 0.0, recorded.throughput_pps)
    return trains.with_trains(measurement, case, figures)


def _sweep(parts: _Parts) -> Measurement:
    case = parts.case
    numbered = sorted(parts.launches, key=lambda launch: launch.index)
    loads = [Rate(round(point.load_pps / case.senders)) for point in parts.whole.rates.sweep]
    swept = list(zip(loads, numbered, strict=False))
    launches, rejected = _valid(numbered[len(swept) :])
    rejected = [launch for _, launch in swept] + rejected
    best = max(swept, key=lambda point: point[1].throughput_pps)[0] if launches else None
    measurement = summarize(case, parts.settings, parts.gathered(launches, rejected), parts.around)
    return with_sweep(case, measurement, swept, best, launches, parts.around)


def _search(parts: _Parts, search: SearchLog) -> Measurement:
    """Repeats the search with the recorded answer to each load."""
    case = parts.case
    goal = parts.settings.goal(case.rate)
    launches = _of_trials(search, parts.launches, parts.reference)
    ran = list(zip(search.trials, launches, strict=True))
    senders = case.senders
    bounds = fails = None
    if search.least_pps is not None and search.greatest_pps is not None:
        bounds = _bounds(goal, search, senders, [(trial, launch) for trial, launch in ran if trial.of == "case"])
        asked = _after_the_last_of_the_case(search)
        fails = 2 * sum(trial.good for trial in asked) < len(asked) if asked else None
    lower = bounds.lower_pps * senders if bounds and bounds.lower_pps is not None else None
    at_bound = {id(launch) for trial, launch in ran if trial.of == "case" and trial.load_pps == lower}
    figures = [launch for launch in parts.launches if id(launch) in at_bound]
    others = [launch for launch in parts.launches if id(launch) not in at_bound]
    gathered = parts.gathered(figures, others, "unfinished", "lossy", "generator-bound")
    outcome = SearchOutcome(
        goal=goal,
        bounds=bounds,
        least_pps=None if search.least_pps is None else search.least_pps / senders,
        greatest_pps=None if search.greatest_pps is None else search.greatest_pps / senders,
        calibrated_on=search.calibrated_on,
        reference_fails=fails,
        limit_s=parts.settings.search_limit_s,
        trials=search.trials,
        launches=launches,
    )
    return with_search(case, summarize(case, parts.settings, gathered, parts.around), outcome, parts.around)


def _bounds(goal: Goal, search: SearchLog, senders: int, ran: Sequence[tuple[Trial, Launch]]) -> Bounds:
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
        "case": iter(sorted(_valid(launches)[0], key=lambda launch: launch.index)),
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


def differences(recorded: Measurement, anew: Measurement, names: Collection[str]) -> list[str]:
    """Returns the names whose values differ, to the last digit.

    Args:
        names: names that were recorded; an earlier version had fewer. Windows are compared by the figures from them.
    """
    before, now = (data.pop("figures") | data for data in (recorded.to_dict(), anew.to_dict()))
    return [name for name in before if name in names and before[name] != now.get(name)]
