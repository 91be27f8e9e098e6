# SPDX-License-Identifier: BSD-3-Clause
"""Estimates how long cases take before they run. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_icbench.measure.stopping import fewest_comparing, fewest_launches
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.warmup import FEWEST_WINDOWS

#: Time for starting and ending the processes of one launch, in seconds: 0.30 in the demo on a quiet machine.
LAUNCH_OVERHEAD_S = 0.32
#: Time for building, checking and closing one rig, in seconds.
RIG_OVERHEAD_S = 1.5
#: Launches of a case, and of its reference link, before the two change places over two hosts: they take turns at the
#: NICs, and the rig of each turn is built anew.
LAUNCHES_A_TURN = 4


@dataclass(frozen=True, slots=True)
class Extent:
    """The parts of a case that take time.

    Attributes:
        reference: whether a reference link is measured beside the case.
        build: whether the rig has to be built.
        in_turn: whether the two rigs cannot exist at once.
        launches: the number of launches, where it is neither fixed nor that of ``fewest_launches``.
    """

    reference: bool
    build: bool = True
    in_turn: bool = False
    launches: int | None = None

    @property
    def building_s(self) -> float:
        """The seconds for building the rigs before the first launch."""
        return RIG_OVERHEAD_S * (2 if self.reference and not self.in_turn else 1) if self.build else 0.0

    def turns_s(self, rigs: int) -> float:
        """Returns the seconds for ``rigs`` built while the case is measured, if it and its reference take turns."""
        return RIG_OVERHEAD_S * rigs if self.reference and self.in_turn else 0.0


def launches_s(settings: Settings, _rate: Rate, extent: Extent) -> float:
    """Returns the least seconds of a case: those of the fewest launches, unless the time for a case ends them."""
    launches = settings.repeats or extent.launches or fewest_launches(settings)
    launch = launch_estimate_s(settings, reference=extent.reference)
    measuring = launches * launch + extent.turns_s(2 * math.ceil(launches / LAUNCHES_A_TURN / 2))
    if settings.repeats is None:
        # No launch begins that would not end within the time for a case.
        measuring = min(measuring, max(settings.max_duration_s - launch, launch))
    return measuring + extent.building_s


def comparison_estimate_s(settings: Settings, cases: int) -> float:
    """Returns the least seconds of one comparison of two versions, in a session of ``cases`` comparisons."""
    pair_s = launch_estimate_s(settings, reference=True) + 2 * RIG_OVERHEAD_S
    return fewest_comparing(settings, cases) * pair_s


def launch_estimate_s(settings: Settings, *, reference: bool) -> float:
    """Returns the seconds of one launch, with that of the reference link if it is measured."""
    # A drain ends with the last frame; within a host that is at once.
    fewest_s = FEWEST_WINDOWS * settings.window_s if settings.settles else 0.0
    launch = settings.warmup_s + max(settings.duration_s, fewest_s) + LAUNCH_OVERHEAD_S
    return (launch + (RIG_OVERHEAD_S if settings.rebuild else 0.0)) * (2 if reference else 1)
