# SPDX-License-Identifier: BSD-3-Clause
"""Estimates how long cases take before they run. Pure."""

from __future__ import annotations

import math

from pytest_icbench.measure.comparing import fewest_comparing
from pytest_icbench.measure.mlrsearch import ASKED_AGAIN
from pytest_icbench.measure.stopping import fewest_launches
from pytest_icbench.model.rate import MAXIMUM, Rate
from pytest_icbench.model.search_goal import Goal
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.startup import FORK, Crowd
from pytest_icbench.stats.warmup import FEWEST_WINDOWS

#: Time for starting and ending the processes of one launch, in seconds: 0.30 in the demo on a quiet machine.
LAUNCH_OVERHEAD_S = 0.32
#: Time for building, checking and closing one rig, in seconds.
RIG_OVERHEAD_S = 1.5
#: Number of trials in which a search comes near before it decides, with those of its calibration.
SEARCH_STEPS = 12
#: Default length of a long run, in seconds.
SOAK_S = 20.0
#: Least time for trains of all lengths, then fifty times for lengths around the longest that passed, in seconds.
TRAINS_S = 10.0
#: Launches of a case, and of its reference link, before the two change places over two hosts: they take turns at the
#: NICs, and the rig of each turn is built anew.
LAUNCHES_A_TURN = 4
#: Time for creating and removing a container, and a process, in seconds.
CONTAINER_S, FORK_S = 0.06, 0.006
#: How often containers that are being created are looked at while all are idle, and for how many seconds.
IDLE_SAMPLES, IDLE_S = 10, 0.2
#: Default number of loads of a sweep.
SWEEP_LOADS = 10


def estimate_s(
    settings: Settings,
    *,
    reference: bool,
    build: bool = True,
    rate: Rate = MAXIMUM,
    in_turn: bool = False,
    launches: int | None = None,
) -> float:
    """Returns the least seconds of a case: those of the fewest launches, unless the time for a case ends them.

    Args:
        launches: the number of launches, where it is neither fixed nor that of ``fewest_launches``.
        reference: whether a reference link is measured beside the case.
        build: whether the rig has to be built.
        rate: a share of a searched rate takes as long as a fixed load, because the search is a case of its own.
        in_turn: whether the two rigs cannot exist at once.
    """
    building = RIG_OVERHEAD_S * (2 if reference and not in_turn else 1) if build else 0.0
    launches = settings.repeats or launches or fewest_launches(settings)
    turns = RIG_OVERHEAD_S * _turns(launches, rate) if reference and in_turn else 0.0
    if rate.is_search:
        seconds = _search_s(settings.goal(rate), settings.warmup_s) + turns
        return min(seconds, settings.search_limit_s) + building
    if rate.is_sweep:
        load_s = settings.warmup_s + settings.duration_s + LAUNCH_OVERHEAD_S
        loads = len(rate.loads or ()) or SWEEP_LOADS
        return loads * load_s + turns + estimate_s(settings, reference=False, build=build, launches=launches)
    launch = launch_estimate_s(settings, reference=reference)
    measuring = launches * launch + turns
    if settings.repeats is None:
        measuring = min(measuring, _limit_s(settings, launch))
    return measuring + building


def _limit_s(settings: Settings, launch_s: float) -> float:
    """Returns the least time of a case that its time ends: no launch begins that would not end within it."""
    return max(settings.max_duration_s - launch_s, launch_s)


def comparison_estimate_s(settings: Settings, cases: int) -> float:
    """Returns the least seconds of one of so many comparisons of two versions: those of the fewest pairs."""
    pair_s = launch_estimate_s(settings, reference=True) + 2 * RIG_OVERHEAD_S
    return fewest_comparing(settings, cases) * pair_s


def _turns(launches: int, rate: Rate) -> int:
    """Returns the number of rigs built while a case is measured, if it and its reference take turns."""
    if rate.is_search:
        return 4  # the reference's to calibrate and for the last trials, and each time the case's again
    if rate.is_sweep:
        return 0 if rate.loads else 2
    return 2 * math.ceil(launches / LAUNCHES_A_TURN / 2)


def soak_estimate_s(settings: Settings, duration_s: float, *, build: bool = True) -> float:
    """Returns the seconds of a long run: one launch without a reference."""
    return settings.warmup_s + duration_s + LAUNCH_OVERHEAD_S + (RIG_OVERHEAD_S if build else 0.0)


def startup_estimate_s(crowd: Crowd) -> float:
    """Returns the seconds of a case that creates containers, and removes them again."""
    one_s = FORK_S if crowd.kind == FORK else max(CONTAINER_S, (crowd.every_ms or 0) / 1e3)
    return crowd.count * one_s + IDLE_SAMPLES * IDLE_S + RIG_OVERHEAD_S


def _search_s(goal: Goal, warmup_s: float) -> float:
    """Returns the seconds of a search: short trials that come near, then a good and a bad load that decide.

    Some goals ask for the bad load again at the end.
    """
    overhead = warmup_s + LAUNCH_OVERHEAD_S
    coming_near = SEARCH_STEPS * (goal.initial_trial_s + overhead)
    deciding = 2 * max(goal.duration_sum_s * (1 - goal.exceed_ratio), goal.final_trial_s)
    more = 0.0 if goal.overheads_count else 2 * overhead
    again = (ASKED_AGAIN // 2 + 1) * (goal.final_trial_s + overhead) if goal.exceed_ratio else 0.0
    return coming_near + deciding + more + again


def launch_estimate_s(settings: Settings, *, reference: bool) -> float:
    """Returns the seconds of one launch, with that of the reference link if it is measured."""
    # A drain ends with the last frame; within a host that is at once.
    fewest_s = FEWEST_WINDOWS * settings.window_s if settings.settles else 0.0
    launch = settings.warmup_s + max(settings.duration_s, fewest_s) + LAUNCH_OVERHEAD_S
    return (launch + (RIG_OVERHEAD_S if settings.rebuild else 0.0)) * (2 if reference else 1)
