# SPDX-License-Identifier: BSD-3-Clause
"""The record of where a case's threads run. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Policy = Literal["dedicated", "cooperative"]


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPUs of a case's threads, by number.

    Attributes:
        switch: one CPU for each worker of the switch.
        endpoints: CPUs by endpoint index; all different under the policy ``dedicated``.
        service: CPUs of the control threads of the switch and of the harness.
        numa_node: NUMA node of the switch and the endpoints.
        yield_every: a sender's ``--yield`` (frames); a receiver's is 1. 0: no endpoint shares its CPU, and none yields.
        away: indexes of the endpoints on the second host, whose CPUs are that host's.
        functions: one CPU for each network function whose process polls.
        neighbour: one CPU for each process of the neighbour.
        there: placement of the second host, with its switch, endpoints, service and node.
        where: in words the L3 caches and NUMA nodes of the switch, the functions and the endpoints, and why no fewer.
    """

    policy: Policy
    switch: tuple[int, ...]
    endpoints: tuple[int, ...]
    service: tuple[int, ...]
    numa_node: int
    yield_every: int
    away: tuple[int, ...] = ()
    there: Placement | None = None
    functions: tuple[int, ...] = ()
    neighbour: tuple[int, ...] = ()
    where: str = field(default="", compare=False)

    @property
    def local(self) -> tuple[int, ...]:
        """The CPUs of the endpoints on this host."""
        return tuple(cpu for index, cpu in enumerate(self.endpoints) if index not in self.away)

    @property
    def shared(self) -> bool:
        """Whether two endpoints of one host have the same CPU."""
        places = [(index in self.away, cpu) for index, cpu in enumerate(self.endpoints)]
        return len(set(places)) < len(places)
