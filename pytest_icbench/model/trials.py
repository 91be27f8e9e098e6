# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a result about several launches or windows: trials of a search, points of a sweep, trains, losses. Pure.

All loads and rates are totals over the pairs, frames per second.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.model.path import Direction


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a search.

    Attributes:
        of: ``case``, or ``reference``: calibration, and the check whether the reference link loses as much at the upper
            bound.
        load_pps: intended load; 0 for the maximum, calibration's first step.
        duration_s: for how long frames were sent.
        effective_s: how much counts towards the duration sum: everything it took (``csit``), or the time it sent.
        scheduled, not_offered, refused, received: as in a launch, over all pairs; ``received`` includes denied frames.
        trial_loss_ratio: 1 - received / scheduled; of a generator-bound trial, of scheduled and not offered frames
            together.
        good: whether that is not above ``loss_ratio``.
        generator_bound: more than the goal's ``width`` was not offered, and of what was offered the path lost no more
            than the goal allows.
    """

    of: str
    load_pps: float
    duration_s: float
    effective_s: float
    scheduled: int
    not_offered: int
    refused: int
    received: int
    trial_loss_ratio: float
    good: bool
    generator_bound: bool


@dataclass(frozen=True, slots=True)
class SearchLog:
    """The course of a search: its goal (terms of RFC 9971), its limits and its trials in the order in which they ran.

    Attributes:
        preset: whose goals these are: ``csit``, ``rfc2544``, ``tst009``, ``icpe2018``.
        loss_ratio: greatest trial loss ratio of a good trial.
        exceed_ratio: part of the duration sum that bad trials may take below a lower bound.
        width: wanted distance of the bounds, as a part of the upper one.
        initial_trial_s, final_trial_s, duration_sum_s: shortest trials, trials that decide, longest time for one load.
        least_pps, greatest_pps: loads between which it searched.
        calibrated_on: where the greatest load was found: ``reference`` (the reference link) or ``case``.
        reached: whether it came to its end.
        evidence: what was proven, if it ended before its goal or at the senders' limit; else null.
        trials: list, its trials in their order.
    """

    preset: str
    loss_ratio: float
    exceed_ratio: float
    width: float
    initial_trial_s: float
    final_trial_s: float
    duration_sum_s: float
    least_pps: float | None
    greatest_pps: float | None
    calibrated_on: str | None
    reached: bool
    evidence: str | None
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """The result of one load of a sweep, from one launch.

    Attributes:
        load_pps: what was asked for; 0 for the maximum.
        offered_pps, throughput_pps, trial_loss_ratio, generator_bound: as in a result, of one launch.
    """

    load_pps: float
    offered_pps: float
    throughput_pps: float
    trial_loss_ratio: float | None
    generator_bound: bool


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
