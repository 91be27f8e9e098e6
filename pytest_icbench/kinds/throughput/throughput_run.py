# SPDX-License-Identifier: BSD-3-Clause
"""Measures throughput: the rate received at the maximum or at a given load, over a sweep, of trains."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_icbench.errors import UsageError
from pytest_icbench.measure.case_progress import Phase
from pytest_icbench.measure.estimate import LAUNCH_OVERHEAD_S, Extent, launches_s
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.method import Method
from pytest_icbench.measure.repetition import Strategy
from pytest_icbench.measure.summary.bottleneck import NEGLIGIBLE_LOSS, Bottleneck
from pytest_icbench.measure.summary.frame_figures import as_kind, frame_figures, with_rate
from pytest_icbench.measure.summary.recorded import Recorded, split_valid
from pytest_icbench.measure.summary.summarize import Environment, Summary, bottleneck_of, load_indicators, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import Throughput
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import BackToBack, SweepPoint
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import median

#: Default loads of a sweep, as shares of the reference link's maximum: RFC 2544 26.3 has these steps.
DEFAULT_STEPS = tuple(step / 10 for step in range(1, 11))
#: Loads with their launches.
Swept = Sequence[tuple[Rate, Launch]]
#: Least time for trains of all lengths, then fifty times for lengths around the longest that passed, in seconds.
TRAINS_S = 10.0
#: Shortest and longest train of the first climb, and its window.
SHORTEST, LONGEST = 32, 2**18
COARSE_WINDOW_S = 0.25
#: Trains of a climb of the second launch. They span a factor of four, because a buffer does not always hold the same.
FINE_STEPS = 33
#: A window of the second launch lasts this many times its longest train, so that queues become empty, and at least
#: ``LEAST_WINDOW_S`` seconds.
QUIET_FACTOR, LEAST_WINDOW_S = 4, 0.02


class SweepStrategy(Strategy):
    """Finds the maximum forwarding rate (RFC 2285): a launch at each of several offered loads, then fresh ones.

    The greatest of several noisy figures is too great. Therefore the sweep only decides which load is the best. The
    figure and its interval come from fresh launches at that load, as many as the precision takes.
    """

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


@dataclass(frozen=True, slots=True)
class Ladder:
    """The lengths of trains in a climb, in equal ratios."""

    shortest: int
    longest: int
    steps: int

    def __str__(self) -> str:
        return f"{self.shortest}:{self.longest}:{self.steps}"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths as the workload computes them (``sender_train``)."""
        if self.steps < 2:
            return (self.shortest,)
        ratio = self.longest / self.shortest
        return tuple(math.floor(self.shortest * ratio ** (i / (self.steps - 1)) + 0.5) for i in range(self.steps))


COARSE = Ladder(SHORTEST, LONGEST, (LONGEST // SHORTEST).bit_length())


@dataclass(frozen=True, slots=True)
class Climb:
    """A climb: ``frames`` is the longest train before the first loss, a lower bound if the climb is ``open_ended``."""

    frames: int
    open_ended: bool


def train_settings(settings: Settings, ladder: Ladder, window_s: float, climbs: int) -> Settings:
    """Returns settings for one launch of ``climbs`` climbs."""
    return replace(
        settings,
        repeats=1,
        duration_s=climbs * ladder.steps * window_s,
        window_s=window_s,
        max_warmup_s=0.0,
        skip_s=0.0,
        keep_s=None,
        reference=False,
        train=str(ladder),
    )


def climbs(windows: Sequence[Window], ladder: Ladder) -> list[Climb]:
    """Returns the climbs in one pair's windows without an unfinished last one.

    A train that did not fit into its window (or whose sender was kept off its CPU) ends a climb as a loss does, but
    proves nothing about longer ones.
    """
    lengths, finished = ladder.lengths, []
    by_number = {window.number: window for window in windows}
    for first in range(1, max(by_number, default=0) + 2 - ladder.steps, ladder.steps):
        passed, lost = 0, False
        for place, length in enumerate(lengths):
            window = by_number.get(first + place)
            lost = window is not None and (window.lost > 0 or window.tx_full > 0 or window.refused > 0)
            if window is None or lost or window.scheduled < length:
                break
            passed = length
        finished.append(Climb(passed, not lost))
    return finished


def burst_rate(launch: Launch) -> float | None:
    """Returns the frames per second within trains of pair 1, by the cycles of its sender's loop; None without them."""
    rates = [
        window.scheduled * launch.tsc_hz / window.sender_busy_cycles
        for window in launch.windows
        if window.pair == 1 and launch.tsc_hz and window.sender_busy_cycles and window.scheduled >= SHORTEST
    ]
    return median(rates) if rates else None


def fine_ladder(coarse: Sequence[Climb]) -> Ladder | None:
    """Returns the ladder of the second launch; None if nothing was lost in the first."""
    if not coarse or coarse[0].open_ended:
        return None
    frames = coarse[0].frames
    return Ladder(1, SHORTEST, FINE_STEPS) if frames == 0 else Ladder(max(frames // 2, 1), 2 * frames, FINE_STEPS)


def fine_window_s(ladder: Ladder, rate_pps: float) -> float:
    return max(LEAST_WINDOW_S, QUIET_FACTOR * ladder.longest / rate_pps)


def back_to_back(repetitions: Sequence[Climb], rate_pps: float, throughput_pps: float | None) -> BackToBack:
    """Returns the result of the repetitions.

    The buffer time is corrected for the frames that leave while others come in (RFC 9004, section 5.4): implied time
    less implied time times throughput over maximum rate.

    Args:
        rate_pps: frames per second within a train.
        throughput_pps: rate of one pair without loss (RFC 2544); None if it is not known, and then there is no
            corrected time.
    """
    frames = [climb.frames for climb in repetitions]
    mean = statistics.fmean(frames)
    implied = mean / rate_pps
    corrected = None if throughput_pps is None else max(implied * (1 - throughput_pps / rate_pps), 0.0)
    return BackToBack(
        frames=mean,
        frames_min=min(frames),
        frames_max=max(frames),
        frames_stddev=statistics.stdev(frames) if len(frames) > 1 else None,
        repetitions=len(frames),
        at_least=any(climb.open_ended for climb in repetitions),
        rate_pps=rate_pps,
        throughput_pps=throughput_pps,
        buffer_time_s=implied,
        corrected_buffer_time_s=corrected,
    )


def measure_trains(
    measure: Callable[[Settings], Measurement],
    case: Case,
    settings: Settings,
    repetitions: int,
    proven_pps: float | None,
) -> Measurement:
    """Measures back-to-back frames (RFC 9004): the longest train at the maximum rate that loses nothing.

    A launch sends one train per window, and then nothing until the next window. The first launch climbs in powers of
    two until frames are lost. The second climbs many times from half of the longest train that passed to twice its
    length; each climb is one repetition of the test. A train also counts as lost if a call of the sender found its
    port full, because the ring behind the port is the switch's input. The measurement has no throughput.

    Args:
        measure: measures the case with the settings given.
        repetitions: number of climbs.
        proven_pps: rate of a pair without loss, which corrects the buffer time; None if none was finished.

    Raises UsageError: the sender does not count its cycles. Errors of ``measure`` pass through.
    """
    measured = measure(train_settings(settings, COARSE, COARSE_WINDOW_S, 1))
    if measured.verdict == Verdict.INVALID:
        return measured
    launch, rate_pps = measured.per_launch[0], burst_rate(measured.per_launch[0])
    if rate_pps is None:
        raise UsageError("back-to-back frames need a sender that counts its cycles: not with blocking sockets")
    finished = climbs([window for window in launch.windows if window.pair == 1], COARSE)
    ladder = fine_ladder(finished)
    if ladder is not None:
        window_s = fine_window_s(ladder, rate_pps)
        measured = measure(train_settings(settings, ladder, window_s, repetitions))
        if measured.verdict == Verdict.INVALID:
            return measured
        windows = [window for window in measured.per_launch[0].windows if window.pair == 1]
        finished = climbs(windows, ladder)
    figures = back_to_back(finished, rate_pps, proven_pps)
    return with_trains(measured, case, figures)


def with_trains(measurement: Measurement, case: Case, trains: BackToBack) -> Measurement:
    """Returns the measurement with its trains, which have no rate."""
    figures = with_rate(measurement.rates, case, None)
    return replace(measurement, figures=replace(figures, back_to_back=trains))


def recompute_trains(measurement: Measurement, recorded: Recorded, figures: BackToBack) -> Measurement:
    """Returns the measurement with the trains of its windows.

    The rate within trains is that of the first launch, which measured the ladder and is not kept: it is copied.
    """
    launch = split_valid(recorded.launches)[0][0]
    ladder = Ladder(*(int(number) for number in str(recorded.settings.train).split(":")))
    rate = burst_rate(launch) if not measurement.verdict else None
    finished = climbs([window for window in launch.windows if window.pair == 1], ladder)
    figures = back_to_back(finished, figures.rate_pps or rate or 0.0, figures.throughput_pps)
    return with_trains(measurement, recorded.case, figures)


THROUGHPUT = Summary(lambda case, log: as_kind(Throughput, frame_figures(case, log.launches)))


def _strategy_of(case: Case) -> type[Strategy]:
    return SweepStrategy if case.rate.is_sweep else Strategy


def _estimate(settings: Settings, rate: Rate, extent: Extent) -> float:
    return (sweep_s if rate.is_sweep else launches_s)(settings, rate, extent)


def _recompute(recorded: Recorded) -> Measurement:
    whole = recorded.whole
    if whole.rates.sweep or recorded.case.rate.is_sweep:
        return recompute_sweep(THROUGHPUT, recorded)
    measurement = recorded.summarized(THROUGHPUT)
    if whole.rates.back_to_back is not None:
        return recompute_trains(measurement, recorded, whole.rates.back_to_back)
    return measurement


METHOD = Method(THROUGHPUT, _strategy_of, estimate=_estimate, recompute_parts=_recompute)
