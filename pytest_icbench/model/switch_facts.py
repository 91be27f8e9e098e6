# SPDX-License-Identifier: BSD-3-Clause
"""The facts that a running switch reports: its version, and its work since it started. Frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

#: What stands for the rig's directory, whose name is another one in each session.
RIG = "RIG"


@dataclass(frozen=True, slots=True)
class SwitchFacts:
    """The facts for a result's treatment: version, configuration and build flags as the switch reports them.

    ``program`` is the path that probing found. To a resumed run another program of the same version is another switch.
    ``conditions`` are facts of this start alone, such as the time it took, for a result's conditions.
    """

    version: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    program: str | None = None
    conditions: Mapping[str, float] = field(default_factory=dict)

    def in_rig(self, directory: str) -> SwitchFacts:
        """Returns the facts with ``RIG`` for the rig's directory: the same configuration reads the same next time."""
        return replace(self, config=_replaced(self.config, directory))


@dataclass(frozen=True, slots=True)
class PortCounters:
    """The counters of a port since it exists, from the switch's side: ``rx`` came from the endpoint.

    ``tx`` was given to the endpoint, without ``tx_dropped``. None where the switch does not count.
    """

    index: int
    rx_packets: int | None
    tx_packets: int | None
    rx_dropped: int | None = None
    tx_dropped: int | None = None


@dataclass(frozen=True, slots=True)
class Busy:
    """The work of a switch since it started; the difference of two gives the busy share and the cycles per frame.

    Attributes:
        busy_cycles, idle_cycles: cycles of all workers; ``idle_cycles`` is None where only busy cycles are counted.
        busy_ns: time instead of cycles, for a switch without workers of its own (the kernel's).
        workers: number of threads that poll all the time; with it the busy share follows from ``busy_cycles`` alone.
        far: work of the other host's switch, for a path over two hosts.
        wakeups: times that workers slept, and were woken; None for workers that poll, or where it is not known.
        frames: frames that each worker took in, by its CPU; None where that is not reported.
    """

    busy_cycles: int | None = None
    idle_cycles: int | None = None
    busy_ns: int | None = None
    workers: int = 0
    far: Busy | None = None
    wakeups: int | None = None
    frames: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Batches:
    """The frames that all workers handled since the switch started, and their calls: frames / calls is a batch."""

    frames: int
    calls: int


def _replaced(value: Any, directory: str) -> Any:
    if isinstance(value, str):
        return value.replace(directory, RIG)
    if isinstance(value, Mapping):
        return {key: _replaced(item, directory) for key, item in value.items()}
    return [_replaced(item, directory) for item in value] if isinstance(value, list | tuple) else value
