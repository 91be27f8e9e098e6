# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a result about a rate that was searched for: trials of a search, points of a sweep. Facts, pure.

All loads and rates are totals over the pairs, frames per second.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a search.

    Attributes:
        of: ``case``, or ``reference`` for a trial on the reference link: for calibration, and to see whether the link
            loses as much at the upper bound.
        load_pps: intended load, 0 for the maximum (the first step of calibration).
        duration_s: time for which frames were sent.
        effective_s: time that counted towards the duration sum.
        not_offered: frames that the sender was too late to offer.
        trial_loss_ratio: 1 - received/scheduled; for a generator-bound trial 1 - received/intended.
        good: whether the trial loss ratio is not above the goal's.
        generator_bound: whether the sender fell short of the load by more than the goal's width, and no more of the
            frames offered were lost than the goal allows.
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
        preset: name of the preset of these goals.
        loss_ratio: the greatest trial loss ratio of a good trial.
        exceed_ratio: share of the duration sum that bad trials may take below a lower bound.
        width: target distance of the bounds, as a share of the upper one.
        initial_trial_s, final_trial_s, duration_sum_s: length of the shortest and of the final trials, and longest time
            for one load.
        least_pps, greatest_pps: the loads between which the search ran.
        calibrated_on: the path on which the greatest load was found, ``reference`` or ``case``.
        reached: whether the search came to its end; if not, ``evidence`` says what was proven.
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
    """The result of one load of a sweep, from one launch; ``load_pps`` is the requested load, 0 for the maximum."""

    load_pps: float
    offered_pps: float
    throughput_pps: float
    trial_loss_ratio: float | None
    generator_bound: bool
