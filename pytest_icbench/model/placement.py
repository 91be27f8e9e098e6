# SPDX-License-Identifier: BSD-3-Clause
"""The record of where a case's threads run. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Policy = Literal["dedicated", "cooperative"]


@dataclass(frozen=True, slots=True)
class Placement:
    """CPUs by number.

    Attributes:
        switch: one for each worker of the switch.
        endpoints: by attachment index (senders even, receivers odd); in ``dedicated`` all different.
        service: control threads of the switch and the harness.
        numa_node: of switch and endpoints.
        yield_every: a sender's ``--yield`` (frames); a receiver's is 1. 0: no endpoint shares its CPU, nobody yields.
        away: indexes of the endpoints on the second host, whose CPUs are that host's.
        there: of the second host: its own switch, endpoints, service and node.
    """

    policy: Policy
    switch: tuple[int, ...]
    endpoints: tuple[int, ...]
    service: tuple[int, ...]
    numa_node: int
    yield_every: int
    away: tuple[int, ...] = ()
    there: Placement | None = None

    @property
    def own(self) -> tuple[int, ...]:
        """CPUs of the endpoints on this host."""
        return tuple(cpu for index, cpu in enumerate(self.endpoints) if index not in self.away)

    @property
    def shared(self) -> bool:
        """Whether two endpoints of one host have the same CPU."""
        places = [(index in self.away, cpu) for index, cpu in enumerate(self.endpoints)]
        return len(set(places)) < len(places)
