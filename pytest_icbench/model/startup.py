# SPDX-License-Identifier: BSD-3-Clause
"""Containers created one after the other until there are many: how long each takes, and what idle ones cost. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Self

from pytest_icbench.stats.quantiles import quantile

#: The floor of every kind: a process that is started on the host, without any container.
FORK = "fork"
#: The most containers of one case.
MOST_CONTAINERS = 10_000
#: The longest time between new clients.
MOST_EVERY_MS = 10_000
_LABEL = re.compile(r"([\w.]+):(\d{1,5})(?::(\d{1,5})ms)?")


@dataclass(frozen=True, slots=True)
class Crowd:
    """The containers of a case: ``count`` of a kind of node, or processes (``fork``).

    Attributes:
        every_ms: the time between new clients, each of whose first frame creates its container; None: each is created
            when the one before has answered.
    """

    kind: str
    count: int
    every_ms: int | None = None

    @classmethod
    def of(cls, label: str) -> Self | None:
        """Returns the crowd of a label (``netns:1000``, ``netns:200:25ms``); None if the text is none."""
        match = _LABEL.fullmatch(label)
        if match is None or not 1 <= int(match[2]) <= MOST_CONTAINERS:
            return None
        every_ms = None if match[3] is None else int(match[3])
        if every_ms is not None and (match[1] == FORK or not 1 <= every_ms <= MOST_EVERY_MS):
            return None
        return cls(match[1], int(match[2]), every_ms)

    @property
    def label(self) -> str:
        """The text in a case's id: ``netns:1000``."""
        return f"{self.kind}:{self.count}" + ("" if self.every_ms is None else f":{self.every_ms}ms")


@dataclass(frozen=True, slots=True)
class Idle:
    """The cost of the first ``containers`` of a case while nothing happens in them.

    Attributes:
        memory_bytes: memory of all their processes, of shared memory their part, plus the growth of the kernel's
            unreclaimable memory since the first one was begun, whatever its cause.
        cpu_share: CPU time of all their processes over time.
    """

    containers: int
    memory_bytes: int
    cpu_share: float


@dataclass(frozen=True, slots=True)
class Retirement:
    """The end of a container whose client was silent while others came. Times are in ns.

    Attributes:
        took_ns: time to remove it.
        silent_ns: from its client's last frame until it was gone: the silence, the wait for a moment in which no
            container is created, and the removal.
    """

    took_ns: int
    silent_ns: int


@dataclass(frozen=True, slots=True)
class Startups:
    """The containers of a case. Lists are in the order of creation unless they say otherwise. All times are in ns.

    Attributes:
        asked: number of containers that the case asks for; one that does not come up ends the list.
        total_ns: time to create each: the sum of its phases.
        prepared_ns: cgroups, namespaces, mounts, up to the start of its first process; 0 for a kind that does not
            report it.
        process_ns: start of its first process, for ``lxc`` with all that liblxc does before.
        network_ns: a veth pair into it, configured, until both ends transmit.
        answered_ns: until the first frame from outside is answered.
        first_trip_ns: round trip of each client's first frame, from the moment at which it was due, in the order of
            the clients; empty where there are none. 0 for a client without an answer.
        retired: containers that were removed while clients came, because their own client was silent; in the order of
            removal.
        removed_ns: time to remove each of the remaining containers, the last one first.
        idle: what they cost when a tenth of them was there, two tenths, and so on.
    """

    kind: str
    asked: int
    total_ns: tuple[int, ...] = ()
    prepared_ns: tuple[int, ...] = ()
    process_ns: tuple[int, ...] = ()
    network_ns: tuple[int, ...] = ()
    answered_ns: tuple[int, ...] = ()
    removed_ns: tuple[int, ...] = ()
    first_trip_ns: tuple[int, ...] = ()
    idle: tuple[Idle, ...] = ()
    retired: tuple[Retirement, ...] = ()

    def first_trip_quantile_ns(self, share: float) -> float | None:
        """Returns a quantile of the clients' first round trips; one without an answer is slower than all others.

        None where there are no clients, or where the quantile falls to one without an answer.
        """
        trips = [trip or math.inf for trip in self.first_trip_ns]
        value = quantile(trips, share) if trips else math.inf
        return value if math.isfinite(value) else None

    @property
    def phases(self) -> dict[str, tuple[int, ...]]:
        """The times of each phase by its name in reports."""
        return {
            "cgroups and mounts": self.prepared_ns,
            "process": self.process_ns,
            "network": self.network_ns,
            "first answer": self.answered_ns,
        }
