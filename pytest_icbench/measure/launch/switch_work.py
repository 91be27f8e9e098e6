# SPDX-License-Identifier: BSD-3-Clause
"""Computes the work of the switch and of the hardware between two moments of a launch. Pure but for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_icbench.errors import ConnectionLost, DriverFault, ProvisionError
from pytest_icbench.model.launch import Launch, SwitchPort
from pytest_icbench.model.switch_facts import Batches, Busy, PortCounters

Counted = Mapping[str, Mapping[str, int]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a switch: busy share of its workers, busy cycles and hardware events per frame, frames per call, the
    frames that each of several workers took in, by CPU, and how often workers that sleep were woken, per second.

    None where a figure is not known. Over two hosts the busy share is the busier half's; the others are this host's.
    """

    busy_share: float | None = None
    cycles_per_packet: float | None = None
    hardware: Mapping[str, Any] | None = None
    vectors_per_call: float | None = None
    frames_by_core: dict[str, int] | None = None
    wakeups_per_s: float | None = None


class WorkTrack:
    """Takes two samples: when measuring begins, and just before the senders end.

    Args:
        busy, hardware, batches: read the counters; None where there are none.
        check: raises ProvisionError if the switch is dead. A switch that lives but does not answer hangs, which its
            frames will show. Then its work is not known, and it is not asked again.
    """

    def __init__(
        self,
        busy: Callable[[], Busy | None],
        hardware: Callable[[], Counted | None],
        batches: Callable[[], Batches | None],
        check: Callable[[], None],
    ) -> None:
        self._busy_reader = busy
        self._hardware_reader = hardware
        self._batches_reader = batches
        self._check = check
        self._hangs = False
        self._batches: list[Batches] = []
        self._busy: list[tuple[float, Busy]] = []
        self._hardware: list[tuple[float, Counted]] = []

    def sample(self) -> None:
        """Samples the switch, then the hardware, each with the moment of its answer."""
        busy = self.ask(self._busy_reader)
        if busy is not None:
            self._busy.append((time.monotonic(), busy))
        batches = self.ask(self._batches_reader)
        if batches is not None:
            self._batches.append(batches)
        counted = self._hardware_reader()
        if counted is not None:
            self._hardware.append((time.monotonic(), counted))

    def ask(self, question: Callable[[], T | None]) -> T | None:
        """Returns the switch's answer; None without one, now or before. Raises ProvisionError if it is dead."""
        if self._hangs:
            return None
        try:
            return question()
        except (ConnectionLost, DriverFault):
            raise
        except ProvisionError:
            self._check()
            self._hangs = True
            return None

    def between(self, throughput_pps: float, tsc_hz: int | None) -> Work:
        """Returns the work between the samples.

        Args:
            throughput_pps: frames per second that the path delivered.
            tsc_hz: frequency of the TSC, in which cycles are counted; None where it is not known.
        """
        return Work(
            *self._switch(throughput_pps, tsc_hz),
            self._events(throughput_pps),
            self._vectors(),
            self._by_core(),
            self._wakeups_per_s(),
        )

    def _wakeups_per_s(self) -> float | None:
        if len(self._busy) < 2:
            return None
        (begin, first), (end, last) = self._busy[0], self._busy[-1]
        wakeups = _difference(first.wakeups, last.wakeups)
        return None if wakeups is None else wakeups / (end - begin)

    def _vectors(self) -> float | None:
        if len(self._batches) < 2:
            return None
        calls = self._batches[-1].calls - self._batches[0].calls
        return (self._batches[-1].frames - self._batches[0].frames) / calls if calls > 0 else None

    def _by_core(self) -> dict[str, int] | None:
        if len(self._busy) < 2:
            return None
        before, after = self._busy[0][1].frames, self._busy[-1][1].frames
        if before is None or after is None or len(after) < 2:
            return None
        return {cpu: frames - before.get(cpu, 0) for cpu, frames in after.items()}

    def _switch(self, pps: float, tsc_hz: int | None) -> tuple[float | None, float | None]:
        if len(self._busy) < 2:
            return None, None
        (begin, first), (end, last) = self._busy[0], self._busy[-1]
        share, busy = _worked(first, last, end - begin, tsc_hz)
        if first.far is not None and last.far is not None:
            far, _ = _worked(first.far, last.far, end - begin, tsc_hz)
            share = None if share is None or far is None else max(share, far)
        packets = pps * (end - begin)
        return share, busy / packets if busy is not None and packets > 0 else None

    def _events(self, pps: float) -> Mapping[str, Any] | None:
        if len(self._hardware) < 2:
            return None
        (begin, first), (end, last) = self._hardware[0], self._hardware[-1]
        packets = pps * (end - begin)
        if packets <= 0:
            return None
        return {
            part: {event: (last[part][event] - first[part][event]) / packets for event in first[part]}
            for part in first
            if part in last
        }


def _worked(first: Busy, last: Busy, seconds: float, tsc_hz: int | None) -> tuple[float | None, float | None]:
    """Returns busy share and busy cycles between two readings of one switch, ``seconds`` apart."""
    busy = _difference(first.busy_cycles, last.busy_cycles)
    idle = _difference(first.idle_cycles, last.idle_cycles)
    busy_ns = _difference(first.busy_ns, last.busy_ns)
    if busy is None and busy_ns is not None and tsc_hz:
        busy = busy_ns * tsc_hz / 1e9
    if busy is None:
        return None, None
    total = None
    if idle is not None:
        total = busy + idle
    elif last.workers and tsc_hz:
        total = seconds * tsc_hz * last.workers
    return min(busy / total, 1.0) if total else None, busy


def _difference(first: int | None, last: int | None) -> float | None:
    return None if first is None or last is None else last - first


_COUNTERS = ("rx_packets", "tx_packets", "rx_dropped", "tx_dropped")
Ports = Sequence[PortCounters] | None


def ports_between(before: Ports, after: Ports) -> tuple[SwitchPort, ...] | None:
    """Returns the difference of two readings; None without either. A counter that is missing or was reset is None."""
    if before is None or after is None:
        return None
    old = {port.index: port for port in before}
    return tuple(_combined_port(port.index, (old[port.index], port), _counted) for port in after if port.index in old)


def ports_over_launches(launches: Sequence[Launch]) -> tuple[SwitchPort, ...] | None:
    """Returns the sum of the counters; None without launches, or if a launch has no counters."""
    counted = [launch.switch_counters for launch in launches if launch.switch_counters is not None]
    if not counted or len(counted) < len(launches):
        return None
    all_ports = [port for ports in counted for port in ports]
    return tuple(
        _combined_port(index, [port for port in all_ports if port.index == index], sum)
        for index in dict.fromkeys(port.index for port in all_ports)
    )


def _counted(values: Sequence[int]) -> int | None:
    before, after = values
    return after - before if after >= before else None


def _combined_port(
    index: int, ports: Sequence[PortCounters | SwitchPort], combine: Callable[[Sequence[int]], int | None]
) -> SwitchPort:
    counts: dict[str, int | None] = {}
    for name in _COUNTERS:
        values = [value for port in ports if (value := getattr(port, name)) is not None]
        counts[name] = combine(values) if len(values) == len(ports) else None
    return SwitchPort(index, **counts)
