# SPDX-License-Identifier: BSD-3-Clause
"""Measures back-to-back frames (RFC 9004): the longest train at the maximum rate that loses nothing.

A launch sends one train per window, and then nothing until the next window. The first launch climbs in powers of two
until frames are lost. The second climbs many times from half of the longest train that passed to twice its length; each
climb is one repetition of the test. A train also counts as lost if a call of the sender found its port full, because
the ring behind the port is the switch's input.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_icbench.errors import UsageError
from pytest_icbench.measure.summary.frame_figures import with_rate
from pytest_icbench.measure.summary.recorded import Recorded, split_valid
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.long_run import BackToBack
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import median

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
    """Measures trains; the measurement has no throughput.

    Args:
        measure: measures the case with the settings given.
        repetitions: number of climbs.
        proven_pps: rate of a pair without loss, which corrects the buffer time; None if none was finished.

    Raises:
        UsageError: the sender does not count its cycles. Errors of ``measure`` pass through.
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

    Args:
        measurement: of the recorded launches.
        figures: the recorded trains.
    """
    launch = split_valid(recorded.launches)[0][0]
    ladder = Ladder(*(int(number) for number in str(recorded.settings.train).split(":")))
    rate = burst_rate(launch) if not measurement.verdict else None
    finished = climbs([window for window in launch.windows if window.pair == 1], ladder)
    figures = back_to_back(finished, figures.rate_pps or rate or 0.0, figures.throughput_pps)
    return with_trains(measurement, recorded.case, figures)
