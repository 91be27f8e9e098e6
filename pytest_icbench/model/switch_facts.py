# SPDX-License-Identifier: BSD-3-Clause
"""What a running switch tells of itself: which one it is, and what it has done since it exists. Frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SwitchFacts:
    """What goes into a result's treatment: version, configuration, build flags as the switch tells them.

    ``program``: path of the one that probing found; another one of the same version is another switch to a run that is
    resumed.
    """

    version: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    program: str | None = None


@dataclass(frozen=True, slots=True)
class PortCounters:
    """A port's own counters since it exists, from the switch's side: ``rx`` is what came from the endpoint.

    ``tx`` is what was given to it, without ``tx_dropped``. None where the switch does not tell.
    """

    index: int
    rx_packets: int | None
    tx_packets: int | None
    rx_dropped: int | None = None
    tx_dropped: int | None = None


@dataclass(frozen=True, slots=True)
class Busy:
    """Work of the switch since it exists: a difference of two gives the busy share and the cycles per frame.

    Attributes:
        busy_cycles, idle_cycles: of all workers; ``idle_cycles`` None where only the busy ones are counted.
        busy_ns: time instead of cycles, of a switch that has no workers of its own (the kernel's).
        workers: threads that poll all the time; with them the busy share follows from ``busy_cycles`` alone.
        far: of a path over two hosts, the other host's half.
    """

    busy_cycles: int | None = None
    idle_cycles: int | None = None
    busy_ns: int | None = None
    workers: int = 0
    far: Busy | None = None


@dataclass(frozen=True, slots=True)
class Batches:
    """Frames that all workers handled since the switch exists, and in how many calls: their quotient is a batch."""

    frames: int
    calls: int
