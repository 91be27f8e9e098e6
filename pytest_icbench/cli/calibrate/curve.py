# SPDX-License-Identifier: BSD-3-Clause
"""The operating characteristic of a comparison of versions, from recorded pairs of the same version. Pure.

A comparison is simulated as ``measure.versions`` makes it: a first look of n pairs on two rigs, and as many fresh pairs
on rigs built anew, both of whose intervals have to lie beyond the allowance. Its pairs are drawn from those recorded:
the rigs' own difference (the median of a block, since a block is what was measured on the same two rigs), either way
round, and what is left within blocks, in runs of neighbours. A version that is slower by a drop d has all its quotients
times 1 - d, which the injected slow-down checks.

So a simulated comparison comes to one number, the greater of the two upper ends on a logarithmic scale, and all figures
are its quantiles: REGRESSED at the allowance a means that it is less than log(1 - a).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from pytest_icbench.measure.strategy.side_by_side import confirming
from pytest_icbench.stats.noninferiority import DEFAULT_ALLOWANCE
from pytest_icbench.stats.paired import factor, fewest_pairs
from pytest_icbench.stats.quantiles import CONFIDENCE, median, quantile

#: False alarms that are tolerated.
FALSE_ALARMS = 0.01
#: Pairs that are drawn together, as neighbours.
RUN = 3
SIMULATIONS = 2000
#: A comparison looks twice, at launches of its own each time.
LOOKS = 2


@dataclass(frozen=True, slots=True)
class Point:
    """What comparisons of one length find.

    Attributes:
        pairs: of the first look, and again of fresh ones if it finds something.
        seconds: what both take.
        allowance: the least at which at most ``FALSE_ALARMS`` of the comparisons of the same version end in REGRESSED.
        drop_90, drop_95: the least drop that ends in REGRESSED in 90 % and 95 % of the comparisons, at that allowance.
        default_alarms: false alarms at the default allowance. default_drop_95: the drop found in 95 % of them there.
    """

    pairs: int
    seconds: float
    allowance: float
    drop_90: float
    drop_95: float
    default_alarms: float
    default_drop_95: float


def lengths(longest: int) -> list[int]:
    """Numbers of pairs that the table shows, up to ``longest``: no fewer than a confirmation takes."""
    found, pairs = [], fewest_pairs(confirming(1))
    while pairs < longest:
        found.append(pairs)
        pairs = math.ceil(pairs * 1.5)
    return [*found, longest] if longest >= fewest_pairs(confirming(1)) else found


def point(
    blocks: Sequence[Sequence[float]], pairs: int, pair_s: float, *, simulations: int = SIMULATIONS, seed: int = 1
) -> Point:
    """What comparisons of so many pairs find.

    Args:
        blocks: quotients of the same version, in the order of time, a list for each two rigs.
        pair_s: what a pair takes.
    """
    random = Random(seed)
    effects, rests = _parts(blocks)
    ends = [
        max(
            _upper(effects, rests, pairs, CONFIDENCE, random),
            _upper(effects, rests, pairs, confirming(1), random),
        )
        for _ in range(simulations)
    ]
    allowance = max(-math.expm1(quantile(ends, FALSE_ALARMS)), 0.0)
    return Point(
        pairs=pairs,
        seconds=LOOKS * pairs * pair_s,
        allowance=allowance,
        drop_90=_drop(ends, allowance, 0.90),
        drop_95=_drop(ends, allowance, 0.95),
        default_alarms=sum(end < math.log1p(-DEFAULT_ALLOWANCE) for end in ends) / len(ends),
        default_drop_95=_drop(ends, DEFAULT_ALLOWANCE, 0.95),
    )


def _drop(ends: Sequence[float], allowance: float, power: float) -> float:
    return max(-math.expm1(math.log1p(-allowance) - quantile(ends, power)), 0.0)


def _parts(blocks: Sequence[Sequence[float]]) -> tuple[list[float], list[list[float]]]:
    """The difference of each two rigs, and what is left of their quotients without it; logarithms."""
    logs = [[math.log(value) for value in block] for block in blocks if block]
    effects = [median(block) for block in logs]
    return effects, [[value - effect for value in block] for block, effect in zip(logs, effects, strict=True)]


def _upper(
    effects: Sequence[float], rests: Sequence[Sequence[float]], pairs: int, confidence: float, random: Random
) -> float:
    """Upper end, as a logarithm, of the interval of one simulated set of pairs."""
    effect = random.choice(effects) * random.choice((-1, 1))
    drawn: list[float] = []
    while len(drawn) < pairs:
        block = random.choice(rests)
        begin, sign = random.randrange(max(len(block) - RUN + 1, 1)), random.choice((-1, 1))
        drawn += [sign * value for value in block[begin : begin + RUN]]
    found = factor([math.exp(effect + value) for value in drawn[:pairs]], [1.0] * pairs, confidence)
    return math.log(found.high) if found.high is not None else math.inf


def sentence(points: Sequence[Point], seconds: float) -> str:
    """``here, 20 minutes detect 3.1 % at 1 % false alarms``: of the longest comparison that fits into the time."""
    fitting = [each for each in points if each.seconds <= seconds]
    if not fitting:
        return f"here, {_span(seconds)} are too short for a comparison"
    best = min(fitting, key=lambda each: each.drop_95)
    return (
        f"here, {_span(seconds)} detect {best.drop_95 * 100:.1f} % at {FALSE_ALARMS * 100:.0f} % false alarms"
        f" (in 95 of 100 comparisons, with an allowance of {best.allowance * 100:.1f} %)"
    )


def table(points: Sequence[Point]) -> list[str]:
    """The points as lines."""
    lines = [
        "  pairs   time  allowance  drop found in 90 %  in 95 %   at 3 % allowance: false alarms  found in 95 %",
    ]
    for each in points:
        lines.append(
            f"{each.pairs:7}  {_span(each.seconds):>5}  {each.allowance * 100:7.1f} %  {each.drop_90 * 100:16.1f} %"
            f"  {each.drop_95 * 100:5.1f} %  {each.default_alarms * 100:29.1f} %  {each.default_drop_95 * 100:11.1f} %"
        )
    return lines


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
