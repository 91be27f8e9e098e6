# SPDX-License-Identifier: BSD-3-Clause
"""Launches of trains of frames (RFC 9004): a first one that comes near, a second one that repeats the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_icbench.errors import UsageError
from pytest_icbench.measure.strategy import trains
from pytest_icbench.measure.summary.summarize import throughput_fields
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings


def measure_trains(
    measure: Callable[[Settings], Measurement],
    case: Case,
    settings: Settings,
    repetitions: int,
    proven_pps: float | None,
) -> Measurement:
    """The measurement of the trains; it has no throughput.

    Args:
        measure: measures the case as the settings say.
        proven_pps: rate of a pair without loss, by which the buffer time is corrected; None if none was found.

    Raises what ``measure`` raises, and UsageError for a sender that does not count its cycles.
    """
    measured = measure(trains.train_settings(settings, trains.COARSE, trains.COARSE_WINDOW_S, 1))
    if measured.verdict == "INVALID":
        return measured
    launch, rate_pps = measured.per_launch[0], trains.burst_rate(measured.per_launch[0])
    if rate_pps is None:
        raise UsageError("back-to-back frames need a sender that counts its cycles: not with blocking sockets")
    found = trains.climbs([window for window in launch.windows if window.pair == 1], trains.COARSE)
    ladder = trains.fine_ladder(found)
    if ladder is not None:
        window_s = trains.fine_window_s(ladder, rate_pps)
        measured = measure(trains.train_settings(settings, ladder, window_s, repetitions))
        if measured.verdict == "INVALID":
            return measured
        windows = [window for window in measured.per_launch[0].windows if window.pair == 1]
        found = trains.climbs(windows, ladder)
    figures = trains.back_to_back(found, rate_pps, proven_pps)
    return replace(measured, **throughput_fields(case, None), back_to_back=figures)
