# SPDX-License-Identifier: BSD-3-Clause
"""Machines whose true level is known, and sessions on them as the plugin runs them. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
#: Family of the machines whose launches depend on those before them.
DEPENDENT = "dependent"
#: Deviation within a band, in per cent, where a machine's name has none.
BAND_NOISE = 0.5

#: Says of the launches so far, the settings, the time spent and that of another launch why no other is needed.
StoppingRule = Callable[[Sequence[float], Lengths, float, float], str | None]
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
        lasting: the truth is ``LEVEL`` and not the level while a session ran.
    """

    family: str
    name: str
    launch: Callable[[Random], float]
    levels: Levels | None = None
    offset: float = 0.0
    lasting: bool = False

    def session(self, random: Random, lengths: Lengths, why_stop: StoppingRule = why_stop) -> tuple[list[float], float]:
        """The launches of one session, stopping rule included, and the truth: the median level while it ran."""
        levels = self.levels(random) if self.levels else _steady()
        seen: list[float] = []
        values: list[float] = []
        while why_stop(values, lengths, LAUNCH_S * len(values), LAUNCH_S) is None:
            seen.append(next(levels))
            values.append(seen[-1] + self.launch(random))
        return values, (LEVEL if self.lasting else median(seen)) + self.offset

    def course(self, random: Random) -> Iterator[float]:
        """Launches without an end."""
        for level in self.levels(random) if self.levels else _steady():
            yield level + self.launch(random)


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


def dependent(correlation: float, deviation: float) -> Machine:
    """What disturbs a launch lasts: neighbours correlate, the next but one by the square of that, and so on."""

    def levels(random: Random) -> Iterator[float]:
        level = random.gauss(0, deviation)
        while True:
            yield LEVEL + level
            level = correlation * level + random.gauss(0, deviation) * math.sqrt(1 - correlation * correlation)

    name = f"correlation {correlation:g}, {deviation:g} %"
    return Machine(DEPENDENT, name, lambda _random: 0.0, levels, lasting=True)


def sticky(correlation: float, apart: float, deviation: float) -> Machine:
    """Two bands, 80 % of the launches in the upper one, of which a launch keeps that of the one before."""

    def levels(random: Random) -> Iterator[float]:
        upper = random.random() < 0.8
        while True:
            yield LEVEL if upper else LEVEL - apart
            if random.random() > correlation:
                upper = random.random() < 0.8

    name = f"bands kept with {correlation:g}, {apart:g} % apart"
    offset = _mixture_median(0.8, apart, deviation)
    return Machine(DEPENDENT, name, lambda random: random.gauss(0, deviation), levels, offset, lasting=True)


def slow_at_first(drop: float, deviation: float) -> Machine:
    """The first launch of each session is slower."""

    def levels(_random: Random) -> Iterator[float]:
        yield LEVEL - drop
        while True:
            yield LEVEL

    name = f"first launch {drop:g} % slow, {deviation:g} %"
    return Machine("outlying", name, lambda random: random.gauss(0, deviation), levels, lasting=True)


def heavy(deviation: float) -> Machine:
    """Launches of Student's distribution with three degrees of freedom."""

    def launch(random: Random) -> float:
        return deviation * random.gauss(0, 1) / math.sqrt(random.gammavariate(1.5, 2) / 3)

    return Machine("outlying", f"Student's t3, {deviation:g} %", launch)


def outlying(share: float, drop: float, deviation: float) -> Machine:
    """Now and then a launch is far off."""

    def launch(random: Random) -> float:
        return random.gauss(0, deviation) - (drop if random.random() < share else 0.0)

    offset = _mixture_median(1 - share, drop, deviation)
    return Machine("outlying", f"{share:.0%} of launches {drop:g} % slow, {deviation:g} %", launch, offset=offset)


def differing(between: float, deviation: float) -> Machine:
    """Each session, with its rig, has a level of its own; the truth is that of all sessions."""

    def levels(random: Random) -> Iterator[float]:
        level = LEVEL + random.gauss(0, between)
        while True:
            yield level

    name = f"sessions {between:g} % apart, {deviation:g} %"
    return Machine("sessions that differ", name, lambda random: random.gauss(0, deviation), levels, lasting=True)


#: Machines whose launches depend on those before them.
CORRELATED = (
    *(dependent(correlation, deviation) for correlation in (0.3, 0.6, 0.9) for deviation in (0.5, 2, 5)),
    *(sticky(correlation, 6, 0.5) for correlation in (0.3, 0.6)),
)
#: Machines with launches that are unlike the rest.
OUTLYING = (
    *(slow_at_first(30, deviation) for deviation in (1, 4)),
    *(heavy(deviation) for deviation in (1, 4)),
    outlying(0.05, 30, 2),
)
#: No launch of a session tells what another session will find: told, not bound.
DIFFERING = (*(differing(between, 1) for between in (1, 2, 5)), sticky(0.9, 6, 0.5))
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
REPORTED = (HALVES, banded(0.6, 6, 1), banded(0.6, 6, 1.5))
