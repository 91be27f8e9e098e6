# SPDX-License-Identifier: BSD-3-Clause
"""Levels of rigs: what a rig draws when it is built accuses no version side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from pytest_icbench.measure.comparing import (
    FEWEST_LOOKED,
    PAIRS_A_RIG,
    confirming,
    confirming_rigs,
    first_look,
    is_narrow,
    second_look,
)
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.intervals import LOOKED_CONFIDENCE
from pytest_icbench.stats.noninferiority import Margin
from pytest_icbench.stats.paired import factor, fewest_pairs
from pytest_icbench.stats.rig_pairs import RigPair
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "What a rig draws when it is built accuses no version"
CLAIM = (
    "Of 10,000 simulated sessions of unchanged software at most 1 % accuse it side by side, with one comparison and"
    " with twenty, though each rig draws a level of its own when it is built. A version exactly at the margin passes in"
    " at most 2.5 % of the comparisons (3 % with the error of 10,000)."
)
SESSIONS, POWER = 10_000, 1_000
METHOD = f"""
Each rig draws a level: from a normal distribution, or one of two bands 6 % apart. Launches on it differ by 1 % more.
Comparisons are decided by the plugin's own functions (`measure.comparing`) with the default allowance of 3 %.

A pair of launches takes 4 s, and building two rigs 3 s, as measured on a host of two CPUs: the default minute has five
pairs of rigs.

Each share is compared with that of the plugin's earlier rule: all pairs of a look on the same two rigs, two
looks, signed ranks over pairs of launches.

The second table is the price: {POWER:,} comparisons of a slower version, by the noise of a launch and of a rig.
"""
SECONDS = 180.0
FIGURES = {"alarms": "Sessions of twenty comparisons that accuse unchanged software, by what rigs draw."}

MARGIN, PRECISION = Margin("higher"), Lengths().precision
PAIR_S, BUILDING_S, LIMIT_S = 4.0, 3.0, Lengths().max_duration_s
COMPARISONS, MOST_ALARMS, MOST_PASSED = 20, 0.01, 0.03


@dataclass(frozen=True, slots=True)
class Rigs:
    """What rigs draw: the logarithm of a level."""

    name: str
    level: Callable[[Random], float]


def varying(deviation: float) -> Rigs:
    """Levels of a normal distribution, in per cent."""
    return Rigs(
        f"levels {deviation:g} % apart (s.d.)" if deviation else "no levels", lambda r: r.gauss(0, deviation / 100)
    )


def banded(upper: float) -> Rigs:
    """Two levels 6 % apart; the part ``upper`` of the rigs has the higher one."""
    return Rigs(
        f"two bands 6 % apart, {upper:.0%} in the upper one", lambda r: 0.0 if r.random() < upper else math.log(0.94)
    )


RIGS = (*(varying(deviation) for deviation in (0, 1, 2, 3)), banded(0.5), banded(0.8))

#: Says whether a comparison ends in a verdict, of a candidate whose rate is the base's times a ratio.
Rule = Callable[[Random, Rigs, float, float, int], Verdict]


def rig_pair(random: Random, rigs: Rigs, noise: float, ratio: float, pairs: int) -> RigPair:
    """The launches of so many pairs on two rigs."""
    sides = [ratio * math.exp(rigs.level(random)), math.exp(rigs.level(random))]
    now, base = ([level * max(random.gauss(1, noise), 0.01) for _ in range(pairs)] for level in sides)
    return now, base


def compared(random: Random, rigs: Rigs, noise: float, ratio: float, cases: int) -> Verdict:
    """The decision of the present rule."""
    looked: list[RigPair] = []
    spent_s = 0.0
    while True:
        looked.append(rig_pair(random, rigs, noise, ratio, PAIRS_A_RIG))
        spent_s += PAIRS_A_RIG * PAIR_S + BUILDING_S
        number = len(looked)
        if number >= FEWEST_LOOKED and all(is_narrow(looked[:end], MARGIN, PRECISION) for end in (number, number - 1)):
            break
        if spent_s + PAIR_S > LIMIT_S:
            break
    look = first_look(looked, MARGIN)
    if look.verdict not in (Verdict.REGRESSED, Verdict.IMPROVED):
        return look.verdict
    fresh = [rig_pair(random, rigs, noise, ratio, pairs) for pairs in confirming_rigs(PAIRS_A_RIG * len(looked), cases)]
    return second_look(fresh, MARGIN, cases, look.verdict).decision


def compared_before(random: Random, rigs: Rigs, noise: float, ratio: float, cases: int) -> Verdict:
    """The decision of the rule that knew no rigs."""
    most = int(LIMIT_S / PAIR_S)
    now, base = rig_pair(random, rigs, noise, ratio, most)
    widest = abs(1 - MARGIN.limit) / 2
    pairs = 6
    while pairs < most:
        pairs += 1
        widths = [factor(now[:n], base[:n], LOOKED_CONFIDENCE).relative_half_width for n in (pairs, pairs - 1)]
        if pairs > 6 and all(width is not None and width <= widest for width in widths):
            break
    verdict = Verdict.of_outcome(MARGIN.change(factor(now[:pairs], base[:pairs], LOOKED_CONFIDENCE)))
    if verdict not in (Verdict.REGRESSED, Verdict.IMPROVED):
        return verdict
    fresh = rig_pair(random, rigs, noise, ratio, max(pairs, fewest_pairs(confirming(cases))))
    again = Verdict.of_outcome(MARGIN.change(factor(*fresh, confirming(cases))))
    return verdict if again == verdict else Verdict.INCONCLUSIVE


def check(settings: Settings) -> Found:
    sessions, points = settings.count(SESSIONS, 100), []
    rows: list[Row] = []
    for rigs in RIGS:
        settings.tell(rigs.name)
        for comparisons in (1, COMPARISONS):
            shares = [
                accusing(rule, rigs, comparisons, sessions, settings.seed) for rule in (compared, compared_before)
            ]
            what = f"{rigs.name}: sessions of {comparisons} that accuse unchanged software"
            bound = f"at most {MOST_ALARMS:.0%}"
            rows.append(Row(what, f"{shares[0]:.2%} (before: {shares[1]:.1%})", bound, shares[0] <= MOST_ALARMS))
        points.append({"name": rigs.name, "now": shares[0], "before": shares[1]})
        passed = share(compared, rigs, 0.01, MARGIN.limit, 1, sessions, Verdict.PASS, settings.seed)
        what = f"{rigs.name}: comparisons that pass a version at the margin"
        rows.append(Row(what, f"{passed:.1%}", f"at most {MOST_PASSED:.0%}", passed <= MOST_PASSED))
    settings.tell("power")
    times = settings.count(POWER, 20)
    for rigs in (varying(0), varying(2), banded(0.5)):
        for noise in (0.01, 0.02, 0.05):
            for drop in (0.05, 0.10):
                for cases in (1, COMPARISONS):
                    found = [
                        share(rule, rigs, noise, 1 - drop, cases, times, Verdict.REGRESSED, settings.seed)
                        for rule in (compared, compared_before)
                    ]
                    what = f"{rigs.name}, launches {noise:.0%}: found of {drop:.0%} slower, {cases} in the session"
                    rows.append(Row(what, f"{found[0]:.0%} (before: {found[1]:.0%})"))
    return Found(tuple(rows), {"most": MOST_ALARMS, "alarms": points})


def accusing(rule: Rule, rigs: Rigs, comparisons: int, sessions: int, seed: int) -> float:
    """The share of sessions of unchanged software with a comparison that ends in REGRESSED."""
    random = Random(f"{seed} {rigs.name} {comparisons} {rule.__name__}")
    return (
        sum(
            any(rule(random, rigs, 0.01, 1.0, comparisons) == Verdict.REGRESSED for _ in range(comparisons))
            for _ in range(sessions)
        )
        / sessions
    )


def share(
    rule: Rule, rigs: Rigs, noise: float, ratio: float, cases: int, times: int, verdict: Verdict, seed: int
) -> float:
    """The share of comparisons that end in a verdict."""
    random = Random(f"{seed} {rigs.name} {noise} {ratio} {cases} {rule.__name__}")
    return sum(rule(random, rigs, noise, ratio, cases) == verdict for _ in range(times)) / times


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    axes = figure.subplots()
    places = list(range(len(data["alarms"])))
    for key, marker in (("now", "o"), ("before", "x")):
        axes.plot([100 * point[key] for point in data["alarms"]], places, marker, label=key)
    axes.axvline(100 * data["most"], linestyle="--", color="grey")
    axes.set(xlabel="sessions of twenty comparisons that accuse unchanged software, %")
    axes.set_yticks(places, [point["name"] for point in data["alarms"]], fontsize=7)
    axes.invert_yaxis()
    axes.legend(fontsize=7)
