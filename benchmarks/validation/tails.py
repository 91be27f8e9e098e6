# SPDX-License-Identifier: BSD-3-Clause
"""Round trips whose tails differ from launch to launch, and how often the interval of their mean and p99 is right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from pytest_icbench.stats.intervals import estimate_over_merged, over_launches
from pytest_icbench.stats.quantiles import Estimate

#: Round trips of a launch, the share of them in the tail, and the least and the mean length of it, in microseconds.
SAMPLES, TAIL = 1000, 0.05
BASE_US, TAIL_US = 10.0, 100.0
#: Deviation of the logarithm of a launch's mean tail, and the launches of a session.
SIGMAS = (0.0, 0.7, 1.0)
LAUNCHES = (7, 20)
Q = 0.99

Intervals = dict[str, tuple[Estimate, Estimate]]


def truth(sigma: float) -> dict[str, float]:
    """The mean and the p99 over all launches that there can be."""
    mean = BASE_US + TAIL * TAIL_US * math.exp(sigma * sigma / 2)
    grid = [(place / 2000 - 1) * 6 for place in range(4001)]
    weights = [math.exp(-z * z / 2) for z in grid]
    scales = [TAIL_US * math.exp(sigma * z) for z in grid]

    def beyond(length: float) -> float:
        shares = math.fsum(w * math.exp(-length / scale) for w, scale in zip(weights, scales, strict=True))
        return TAIL * shares / math.fsum(weights)

    low, high = 0.0, 1e5
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - Q else (low, middle)
    return {"mean": mean, "p99": BASE_US + low}


def session(random: Random, sigma: float, launches: int) -> Intervals:
    """The intervals of the mean and the p99 of all round trips: the plugin's, and the median launch's, stretched."""
    tails: list[list[float]] = []
    for _ in range(launches):
        scale = TAIL_US * math.exp(random.gauss(0, sigma))
        tails.append(sorted(BASE_US + random.expovariate(1 / scale) for _ in range(_binomial(random))))
    sums = [math.fsum(tail) + BASE_US * (SAMPLES - len(tail)) for tail in tails]
    means = [total / SAMPLES for total in sums]
    whole = math.fsum(means) / launches
    without = [(math.fsum(means) - mean) / (launches - 1) for mean in means]
    ordered = sorted((value, place) for place, tail in enumerate(tails) for value in tail)
    samples = BASE_US, ordered[-1][0]
    p99, rests = _upper(ordered, launches), [_upper(ordered, launches - 1, place) for place in range(launches)]
    each = [tail[-round(SAMPLES * (1 - Q)) - 1] for tail in tails]
    return {
        "mean": (estimate_over_merged(whole, without, samples), stretched(whole, means)),
        "p99": (estimate_over_merged(p99, rests, samples), stretched(p99, each)),
    }


def _binomial(random: Random) -> int:
    """The number of round trips in a tail, by the normal approximation; never so few that p99 lies outside it."""
    drawn = round(random.gauss(SAMPLES * TAIL, math.sqrt(SAMPLES * TAIL * (1 - TAIL))))
    return max(drawn, round(SAMPLES * (1 - Q)) + 1)


def _upper(ordered: Sequence[tuple[float, int]], launches: int, left_out: int | None = None) -> float:
    """The p99 of the merged round trips of some launches."""
    beyond = round(launches * SAMPLES * (1 - Q))
    for value, place in reversed(ordered):
        if place != left_out:
            if beyond == 0:
                return value
            beyond -= 1
    return BASE_US


def stretched(whole: float, by_launch: Sequence[float]) -> Estimate:
    """The earlier interval: that of the median over launches, stretched to the figure of all of them."""
    interval = over_launches(by_launch)
    assert interval.low is not None
    assert interval.high is not None
    return Estimate(whole, min(interval.low, whole), max(interval.high, whole))


def coverage(sigma: float, launches: int, sessions: int, seed: int) -> dict[str, tuple[float, float]]:
    """For mean and p99 the share of the sessions whose interval holds the truth: the plugin's, and the earlier one."""
    random, true = Random(f"{seed} {sigma} {launches}"), truth(sigma)
    hits = {name: [0, 0] for name in true}
    for _ in range(sessions):
        for name, both in session(random, sigma, launches).items():
            for which, estimate in enumerate(both):
                assert estimate.low is not None
                assert estimate.high is not None
                hits[name][which] += estimate.low <= true[name] <= estimate.high
    return {name: (now / sessions, before / sessions) for name, (now, before) in hits.items()}
