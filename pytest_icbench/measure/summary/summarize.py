# SPDX-License-Identifier: BSD-3-Clause
"""Summarizes launches as a Measurement. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_icbench.measure.launch import ports
from pytest_icbench.measure.launch.validity import OFFERED_SHARE, RULES
from pytest_icbench.measure.reference import REFERENCES
from pytest_icbench.measure.summary.application import (
    application_bottleneck,
    application_figures,
    application_metric,
)
from pytest_icbench.measure.summary.bottleneck import LoadIndicators, find_bottleneck
from pytest_icbench.measure.summary.figures import as_kind, frame_figures, latency_figures
from pytest_icbench.measure.summary.gathered import LaunchLog, main_figure
from pytest_icbench.measure.summary.rounds import by_round, over
from pytest_icbench.measure.summary.states import state_fields
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Endpoint, Veth
from pytest_icbench.model.figures import AnyFigures, Latency, Search, Throughput, kept
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.old_version import OldVersion
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.dependence import find_dependence
from pytest_icbench.stats.drift import drift
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate, median, quotients

#: From this difference on a clock was set, and not slewed, in seconds.
CLOCK_STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of the figures, as in Measurement.

    Attributes:
        shared: whether endpoints share CPUs and yield.
        open_loop: whether the client of the case's application asks at a rate of its own.
        software: how what is measured is started again.
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


def summarize(case: Case, settings: Settings, gathered: LaunchLog, around: Environment) -> Measurement:
    """Returns the measurement of the launches; INVALID with its reason if they are no numbers."""
    launches = gathered.launches
    known = [(launch, figure) for launch in launches if (figure := main_figure(case, launch)) == figure]
    figures = [figure for _, figure in known]
    main = over([launch for launch, _ in known], figures) if figures else None
    # An interval over rounds holds what their launches share.
    dependence = find_dependence(figures) if len(by_round(launches, launches)) < 2 else None
    bottleneck = application_bottleneck(launches) or find_bottleneck(
        LoadIndicators.of(launches, line_pps(case, around)),
        maximum=case.rate.at_limit or any(launch.generator_bound for launch in launches),
        switched=case.switch not in REFERENCES,
        kernel=all(isinstance(endpoint, Veth) for endpoint in around.endpoints),
        shared=around.shared,
    )
    measured = [window for launch in launches for window in launch.windows if window.kept]
    invalid = gathered.invalid or generator_bound(case, launches)
    return Measurement(
        case=case.id,
        dimension=case.dimension,
        metric=application_metric(around.open_loop) if case.kind in METRICS_OF_CLIENTS else case.rate.metric,
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
        switch_counters=ports.over_launches(launches),
        per_launch=(*launches, *gathered.rejected),
        per_reference_launch=tuple(gathered.reference),
        per_repeated_launch=tuple(gathered.repeated),
        **state_fields(case, gathered),
        figures=figures_of(case, gathered),
        ratio_to_reference=kept(ratio_to_reference(case, gathered)),
    )


def figures_of(case: Case, gathered: LaunchLog) -> AnyFigures:
    """Returns the figures of the launches, by the case's kind."""
    return SUMMARIES[case.kind](case, gathered)


def _throughput(case: Case, gathered: LaunchLog) -> Throughput:
    return as_kind(Throughput, frame_figures(case, gathered.launches))


def _search(case: Case, gathered: LaunchLog) -> Search:
    return as_kind(Search, frame_figures(case, gathered.launches))


def _latency(case: Case, gathered: LaunchLog) -> Latency:
    return latency_figures(frame_figures(case, gathered.launches), gathered.launches, gathered.reference)


#: The figures of launches by the case's kind. Kinds without launches have a summary of their own.
SUMMARIES: Mapping[str, Callable[[Case, LaunchLog], AnyFigures]] = {
    "throughput": _throughput,
    "search": _search,
    "latency": _latency,
    "application": lambda _case, gathered: application_figures(gathered.launches),
}
#: Kinds whose rate is that of a client, which says what it is.
METRICS_OF_CLIENTS = ("application",)


def generator_bound(case: Case, launches: Sequence[Launch]) -> tuple[str, str] | None:
    """Returns reason and evidence of INVALID if the client could not keep the rate of its round trips, else None.

    Round trips at such a rate are round trips at another rate. A single launch in which the host took the client's time
    does not decide. A received rate, as in a sweep or at the maximum, is a fact about the case all the same.
    """
    rate_pps = case.rate.pps
    if not case.round_trips or rate_pps is None or not launches:
        return None
    bound = sum(launch.generator_bound for launch in launches)
    if 2 * bound <= len(launches):
        return None
    offered = median([launch.offered_pps for launch in launches]) / case.senders
    ask = f"{rate_pps:,} frames per second; ask for less"
    if offered >= OFFERED_SHARE * rate_pps:
        return "generator-bound", f"the client sent most of its requests late, it cannot keep {ask}"
    return "generator-bound", f"the client offered {offered:,.0f} of {ask}"


def ratio_to_reference(case: Case, gathered: LaunchLog) -> Estimate | None:
    """Returns throughput over throughput at maximum load, or reference p50 over p50; None at fixed rates."""
    pairs = list(zip(gathered.launches, gathered.reference, strict=False))
    higher = not case.round_trips
    if gathered.reference_evidence or (case.one_way and not case.rate.is_max):
        return None
    pairs = [pair for pair in pairs if all(main_figure(case, launch) > 0 for launch in pair)]
    if not pairs:
        return None
    measured, reference = ([main_figure(case, pair[side]) for pair in pairs] for side in (0, 1))
    ratios = quotients(measured, reference) if higher else quotients(reference, measured)
    return over([launch for launch, _ in pairs], ratios)


def _disturbance(launches: Sequence[Launch], repeated: Sequence[Launch]) -> dict[str, Any]:
    """Returns how many launches of the figures were disturbed, by what most, and how many were repeated for it."""
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
