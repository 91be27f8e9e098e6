# SPDX-License-Identifier: BSD-3-Clause
"""Measurements with launches and facts around them, for tests of baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_icbench.gate.entry import Entry, SessionValues, make_entry
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.stats.intervals import over_launches
from pytest_icbench.store import baselines
from tests.measurements import measurement

HOST = {"machine": "9bce71e4", "cpu_model": "Example(R) CPU 9000", "cores": 8}
LAUNCHES = (4.97e6, 5.0e6, 5.01e6, 5.02e6, 4.99e6, 5.03e6, 4.98e6, 5.0e6)


def launch(pps: float, index: int = 0, cycles: float | None = None) -> Launch:
    return Launch(index, 1.7e9, 1.0, 0.1, pps, pps, 0.0, False, (), cycles_per_packet=cycles)


def with_cycles(pps: Sequence[float], cycles: Sequence[float], **changed: Any) -> Measurement:
    """Returns a measurement of a switch that counts its cycles a frame in each launch."""
    median = over_launches(cycles)
    launches = zip(pps, cycles, strict=True)
    facts: dict[str, Any] = {
        "per_launch": tuple(launch(rate, index, spent) for index, (rate, spent) in enumerate(launches)),
        "cycles_per_packet": median.value,
        "cycles_per_packet_low": median.low,
        "cycles_per_packet_high": median.high,
    }
    return measured(launches=pps, **(facts | changed))


def control(launches: int = len(LAUNCHES), factor: float = 1.0) -> tuple[Launch, ...]:
    """Returns launches of a reference link that is twice as fast."""
    return tuple(launch(2 * 5e6 * factor, index) for index in range(launches))


def measured(case: Case | None = None, launches: Sequence[float] = LAUNCHES, **changed: Any) -> Measurement:
    """Returns a measurement on HOST with the interval of its launches and with a reference link."""
    found = over_launches(launches)
    facts: dict[str, Any] = {
        "throughput_pps": found.value,
        "throughput_pps_low": found.low,
        "throughput_pps_high": found.high,
        "per_launch": tuple(launch(pps, index) for index, pps in enumerate(launches)),
        "per_reference_launch": control(len(launches)),
        "launches": len(launches),
        "duration_s": 1.5 * len(launches),
        "started_at": 1.7e9,
        "identity": HOST,
        "treatment": {"switch": {"version": "3.1"}, "node": "lxc"},
        "conditions": {"governors": ["performance"], "turbo": False, "load_1min": 0.5},
        "settings": {"duration_s": 1.0},
    }
    return measurement(case or Case("ovs"), **(facts | changed))


def scaled(factor: float) -> tuple[float, ...]:
    return tuple(value * factor for value in LAUNCHES)


def entry(case: Case | None = None, launches: Sequence[float] = LAUNCHES, **changed: Any) -> Entry:
    found = make_entry(measured(case, launches, **changed))
    assert found is not None
    return found


#: Earlier sessions over the newest one; with it their geometric mean is 1.
ALIKE = (1.001, 1 / 1.001, 1.001, 1 / 1.001, 1.0)


def with_sessions(newest: Entry, factors: Sequence[float] = ALIKE, control: Sequence[float] | None = None) -> Entry:
    """Returns the entry with an earlier session for each factor.

    Args:
        factors: the figures of each earlier session over the newest one's.
        control: the control of each earlier session over the newest one's; as the figures by default.
    """
    values, earlier = newest.values, {}
    for number, (factor, beside) in enumerate(zip(factors, control or factors, strict=True), start=1):
        earlier[f"2023-11-{number:02}T00:00:00Z"] = SessionValues(
            {name: value * factor for name, value in values.values.items()},
            None if values.control is None else values.control * beside,
            {name: value * factor / beside for name, value in values.against.items()},
        )
    return replace(newest, earlier=earlier)


def keep_sessions(directory: Path, name: str = "main") -> None:
    """Gives each case of a saved baseline earlier sessions."""
    baselines.save(directory, name, map(with_sessions, baselines.load(directory, name).entries))
