# SPDX-License-Identifier: BSD-3-Clause
"""What a result says about a long run (when frames were lost) and about trains (how long one may be). Facts, pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LossEvent:
    """Consecutive windows of one pair in which frames were lost or refused; its times are those of the windows.

    Attributes:
        started_at: seconds since the epoch at which the first of the windows began.
        duration_s: until the last of them ended.
        lost: frames sent that never arrived. refused: frames that the sender's port did not take.
    """

    pair: int
    started_at: float
    duration_s: float
    windows: int
    lost: int
    refused: int


@dataclass(frozen=True, slots=True)
class BackToBack:
    """Back-to-back frames (RFC 9004) of one pair.

    Attributes:
        frames: the longest train at the maximum rate without loss, mean over the repetitions; frames_min, frames_max,
            frames_stddev over them, the last None for a single one.
        at_least: a repetition ended without a loss, so the mean is a lower bound.
        rate_pps: frames per second within a train, the maximum that the sender offers.
        throughput_pps: the rate without loss (``ndr``) by which the buffer time is corrected; None if none was found.
        buffer_time_s: frames / rate_pps. corrected_buffer_time_s: less what the switch forwards meanwhile; None
            without a throughput.
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
