# SPDX-License-Identifier: BSD-3-Clause
"""The operating characteristic of a comparison of versions, from recorded pairs of the same version. Pure.

The simulation follows ``measure.comparing``: a first look of n pairs of launches on several pairs of rigs, and at least
as many fresh pairs of launches on new rigs. Both intervals have to lie beyond the allowance. A simulated pair of rigs
adds two parts that are drawn from the recorded ones. The first is the difference of two rigs, with a random sign: the
median of the pairs of launches that were measured on the same two rigs. The second is what these differ by. A drop d of
a slower version multiplies all quotients by 1 - d, which the injected slow-down checks.

The result of a simulated comparison is one number: the greater of the two upper ends on a logarithmic scale. All
figures are its quantiles. REGRESSED at the allowance a means that it is less than log(1 - a).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from pytest_icbench.measure.comparing import SUSPICION, confirming, confirming_rigs, fixed_rigs
from pytest_icbench.stats.noninferiority import DEFAULT_ALLOWANCE
from pytest_icbench.stats.paired import fewest_pairs
from pytest_icbench.stats.quantiles import Estimate, median, quantile
from pytest_icbench.stats.rig_pairs import RigPair, over_rigs, ranked_over_rigs

#: The tolerated share of false alarms.
FALSE_ALARMS = 0.01
SIMULATIONS = 2000


@dataclass(frozen=True, slots=True)
class Point:
    """The drops that comparisons of one length detect. All shares are from 0 to 1.

    Attributes:
        pairs: the pairs of the first look; the second one, if the first suspects a drop, has as many at least.
        seconds: the time that both looks take.
        allowance: the least allowance with at most ``FALSE_ALARMS``: the share of comparisons of one version with
            itself that end in REGRESSED.
        drop_90, drop_95: the least drop that ends in REGRESSED in 90 % and 95 % of the comparisons, at that allowance.
        default_alarms: the share of false alarms at the default allowance.
        default_drop_95: the drop detected in 95 % of the comparisons at the default allowance.
    """

    pairs: int
    seconds: float
    allowance: float
    drop_90: float
    drop_95: float
    default_alarms: float
    default_drop_95: float


def lengths(longest: int) -> list[int]:
    """Returns the numbers of pairs for the table, from the least that a confirmation needs up to ``longest``."""
    numbers, pairs = [], fewest_pairs(confirming(1))
    while pairs < longest:
        numbers.append(pairs)
        pairs = math.ceil(pairs * 1.5)
    return [*numbers, longest] if longest >= fewest_pairs(confirming(1)) else numbers


def point(
    blocks: Sequence[Sequence[float]], pairs: int, pair_s: float, *, simulations: int = SIMULATIONS, seed: int = 1
) -> Point:
    """Simulates comparisons of ``pairs`` pairs. Returns the drops that they detect.

    Args:
        blocks: quotients of the same version, in the order of time, a list for each two rigs.
        pair_s: time in seconds that a pair takes.
        simulations: number of comparisons to simulate.
        seed: seed of the random numbers.
    """
    random = Random(seed)
    effects, rests = _parts(blocks)
    fresh = confirming_rigs(pairs, 1)
    ends = [
        max(
            _upper(effects, rests, fixed_rigs(pairs), over_rigs, SUSPICION, random),
            _upper(effects, rests, fresh, ranked_over_rigs, confirming(1), random),
        )
        for _ in range(simulations)
    ]
    allowance = max(-math.expm1(quantile(ends, FALSE_ALARMS)), 0.0)
    return Point(
        pairs=pairs,
        seconds=seconds_of(pairs, pair_s),
        allowance=allowance,
        drop_90=_drop(ends, allowance, 0.90),
        drop_95=_drop(ends, allowance, 0.95),
        default_alarms=sum(end < math.log1p(-DEFAULT_ALLOWANCE) for end in ends) / len(ends),
        default_drop_95=_drop(ends, DEFAULT_ALLOWANCE, 0.95),
    )


def _drop(ends: Sequence[float], allowance: float, power: float) -> float:
    """Returns the least drop that the share ``power`` of the comparisons detects.

    Args:
        ends: the results of simulated comparisons, as logarithms.
    """
    return max(-math.expm1(math.log1p(-allowance) - quantile(ends, power)), 0.0)


def _parts(blocks: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Returns the difference of each two rigs, and the quotients without it, both as logarithms."""
    logs = [[math.log(value) for value in block] for block in blocks if block]
    effects = [median(block) for block in logs]
    return effects, [value - effect for block, effect in zip(logs, effects, strict=True) for value in block]


def _upper(
    effects: Sequence[float],
    rests: Sequence[float],
    rigs: Sequence[int],
    interval: Callable[[Sequence[RigPair], float], Estimate],
    confidence: float,
    random: Random,
) -> float:
    """Returns the upper end, as a logarithm, of the interval of one simulated look.

    Args:
        effects, rests: see ``_parts``.
        rigs: the pairs of launches on each pair of rigs.
        confidence: confidence of the interval, 0 to 1.
    """
    drawn: list[RigPair] = []
    for pairs in rigs:
        effect = random.choice(effects) * random.choice((-1, 1))
        values = [math.exp(effect + random.choice(rests) * random.choice((-1, 1))) for _ in range(pairs)]
        drawn.append((values, [1.0] * pairs))
    estimate = interval(drawn, confidence)
    return math.log(estimate.high) if estimate.high is not None else math.inf


def seconds_of(pairs: int, pair_s: float) -> float:
    """Returns the time of a first look of so many pairs, and of the second one."""
    return (pairs + sum(confirming_rigs(pairs, 1))) * pair_s


def sentence(points: Sequence[Point], seconds: float) -> str:
    """Returns ``here, 20 minutes detect 3.1 % at 1 % false alarms``, for the best comparison that fits the time."""
    fitting = [item for item in points if item.seconds <= seconds]
    if not fitting:
        return f"here, {_span(seconds)} are too short for a comparison"
    best = min(fitting, key=lambda item: item.drop_95)
    return (
        f"here, {_span(seconds)} detect {best.drop_95 * 100:.1f} % at {FALSE_ALARMS * 100:.0f} % false alarms"
        f" (in 95 of 100 comparisons, with an allowance of {best.allowance * 100:.1f} %)"
    )


def table(points: Sequence[Point]) -> list[str]:
    """Returns the points as lines of a table."""
    lines = ["  pairs   time  allowance  drop found in 90 %  in 95 %   at 3 % allowance: false alarms  found in 95 %"]
    for item in points:
        lines.append(
            f"{item.pairs:7}  {_span(item.seconds):>5}  {item.allowance * 100:7.1f} %  {item.drop_90 * 100:16.1f} %"
            f"  {item.drop_95 * 100:5.1f} %  {item.default_alarms * 100:29.1f} %  {item.default_drop_95 * 100:11.1f} %"
        )
    return lines


def _span(seconds: float) -> str:
    """Formats a time in seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
