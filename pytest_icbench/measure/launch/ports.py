# SPDX-License-Identifier: BSD-3-Clause
"""The switch's own counters at its ports over one launch, and over several. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_icbench.model.launch import Launch, SwitchPort
from pytest_icbench.model.switch_facts import PortCounters

_COUNTERS = ("rx_packets", "tx_packets", "rx_dropped", "tx_dropped")
Ports = Sequence[PortCounters] | None


def between(before: Ports, after: Ports) -> tuple[SwitchPort, ...] | None:
    """Returns the difference of two readings; None without either. A counter that is missing or was reset is None."""
    if before is None or after is None:
        return None
    old = {port.index: port for port in before}
    return tuple(_combined(port.index, (old[port.index], port), _difference) for port in after if port.index in old)


def over_launches(launches: Sequence[Launch]) -> tuple[SwitchPort, ...] | None:
    """Returns the sum of the counters; None without launches, or if a launch has no counters."""
    counted = [launch.switch_counters for launch in launches if launch.switch_counters is not None]
    if not counted or len(counted) < len(launches):
        return None
    all_ports = [port for ports in counted for port in ports]
    return tuple(
        _combined(index, [port for port in all_ports if port.index == index], sum)
        for index in dict.fromkeys(port.index for port in all_ports)
    )


def _difference(values: Sequence[int]) -> int | None:
    before, after = values
    return after - before if after >= before else None


def _combined(
    index: int, ports: Sequence[PortCounters | SwitchPort], combine: Callable[[Sequence[int]], int | None]
) -> SwitchPort:
    counts: dict[str, int | None] = {}
    for name in _COUNTERS:
        values = [value for port in ports if (value := getattr(port, name)) is not None]
        counts[name] = combine(values) if len(values) == len(ports) else None
    return SwitchPort(index, **counts)
