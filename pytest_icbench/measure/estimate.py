# SPDX-License-Identifier: BSD-3-Clause
"""How long cases take: estimated before they run. Pure."""

from __future__ import annotations

import math

from pytest_icbench.model.rate import MAXIMUM, Rate
from pytest_icbench.model.search_goal import Goal
from pytest_icbench.model.settings import Settings

#: Starting and ending the processes of one launch, in seconds.
LAUNCH_OVERHEAD_S = 0.6
#: Building, checking and closing one rig.
RIG_OVERHEAD_S = 1.5
#: Trials by which a search comes near, before it decides; with those of its calibration.
SEARCH_STEPS = 12
#: A long run that names no length, in seconds.
SOAK_S = 20.0
#: Trains of all lengths, then of those around the longest that passed, fifty times each: what that takes at least.
TRAINS_S = 10.0
#: Over two hosts a case and its reference link take turns at the NICs, and each turn's rig is built anew: so many
#: launches are made of each before they change places.
LAUNCHES_A_TURN = 4
#: Loads of a sweep that names none.
SWEEP_LOADS = 10


def estimate_s(
    settings: Settings, *, reference: bool, build: bool = True, rate: Rate = MAXIMUM, in_turn: bool = False
) -> float:
    """Seconds that a case takes at least: the fewest launches, unless the time for a case ends them.

    Args:
        reference: a reference link is measured beside.
        build: its rig has to be built.
        rate: a part of a rate that is looked for takes what a fixed load does: the search is a case of its own.
        in_turn: the two rigs cannot exist at once.
    """
    building = RIG_OVERHEAD_S * (2 if reference and not in_turn else 1) if build else 0.0
    turns = RIG_OVERHEAD_S * _turns(settings, rate) if reference and in_turn else 0.0
    if rate.is_search:
        seconds = _search_s(settings.goal(rate), settings.warmup_s) + turns
        return min(seconds, settings.search_limit_s) + building
    if rate.is_sweep:
        each = settings.warmup_s + settings.duration_s + LAUNCH_OVERHEAD_S
        loads = len(rate.loads or ()) or SWEEP_LOADS
        return loads * each + turns + estimate_s(settings, reference=False, build=build)
    launch = launch_estimate_s(settings, reference=reference)
    if settings.repeats is not None:
        measuring = settings.repeats * launch + turns
    else:
        measuring = min((settings.min_launches + 1) * launch + turns, max(settings.max_duration_s, launch))
    return measuring + building


def _turns(settings: Settings, rate: Rate) -> int:
    """Rigs that are built while a case is measured, where it and its reference take turns."""
    if rate.is_search:
        return 4  # the reference's to calibrate, and at the end to be asked; and each time the case's again
    if rate.is_sweep:
        return 0 if rate.loads else 2
    launches = settings.repeats or settings.min_launches + 1
    return 2 * math.ceil(launches / LAUNCHES_A_TURN / 2)


def soak_estimate_s(settings: Settings, duration_s: float, *, build: bool = True) -> float:
    """Seconds of a long run: one launch, no reference."""
    return settings.warmup_s + duration_s + LAUNCH_OVERHEAD_S + (RIG_OVERHEAD_S if build else 0.0)


def _search_s(goal: Goal, warmup_s: float) -> float:
    """Short trials that come near, then two loads that are decided: one is good, one is not."""
    overhead = warmup_s + LAUNCH_OVERHEAD_S
    coming_near = SEARCH_STEPS * (goal.initial_trial_s + overhead)
    deciding = 2 * max(goal.duration_sum_s * (1 - goal.exceed_ratio), goal.final_trial_s)
    more = 0.0 if goal.overheads_count else 2 * overhead
    return coming_near + deciding + more


def launch_estimate_s(settings: Settings, *, reference: bool) -> float:
    """Seconds that one launch takes, with the one of the reference link beside it."""
    # A drain ends with the last frame; within a host that is at once.
    launch = settings.warmup_s + settings.duration_s + LAUNCH_OVERHEAD_S
    return (launch + (RIG_OVERHEAD_S if settings.fresh else 0.0)) * (2 if reference else 1)
