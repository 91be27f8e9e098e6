# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a result about a long run (its losses) and about trains (how long one may be). Facts only, pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LossEvent:
    """A series of windows of one pair in which frames were lost or refused; its times are those of the windows.

    Attributes:
        started_at: seconds since the epoch at which the first of the windows began.
        duration_s: time from then until the last window ended.
        windows: number of consecutive windows.
        lost: frames sent that never arrived.
        refused: frames that the sender's port did not take.
    """

    pair: int
    started_at: float
    duration_s: float
    windows: int
    lost: int
    refused: int


@dataclass(frozen=True, slots=True)
class BackToBack:
    """The back-to-back frames (RFC 9004) of one pair.

    Attributes:
        frames: the longest train at the maximum rate without loss, mean over the repetitions.
        frames_min, frames_max, frames_stddev: over the repetitions; the standard deviation is None for a single one.
        repetitions: number of climbs.
        at_least: whether a repetition ended without a loss, so that the mean is a lower bound.
        rate_pps: frames per second within a train, the maximum that the sender offers.
        throughput_pps: the rate without loss (``ndr``) that corrects the buffer time; None if none was found.
        buffer_time_s: frames / rate_pps.
        corrected_buffer_time_s: the same less what the switch forwards meanwhile; None without a throughput.
    """

    frames: float
    frames_min: int
    frames_max: int
    frames_stddev: float | None
    repetitions: int
    at_least: bool
    rate_pps: float
    throughput_pps: float | None
    buffer_time_s: float
    corrected_buffer_time_s: float | None
