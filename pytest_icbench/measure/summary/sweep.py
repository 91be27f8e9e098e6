# SPDX-License-Identifier: BSD-3-Clause
"""Summarizes a sweep as a whole: the point of each load, and the limit from the best load up. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.measure.reference import REFERENCES
from pytest_icbench.measure.summary.bottleneck import NEGLIGIBLE_LOSS, Bottleneck, LoadIndicators, find_bottleneck
from pytest_icbench.measure.summary.summarize import Environment, line_pps
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Veth
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.trials import SweepPoint
from pytest_icbench.model.verdict import Verdict

#: Loads with their launches.
Swept = Sequence[tuple[Rate, Launch]]


def with_sweep(
    case: Case,
    measurement: Measurement,
    swept: Swept,
    best: Rate | None,
    launches: Sequence[Launch],
    around: Environment,
) -> Measurement:
    """Returns the measurement with the sweep's points and its bottleneck.

    Args:
        swept: loads in the order in which they ran.
        best: the load with the greatest rate received; None if the sweep did not end.
        launches: launches at the best load, which give the figures.
    """
    numbered = sorted(measurement.per_launch, key=lambda launch: launch.index)
    points = tuple(_point(rate, launch, case.senders) for rate, launch in swept)
    swept_measurement = replace(
        measurement, figures=replace(measurement.rates, sweep=points), per_launch=tuple(numbered)
    )
    if best is None or measurement.verdict == Verdict.INVALID:
        return swept_measurement
    bottleneck = _limit(case, swept, best, launches, around)
    return replace(
        swept_measurement,
        bottleneck=bottleneck.limit,
        bottleneck_evidence=bottleneck.evidence,
        lower_bound=bottleneck.lower_bound,
    )


def _point(rate: Rate, launch: Launch, pairs: int) -> SweepPoint:
    scheduled, handled = launch.total("scheduled"), launch.total("handled")
    return SweepPoint(
        load_pps=(rate.pps or 0) * pairs,
        offered_pps=launch.offered_pps,
        throughput_pps=launch.throughput_pps,
        trial_loss_ratio=1 - handled / scheduled if scheduled else None,
        generator_bound=launch.generator_bound,
    )


def _limit(case: Case, swept: Swept, best: Rate, launches: Sequence[Launch], around: Environment) -> Bottleneck:
    """Returns the bottleneck, which shows at the loads from the best one up."""
    above = [launch for rate, launch in swept if (rate.pps or 0) >= (best.pps or 0)]
    above += launches
    offered = sum(launch.total("scheduled") for launch in above)
    missed = offered - sum(launch.total("handled") for launch in above)
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
