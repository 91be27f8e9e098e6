# SPDX-License-Identifier: BSD-3-Clause
"""Hosts whose launches and sessions are known, for the gate's simulations: what a launch adds to a level. Pure.

All sizes are standard deviations on the scale of logarithms.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

#: Seconds of a pair of launches with the rigs that are built for them, measured on a virtual machine of two CPUs.
PAIR_S = 2.4
#: Seconds of a launch of these.
LAUNCH_S = 0.6
#: Seconds for which a virtual machine's CPUs stay near to each other, and far: medians of 8,500 samples.
NEAR_S, FAR_S = 5.0, 21.0
#: What a launch far apart loses: the levels of `basicfwd`, `testpmd` and `ovs` there were 0.49 to 0.60 of those near.
APART = 0.65


@dataclass(frozen=True, slots=True)
class Host:
    """How launches and sessions differ.

    Attributes:
        launch: of the launches of a case, each on a rig of its own.
        rig: of what a rig draws, beside that.
        shared: of a session's level, which cases and controls share.
        own: of each case's own level in a session, which stays when it is measured again.
        tails: whether launches have Student's distribution with three degrees of freedom, of the same deviation.
        own_tails: whether sessions' own levels have.
        correlation: of neighbouring launches.
        states: whether its CPUs are near to each other or far, for a while each.
        blind: whether the control has neither the shared level nor the states.
        steady: whether the control has no own level.
        step: the host's change between the baseline and today, as a share.
        second: what the launch loses that comes second in a pair.
    """

    name: str
    launch: float = 0.02
    rig: float = 0.0
    shared: float = 0.0
    own: float = 0.0
    tails: bool = False
    own_tails: bool = False
    correlation: float = 0.0
    states: bool = False
    blind: bool = False
    steady: bool = False
    step: float = 0.0
    second: float = 0.0

    @property
    def within(self) -> Host:
        """What of it differs within a session."""
        return replace(self, name="", shared=0.0, own=0.0, own_tails=False, blind=False, steady=False, step=0.0)

    def noise(self, random: Random) -> Iterator[float]:
        """What launches add, one after the other."""
        now, rest = random.gauss(0, 1), math.sqrt(1 - self.correlation**2)
        while True:
            if self.tails:
                now = student3(random)
            yield self.launch * now + (random.gauss(0, self.rig) if self.rig else 0.0)
            now = self.correlation * now + rest * random.gauss(0, 1)

    def level(self, random: Random) -> float:
        """A case's own level in a session."""
        return self.own * (student3(random) if self.own_tails else random.gauss(0, 1))


def student3(random: Random) -> float:
    """A value of Student's distribution with three degrees of freedom, scaled to variance 1."""
    return random.gauss(0, 1) / math.sqrt(random.gammavariate(1.5, 2))


class States:
    """The states of a host during some seconds: 0 near, 1 far."""

    def __init__(self, random: Random, seconds: float) -> None:
        means = [median / math.log(2) for median in (NEAR_S, FAR_S)]
        self._first = int(random.random() < means[1] / sum(means))
        self._changes: list[float] = []
        at, state = 0.0, self._first
        while at < seconds:
            at += random.expovariate(1 / means[state])
            self._changes.append(at)
            state = 1 - state

    def at(self, second: float) -> int:
        return (self._first + bisect(self._changes, second)) % 2

    def far(self, begin: float, end: float) -> float:
        """The share of the time between that was far."""
        inner = self._changes[bisect(self._changes, begin) : bisect(self._changes, end)]
        parts = pairwise([begin, *inner, end])
        return sum((last - first) * self.at((first + last) / 2) for first, last in parts) / (end - begin)
