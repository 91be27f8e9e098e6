# SPDX-License-Identifier: BSD-3-Clause
"""The facts about a result on the page, as names and texts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_icbench.kinds.application.application_columns import cost
from pytest_icbench.model.result import Result
from pytest_icbench.report import host_states, remarks
from pytest_icbench.report.columns import of_plain
from pytest_icbench.report.overview import figure_text
from pytest_icbench.report.reported_intervals import sessions_of


def facts_of(result: Result, repeat: str | None = None) -> list[tuple[str, str]]:
    """Returns names and texts; facts without a value are left out.

    Args:
        repeat: the command that repeats the case.
    """
    treatment, identity = result.treatment, result.identity
    switch: dict[str, Any] = dict(treatment.get("switch") or {})
    rtt, first, pdv = remarks.round_trips(result), remarks.first_round_trips(result), remarks.variation(result)
    responses = remarks.times(result, "response", "mean", "p50", "p90", "p99")
    of_rfc, of_reference = "round-trip time less the least (RFC 5481)", "of the reference link, with no switch between"
    facts: list[tuple[str, object]] = [
        ("verdict", _joined(result.verdict, result.reason)),
        ("evidence", result.evidence),
        ("value", (figure := figure_text(result)) and _joined(figure, result.metric)),
        ("relevant bounds", remarks.relevant_bounds(result)),
        ("search", result.searched.search and result.searched.search.evidence),
        ("back to back", remarks.back_to_back(result)),
        ("losses", remarks.describe_losses(result)),
        ("lost by hop", remarks.lost_by_hop(result)),
        ("chain", remarks.crowding(result)),
        ("functions on one CPU", remarks.side_by_side(result)),
        ("noisy neighbour", remarks.noisy_neighbour_effect(result)),
        ("changes of the load", remarks.load_changes(result)),
        ("response times", _times(result, responses, None, None)),
        ("CPU time", _cpu_time(result)),
        ("round trips", _times(result, rtt, result.round_trips.rtt_max_ns, result.round_trips.rtt_samples)),
        ("first of a burst", _times(result, first, None, result.round_trips.rtt_first_samples)),
        ("delay variation", _times(result, pdv, result.round_trips.pdv_max_ns, None, of_rfc)),
        ("floor", _times(result, remarks.floor(result), None, result.round_trips.floor_samples, of_reference)),
        ("limited by", _joined(result.bottleneck, result.bottleneck_evidence)),
        ("disturbed", remarks.disturbance(result)),
        ("requests", remarks.unanswered(result)),
        ("clock", remarks.clock_step(result)),
        ("not known", remarks.not_known(result)),
        ("states", host_states.levels(result)),
        ("dependence", remarks.dependence(result)),
        ("drift", remarks.drift(result)),
        ("launches", _joined(result.launches, remarks.rounds(result), f"ended by {result.ended_by}")),
        ("interval", (sessions := sessions_of(result)) and f"with what {sessions} differ by"),
        ("reference", _reference(result)),
        ("no reference", result.reference_evidence),
        ("operations", result.application.operations and f"{result.application.operations:,.0f}"),
        ("frames", _frames(result) if result.frames.scheduled else ""),
        ("switch version", switch.get("version")),
        ("DPDK", treatment.get("dpdk")),
        ("kernel", treatment.get("kernel")),
        (
            "host",
            _joined(result.host, identity.get("cpu_model"), identity.get("cpus") and f"{identity['cpus']} CPUs"),
        ),
        ("placement", _joined(result.placement, treatment.get("cpus") and _cpus(treatment["cpus"]))),
        ("repeat with", repeat),
    ]
    return [(name, str(value)) for name, value in facts if value not in (None, "", 0)]


def _reference(result: Result) -> str:
    if result.point.function is not None:
        return of_plain(result)
    ratio = result.ratio_to_reference
    return "" if ratio is None else f"{ratio:.3g} of the reference link"


def _times(
    result: Result, times: Mapping[str, float | None], greatest: float | None, samples: int | None, *more: str
) -> str:
    text = remarks.percentiles(times, greatest) if result.is_number else ""
    return text and _joined(text, samples and f"{samples:,} answers", *more)


def _cpu_time(result: Result) -> str:
    times = [f"{side} {cost(result, side)} µs" for side in ("client", "server") if cost(result, side)]
    return f"{', '.join(times)} an operation" if times else ""


def _joined(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, "", "None"))


def _frames(result: Result) -> str:
    counters = {
        "scheduled": result.frames.scheduled,
        "sent": result.frames.sent,
        "refused": result.frames.refused,
        "received": result.frames.received,
        "lost": result.frames.lost,
        **({"acl_drops": result.frames.acl_drops} if result.frames.acl_drops else {}),
        "duplicated": result.frames.duplicated,
        "reordered": result.frames.reordered,
    }
    return ", ".join(f"{name} {count:,}" for name, count in counters.items())


def _cpus(cpus: dict[str, Any]) -> str:
    parts = [f"{who} on CPU {' '.join(map(str, cpus[who]))}" for who in ("switch", "endpoints") if cpus.get(who)]
    return ", ".join([*parts, *filter(None, [cpus.get("where")])])
