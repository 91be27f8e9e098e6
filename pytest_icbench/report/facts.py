# SPDX-License-Identifier: BSD-3-Clause
"""What a reader asks of one result beside its figures, as names and texts. Pure."""

from __future__ import annotations

from typing import Any

from pytest_icbench.report.axes import Result
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
        ("figure", _joined(figure_text(result), result.get("metric"))),
        ("limited by", _joined(result.get("bottleneck"), result.get("bottleneck_evidence"))),
        ("launches", _joined(result.get("launches"), f"ended by {result.get('ended_by')}")),
        ("reference", result.get("ratio_to_reference") and f"{result['ratio_to_reference']:.3g} of the reference link"),
        ("no reference", result.get("reference_evidence")),
        ("frames", _frames(result)),
        ("switch version", switch.get("version")),
        ("DPDK", treatment.get("dpdk")),
        ("kernel", treatment.get("kernel")),
        ("host", _joined(identity.get("cpu_model"), identity.get("cpus") and f"{identity['cpus']} CPUs")),
        ("placement", _joined(result.get("placement"), treatment.get("cpus") and _cpus(treatment["cpus"]))),
        ("repeat with", repeat),
    ]
    return [(name, str(value)) for name, value in found if value not in (None, "", 0)]


def _joined(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, "", "None"))


def _frames(result: Result) -> str:
    names = ("scheduled", "sent", "refused", "received", "lost", "duplicated", "reordered")
    return ", ".join(f"{name} {result[name]:,}" for name in names if isinstance(result.get(name), int))


def _cpus(cpus: dict[str, Any]) -> str:
    parts = [f"{who} on CPU {' '.join(map(str, cpus[who]))}" for who in ("switch", "endpoints") if cpus.get(who)]
    return ", ".join(parts)
