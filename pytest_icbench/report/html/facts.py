# SPDX-License-Identifier: BSD-3-Clause
"""The facts about a result on the page, as names and texts. Pure."""

from __future__ import annotations

from typing import Any

from pytest_icbench.kinds.registry import kind_of
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
    facts: list[tuple[str, object]] = [
        ("verdict", _joined(result.verdict, result.reason)),
        ("evidence", result.evidence),
        ("value", (figure := figure_text(result)) and _joined(figure, result.metric)),
        *kind_of(result).facts(result),
        ("losses", remarks.describe_losses(result)),
        ("lost by hop", remarks.lost_by_hop(result)),
        ("chain", remarks.crowding(result)),
        ("functions on one CPU", remarks.side_by_side(result)),
        ("noisy neighbour", remarks.noisy_neighbour_effect(result)),
        ("changes of the load", remarks.load_changes(result)),
        ("limited by", _joined(result.bottleneck, result.bottleneck_evidence)),
        ("disturbed", remarks.disturbance(result)),
        ("table", remarks.table(result)),
        ("clock", remarks.clock_step(result)),
        ("not known", remarks.not_known(result)),
        ("states", host_states.levels(result)),
        ("dependence", remarks.dependence(result)),
        ("drift", remarks.drift(result)),
        ("launches", _joined(result.launches, remarks.rounds(result), f"ended by {result.ended_by}")),
        ("interval", (sessions := sessions_of(result)) and f"includes the spread of {sessions}"),
        ("reference", _reference(result)),
        ("no reference", result.reference_evidence),
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
