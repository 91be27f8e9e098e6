# SPDX-License-Identifier: BSD-3-Clause
"""Summarizes launches as a Measurement. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_icbench.measure.launch.switch_work import ports_over_launches
from pytest_icbench.measure.launch.validity import RULES
from pytest_icbench.measure.reference import REFERENCES
from pytest_icbench.measure.summary.bottleneck import Bottleneck, LoadIndicators, find_bottleneck
from pytest_icbench.measure.summary.launch_log import LaunchLog, by_round, main_figure, over, state_fields
from pytest_icbench.model.candidate import OldVersion
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Endpoint, Tap, Veth
from pytest_icbench.model.figures import BY_KIND, AnyFigures, kept
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.dependence import drift, find_dependence
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate, quotients

#: From this difference on a clock was set, and not slewed, in seconds.
CLOCK_STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of the figures, as in Measurement.

    Attributes:
        shared: whether endpoints share CPUs and yield.
        open_loop: whether the client of the case's application asks at a rate of its own.
        software: how to start the measured software again.
    """

    placement: str
    endpoints: Sequence[Endpoint]
    shared: bool = False
    open_loop: bool = False
    identity: Mapping[str, Any] = field(default_factory=dict)
    treatment: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    software: OldVersion | None = None


def line_pps(case: Case, around: Environment) -> float | None:
    """Returns the frames per second that the link between two hosts carries, over both ways where both ends send.

    It is None on one host, or if the speed is unknown.
    """
    mbps = around.treatment.get("uplink_mbps")
    if not case.remote or mbps is None:
        return None
    return case.traffic.line_pps(float(mbps)) * case.directions


def load_indicators(case: Case, launches: Sequence[Launch], around: Environment) -> LoadIndicators:
    """Returns the indicators of what limited launches of a case."""
    return LoadIndicators.of(launches, line_pps(case, around))


def bottleneck_of(case: Case, indicators: LoadIndicators, around: Environment, *, maximum: bool = True) -> Bottleneck:
    """Returns what limited the rate of a case.

    ``maximum``: whether senders offered all they could, because the rate asked for that or for more.
    """
    return find_bottleneck(
        indicators,
        maximum=maximum,
        switched=case.switch not in REFERENCES,
        kernel=all(isinstance(endpoint, Veth | Tap) for endpoint in around.endpoints),
        shared=around.shared,
    )


def rate_bottleneck(case: Case, launches: Sequence[Launch], around: Environment) -> Bottleneck:
    """Returns what limited the rate of launches that send frames of the workload."""
    maximum = case.rate.at_limit or any(launch.generator_bound for launch in launches)
    return bottleneck_of(case, load_indicators(case, launches, around), around, maximum=maximum)


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """How launches of a kind become a measurement.

    Attributes:
        figures: returns the figures of the launches.
        bottleneck: returns what limited the launches.
        metric: returns the metric of the rate.
        fault: returns reason and evidence of INVALID if the launches as a whole are no numbers, else None.
    """

    figures: Callable[[Case, LaunchLog], AnyFigures]
    bottleneck: Callable[[Case, Sequence[Launch], Environment], Bottleneck] = rate_bottleneck
    metric: Callable[[Case, Environment], str] = lambda case, _around: case.rate.metric
    fault: Callable[[Case, Sequence[Launch]], tuple[str, str] | None] = lambda _case, _launches: None


def summarize(
    summary: Summary, case: Case, settings: Settings, gathered: LaunchLog, around: Environment
) -> Measurement:
    """Returns the measurement of the launches; INVALID with its reason if they are no numbers."""
    launches = gathered.launches
    known = [(launch, figure) for launch in launches if (figure := main_figure(case, launch)) == figure]
    figures = [figure for _, figure in known]
    main = over([launch for launch, _ in known], figures) if figures else None
    # An interval over rounds holds what their launches share.
    dependence = find_dependence(figures) if len(by_round(launches, launches)) < 2 else None
    bottleneck = summary.bottleneck(case, launches, around)
    measured = [window for launch in launches for window in launch.windows if window.kept]
    invalid = gathered.invalid or summary.fault(case, launches)
    return Measurement(
        case=case.id,
        dimension=case.dimension,
        metric=summary.metric(case, around),
        switch=case.switch,
        port=case.port,
        mode=case.mode_label,
        placement=around.placement,
        verdict=Verdict.INVALID if invalid else None,
        reason=invalid[0] if invalid else None,
        evidence=invalid[1] if invalid else None,
        reference_evidence=gathered.reference_evidence,
        bottleneck=bottleneck.limit if launches else "unknown",
        bottleneck_evidence=bottleneck.evidence if launches else "",
        lower_bound=bool(launches) and bottleneck.lower_bound,
        generator_bound=any(launch.generator_bound for launch in launches),
        launches=len(launches),
        windows=len(measured),
        disturbed_windows=sum(window.disturbed for window in measured),
        **_disturbance(launches, gathered.repeated),
        discarded_s=sum(launch.discarded_s for launch in launches),
        unsettled_launches=sum(launch.stationary is False for launch in launches),
        ended_by=gathered.ended_by,
        precision=None if main is None or (dependence and dependence.likely) else main.relative_half_width,
        confidence=CONFIDENCE if main is not None and main.coverage else None,
        dependence=dependence,
        drift=drift(figures),
        repeated=len(gathered.faults),
        faults=tuple(gathered.faults),
        rules=RULES,
        started_at=gathered.started_at,
        duration_s=gathered.duration_s,
        axes=case.to_dict(),
        settings=settings.to_dict(),
        identity=dict(around.identity),
        treatment=dict(around.treatment),
        conditions={**around.conditions, **_stepped(gathered.clock_step_s)},
        software=around.software,
        switch_counters=ports_over_launches(launches),
        per_launch=(*launches, *gathered.rejected),
        per_reference_launch=tuple(gathered.reference),
        per_repeated_launch=tuple(gathered.repeated),
        **state_fields(case, gathered),
        figures=summary.figures(case, gathered),
        ratio_to_reference=kept(ratio_to_reference(case, gathered)),
    )


def ratio_to_reference(case: Case, gathered: LaunchLog) -> Estimate | None:
    """Returns the main figure over the reference link's, or of one that is better when less the inverse.

    It is None for a rate that is not the maximum: at a given load both receive the same.
    """
    pairs = list(zip(gathered.launches, gathered.reference, strict=False))
    less_is_better = BY_KIND[case.kind].LESS_IS_BETTER
    if gathered.reference_evidence or not (less_is_better or case.rate.is_max):
        return None
    pairs = [pair for pair in pairs if all(main_figure(case, launch) > 0 for launch in pair)]
    if not pairs:
        return None
    measured, reference = ([main_figure(case, pair[side]) for pair in pairs] for side in (0, 1))
    ratios = quotients(reference, measured) if less_is_better else quotients(measured, reference)
    return over([launch for launch, _ in pairs], ratios)


def _disturbance(launches: Sequence[Launch], repeated: Sequence[Launch]) -> dict[str, Any]:
    """Returns the number of disturbed launches, the worst disturbance, and how many launches were repeated for one."""
    known = [launch.interference for launch in (*launches, *repeated) if launch.interference is not None]
    disturbed = [launch for launch in launches if launch.disturbed is not None]
    reported = max(disturbed or repeated, key=_strength, default=None)
    return {
        "disturbed_launches": len(disturbed) if known or disturbed else None,
        "disturbance": None if reported is None else reported.disturbed,
        "disturbed_repeated": len(repeated),
    }


def _stepped(step_s: float) -> dict[str, float]:
    """Returns the condition of a clock that was set; empty for one that was at most slewed."""
    return {"clock_step_s": round(step_s, 1)} if abs(step_s) >= CLOCK_STEP_S else {}


def _strength(launch: Launch) -> float:
    """How much a launch was disturbed: what was taken of its CPUs, or waited for, over the time."""
    interference = launch.interference
    if interference is None:
        return 0.0
    taken = (interference.taken or 0.0) + (interference.stolen or 0.0)
    return max(taken / max(interference.cpus, 1), interference.waited or 0.0)
