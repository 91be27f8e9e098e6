# SPDX-License-Identifier: BSD-3-Clause
"""What a result says about a rate that was looked for: the trials of a search, the points of a sweep. Facts, pure.

All loads and rates are totals over the pairs, frames per second.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial of a search.

    Attributes:
        of: ``case``, or ``reference`` for one on the reference link: calibration, and the question whether that loses
            as much at the upper bound.
        load_pps: intended load, 0 for the maximum (the first step of calibration).
        duration_s: for how long frames were sent.
        effective_s: by how much it counted towards the duration sum.
        not_offered: frames that the sender was too late to offer.
        trial_loss_ratio: 1 - received/scheduled; for a generator-bound trial of what was intended.
        good: whether that is not above the goal's loss ratio.
        generator_bound: the sender fell short of the load by more than the goal's width, and of what it did offer no
            more was lost than the goal allows.
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
class Search:
    """A search: its goal (terms of RFC 9971), its limits and its trials in the order in which they ran.

    Attributes:
        preset: whose goals these are.
        loss_ratio: the greatest trial loss ratio of a good trial.
        exceed_ratio: part of the duration sum that bad trials may take below a lower bound.
        width: wanted distance of the bounds, as a part of the upper one.
        initial_trial_s, final_trial_s, duration_sum_s: shortest and final trials, and how long one load is measured.
        least_pps, greatest_pps: the loads between which it searched.
        calibrated_on: ``reference`` or ``case``: where the greatest load was found.
        reached: whether it came to its end; if not, ``evidence`` says what was proven.
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
    """One offered load of a sweep, from one launch: ``load_pps`` is what was asked for, 0 for the maximum."""

    load_pps: float
    offered_pps: float
    throughput_pps: float
    trial_loss_ratio: float | None
    generator_bound: bool
