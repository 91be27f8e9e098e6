# SPDX-License-Identifier: BSD-3-Clause
"""Compares launches with a noisy neighbour with those without it. Pure.

Both kinds run in turn on the same rig, so that the random effects of building a rig are the same for both. Which kind
comes first changes from pair to pair. The ratio and its interval are those of ``stats.intervals``, which assumes
nothing else. A figure changed if its interval excludes 1. The intervals of a case share one error rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import kept
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.noisy_neighbour import NoisyNeighbourEffect, NoisyNeighbourUse
from pytest_icbench.stats.intervals import estimate_ratio, fewest_pairs
from pytest_icbench.stats.quantiles import Estimate, Histogram

#: The greatest probability that any figure of a case is said to change though none does: that of the gate.
ERROR_RATE = 0.01
#: Figures of round trips, each with an interval.
_OF_ROUND_TRIPS: dict[str, Callable[[Histogram], float | None]] = {
    "mean_ratio": lambda rtt: rtt.mean,
    "p99_ratio": lambda rtt: rtt.percentile(0.99),
    "maximum_ratio": lambda rtt: rtt.maximum,
}
#: The fewest pairs of launches with intervals of that confidence.
FEWEST_PAIRS = fewest_pairs(1 - ERROR_RATE / len(_OF_ROUND_TRIPS))


def effect(
    case: Case, launches: Sequence[Launch], alone: Sequence[Launch], use: NoisyNeighbourUse | None
) -> NoisyNeighbourEffect | None:
    """Returns what a case's noisy neighbour changed; None for a case without one, or without a pair of launches.

    Args:
        launches: those with the noisy neighbour.
        alone: those without it; the one at the same index was next to it.
        use: what the noisy neighbour did.
    """
    pairs = list(zip(launches, alone, strict=False))
    if case.noisy_neighbour is None or not pairs:
        return None
    of_rate = case.one_way
    confidence = 1 - ERROR_RATE / (1 if of_rate else len(_OF_ROUND_TRIPS))

    def ratio(figure: Callable[[Launch], float | None]) -> Estimate | None:
        values = [(figure(beside), figure(without)) for beside, without in pairs]
        known = [(now, before) for now, before in values if now and before]
        if len(known) < len(values):  # a launch without the figure would be the worst, so the others say nothing
            return None
        return kept(estimate_ratio([now / before for now, before in known], confidence))

    def of_rtt(figure: Callable[[Histogram], float | None]) -> Callable[[Launch], float | None]:
        return lambda launch: None if launch.rtt is None else figure(launch.rtt)

    ratios = {name: ratio(of_rtt(figure)) for name, figure in _OF_ROUND_TRIPS.items()} if not of_rate else {}
    return NoisyNeighbourEffect(
        pairs=len(pairs),
        confidence=confidence,
        rate_ratio=ratio(lambda launch: launch.throughput_pps) if of_rate else None,
        **ratios,
        busy=None if use is None else use.busy,
        cache_bytes=None if use is None else use.cache_bytes,
    )


def with_effect(
    measurement: Measurement, case: Case, alone: Sequence[Launch], use: NoisyNeighbourUse | None
) -> Measurement:
    """Returns the result with the effect of its noisy neighbour.

    Launches without a noisy neighbour are no reference link, so the result has neither ratio nor floor.
    """
    if case.noisy_neighbour is None:
        return measurement
    launches = [launch for launch in measurement.per_launch if launch.invalid is None]
    changed = measurement.with_figures(noisy_neighbour=effect(case, launches, alone, use))
    return replace(changed, ratio_to_reference=None, figures=changed.figures.without_floor())
