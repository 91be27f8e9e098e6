# SPDX-License-Identifier: BSD-3-Clause
"""Machines whose true level is known, and sessions on them as the plugin runs them. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from statistics import NormalDist

from pytest_icbench.measure.stopping import why_stop
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.stats.quantiles import median

#: What a launch takes, by which the time for a case ends a session: 40 launches in the default minute.
LAUNCH_S = 1.5
LEVEL = 100.0
#: Family of the machines whose launches have one of two levels.
BANDED = "two bands"
#: Deviation within a band, in per cent, where a machine's name has none.
BAND_NOISE = 0.5

#: The levels of the launches of one session, one after the other.
Levels = Callable[[Random], Iterator[float]]


@dataclass(frozen=True, slots=True)
class Machine:
    """One kind of machine.

    Attributes:
        family: ``independent``, ``two bands`` or ``drift``.
        name: what it does, in per cent of its level.
        launch: draws one launch around a level.
        levels: by default a level that stays.
        offset: median of ``launch`` around level 0.
    """

    family: str
    name: str
    launch: Callable[[Random], float]
    levels: Levels | None = None
    offset: float = 0.0

    def session(self, random: Random, lengths: Lengths) -> tuple[list[float], float]:
        """The launches of one session, stopping rule included, and the truth: the median level while it ran."""
        levels = self.levels(random) if self.levels else _steady()
        seen: list[float] = []
        values: list[float] = []
        while why_stop(values, lengths, LAUNCH_S * len(values), LAUNCH_S) is None:
            seen.append(next(levels))
            values.append(seen[-1] + self.launch(random))
        return values, median(seen) + self.offset


def _steady() -> Iterator[float]:
    while True:
        yield LEVEL


def normal(deviation: float) -> Machine:
    return Machine("independent", f"normal, {deviation:g} %", lambda random: random.gauss(0, deviation))


def skewed(scale: float) -> Machine:
    """Now and then a launch is slow: an exponential distribution towards below."""
    return Machine(
        "independent",
        f"skewed, {scale:g} %",
        lambda random: -random.expovariate(1 / scale),
        offset=-scale * math.log(2),
    )


def banded(upper: float, apart: float, deviation: float) -> Machine:
    """The part ``upper`` of the launches on one level, the others ``apart`` below."""

    def launch(random: Random) -> float:
        return (0.0 if random.random() < upper else -apart) + random.gauss(0, deviation)

    noise = "" if deviation == BAND_NOISE else f", {deviation:g} %"
    name = f"{upper:.0%} upper, {apart:g} % apart{noise}"
    return Machine(BANDED, name, launch, offset=_mixture_median(upper, apart, deviation))


def _mixture_median(upper: float, apart: float, deviation: float) -> float:
    low, high, bell = -2 * apart, apart, NormalDist(0, deviation)
    for _ in range(100):
        middle = (low + high) / 2
        below = upper * bell.cdf(middle) + (1 - upper) * bell.cdf(middle + apart)
        low, high = (middle, high) if below < 0.5 else (low, middle)
    return (low + high) / 2


def drifting(slope: float, deviation: float) -> Machine:
    """A level that moves by the same amount from launch to launch."""

    def levels(_random: Random) -> Iterator[float]:
        level = LEVEL
        while True:
            yield level
            level += slope

    name = f"line, {slope:g} % a launch, {deviation:g} %"
    return Machine("drift", name, lambda random: random.gauss(0, deviation), levels)


def wandering(step: float, deviation: float) -> Machine:
    """A level that takes a random step from launch to launch."""

    def levels(random: Random) -> Iterator[float]:
        level = LEVEL
        while True:
            yield level
            level += random.gauss(0, step)

    name = f"walk, {step:g} % a launch, {deviation:g} %"
    return Machine("drift", name, lambda random: random.gauss(0, deviation), levels)


#: All at three sizes of noise: stopping at once, after many looks, at the end of the time.
MACHINES = (
    *(normal(deviation) for deviation in (0.5, 2, 5, 8)),
    *(skewed(scale) for scale in (2, 6)),
    *(banded(upper, apart, BAND_NOISE) for upper, apart in ((0.6, 6), (0.7, 12), (0.8, 6), (0.8, 20))),
    *(drifting(slope, deviation) for slope, deviation in ((0.1, 2), (0.3, 1), (0.3, 4), (0.5, 8))),
    wandering(0.2, 2),
)
#: Told, not bound. The median may be anywhere between two bands of the same size, so there is no truth to hold; bands
#: that lie closer to each other, in deviations of a launch, mostly go unnamed.
HALVES = banded(0.5, 6, BAND_NOISE)
TOLD = (HALVES, banded(0.6, 6, 1), banded(0.6, 6, 1.5))
