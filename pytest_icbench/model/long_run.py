# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a result about a long run (its losses) and about trains (how long one may be). Facts only, pure."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.model.path import Direction


@dataclass(frozen=True, slots=True)
class LossEvent:
    """A series of windows of one pair, in one direction, in which frames were lost or refused.

    Its times are those of the windows.

    Attributes:
        pair: 1, 2, ….
        started_at, duration_s: when the first of the windows began, in seconds since the epoch; until the last ended.
        windows: how many.
        lost, refused: frames that never arrived, and frames that the sender's port did not take.
        direction: as in a window.
    """

    pair: int
    started_at: float
    duration_s: float
    windows: int
    lost: int
    refused: int
    direction: Direction | None = None


@dataclass(frozen=True, slots=True)
class BackToBack:
    """The back-to-back frames (RFC 9004) of one pair.

    Attributes:
        frames: the longest train at the maximum rate without loss, mean over the repetitions (RFC 9004).
        frames_min, frames_max, frames_stddev, repetitions: over the repetitions; no standard deviation of a single one.
        at_least: a repetition ended without a loss, so the mean is a lower bound.
        rate_pps: frames per second within a train: the maximum that the sender offers.
        throughput_pps: the rate without loss (``ndr``) that corrects the time, or null if none was found.
        buffer_time_s: ``frames`` / ``rate_pps``.
        corrected_buffer_time_s: ``buffer_time_s`` * (1 - ``throughput_pps`` / ``rate_pps``): without what the switch
            forwards meanwhile; null without a throughput.
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
