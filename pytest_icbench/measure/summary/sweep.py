# SPDX-License-Identifier: BSD-3-Clause
"""What a sweep says as a whole: the point of each load, and what limits from the best one up. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.measure.reference import REFERENCES
from pytest_icbench.measure.summary.bottleneck import NEGLIGIBLE_LOSS, Bottleneck, LoadIndicators, find_bottleneck
from pytest_icbench.measure.summary.summarize import Surroundings, line_pps
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Veth
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.trials import SweepPoint
from pytest_icbench.model.verdict import Verdict

#: A load and its launch.
Swept = Sequence[tuple[Rate, Launch]]


def with_sweep(
    case: Case,
    measurement: Measurement,
    swept: Swept,
    best: Rate | None,
    launches: Sequence[Launch],
    around: Surroundings,
) -> Measurement:
    """The measurement with the sweep's points.

    Args:
        swept: in the order in which they ran. best: the load with which most arrived, None if the sweep had no end.
        launches: those at the best load, on which the figures stand.
    """
    numbered = sorted(measurement.per_launch, key=lambda launch: launch.index)
    points = tuple(_point(rate, launch, case.pairs) for rate, launch in swept)
    found = replace(measurement, sweep=points, per_launch=tuple(numbered))
    if best is None or measurement.verdict == Verdict.INVALID:
        return found
    limit = _limit(case, swept, best, launches, around)
    return replace(found, bottleneck=limit.what, bottleneck_evidence=limit.evidence, lower_bound=limit.lower_bound)


def _point(rate: Rate, launch: Launch, pairs: int) -> SweepPoint:
    scheduled, received = launch.total("scheduled"), launch.total("received")
    return SweepPoint(
        load_pps=(rate.pps or 0) * pairs,
        offered_pps=launch.offered_pps,
        throughput_pps=launch.throughput_pps,
        trial_loss_ratio=1 - received / scheduled if scheduled else None,
        generator_bound=launch.generator_bound,
    )


def _limit(case: Case, swept: Swept, best: Rate, launches: Sequence[Launch], around: Surroundings) -> Bottleneck:
    """What limits shows at the loads from the best one up."""
    above = [launch for rate, launch in swept if (rate.pps or 0) >= (best.pps or 0)]
    above += launches
    offered = sum(launch.total("scheduled") for launch in above)
    missed = offered - sum(launch.total("received") for launch in above)
    short = any(launch.generator_bound for launch in above)
    if missed <= NEGLIGIBLE_LOSS * offered and not short:
        return Bottleneck("unknown", "all of the greatest load arrived: a greater one may give more", True)
    return find_bottleneck(
        LoadIndicators.of(above, line_pps(case, around)),
        maximum=True,
        switched=case.switch not in REFERENCES,
        kernel=all(isinstance(endpoint, Veth) for endpoint in around.endpoints),
        shared=around.shared,
    )
