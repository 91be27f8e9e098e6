# SPDX-License-Identifier: BSD-3-Clause
"""What a reader asks of one result beside its figures, as names and texts. Pure."""

from __future__ import annotations

from typing import Any

from pytest_icbench.report import longruns, remarks
from pytest_icbench.report.axes import HOST, Result, number
from pytest_icbench.report.overview import figure_text


def facts_of(result: Result, repeat: str | None = None) -> list[tuple[str, str]]:
    """Names and texts, what there is none of left out.

    Args:
        repeat: the command that repeats the case.
    """
    treatment: dict[str, Any] = dict(result.get("treatment") or {})
    switch: dict[str, Any] = dict(treatment.get("switch") or {})
    identity: dict[str, Any] = dict(result.get("identity") or {})
    found = [
        ("verdict", _joined(result.get("verdict"), result.get("reason"))),
        ("evidence", result.get("evidence")),
        ("figure", (figure := figure_text(result)) and _joined(figure, result.get("metric"))),
        ("relevant bounds", remarks.relevant_bounds(result)),
        ("search", dict(result.get("search") or {}).get("evidence")),
        ("back to back", longruns.back_to_back(result)),
        ("losses", longruns.losses(result)),
        ("round trips", _round_trips(result, "rtt")),
        ("first of a burst", _round_trips(result, "rtt_first")),
        ("delay variation", _round_trips(result, "pdv", "round-trip time less the least (RFC 5481)")),
        ("floor", _round_trips(result, "floor", "of the reference link, with no switch between")),
        ("limited by", _joined(result.get("bottleneck"), result.get("bottleneck_evidence"))),
        ("bands", remarks.bands(result)),
        ("drift", remarks.drift(result)),
        ("launches", _joined(result.get("launches"), f"ended by {result.get('ended_by')}")),
        ("reference", result.get("ratio_to_reference") and f"{result['ratio_to_reference']:.3g} of the reference link"),
        ("no reference", result.get("reference_evidence")),
        ("frames", _frames(result)),
        ("switch version", switch.get("version")),
        ("DPDK", treatment.get("dpdk")),
        ("kernel", treatment.get("kernel")),
        (
            "host",
            _joined(result.get(HOST), identity.get("cpu_model"), identity.get("cpus") and f"{identity['cpus']} CPUs"),
        ),
        ("placement", _joined(result.get("placement"), treatment.get("cpus") and _cpus(treatment["cpus"]))),
        ("repeat with", repeat),
    ]
    return [(name, str(value)) for name, value in found if value not in (None, "", 0)]


def _round_trips(result: Result, prefix: str, *more: str) -> str:
    if not (found := remarks.percentiles(result, prefix)):
        return ""
    samples = number(result, f"{prefix}_samples")
    return _joined(found, samples and f"{samples:,.0f} answers", *more)


def _joined(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, "", "None"))


def _frames(result: Result) -> str:
    names = ("scheduled", "sent", "refused", "received", "lost", "duplicated", "reordered")
    return ", ".join(f"{name} {result[name]:,}" for name in names if isinstance(result.get(name), int))


def _cpus(cpus: dict[str, Any]) -> str:
    parts = [f"{who} on CPU {' '.join(map(str, cpus[who]))}" for who in ("switch", "endpoints") if cpus.get(who)]
    return ", ".join(parts)
