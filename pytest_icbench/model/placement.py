# SPDX-License-Identifier: BSD-3-Clause
"""The record of where a case's threads run, and the state of those CPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Literal

from pytest_icbench.model.path import FramePath
from pytest_icbench.stats.states import geometric_mean

Policy = Literal["dedicated", "cooperative"]
#: Two different CPUs that pass frames to each other, the lower number first.
CpuPair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CpuState:
    """How near to each other, and how undisturbed, the CPUs of a placement are at one moment.

    Attributes:
        distance_ns: time of a cache line from one CPU to another and back, in ns, as the geometric mean over the pairs
            of CPUs; None where it is not known.
        work_ns: time of a fixed piece of independent instructions on one CPU, in ns, as the geometric mean over the
            CPUs; None where it is not known. A sibling hyperthread that is busy makes it longer.
    """

    distance_ns: float | None = None
    work_ns: float | None = None


def of_readings(states: Iterable[CpuState]) -> tuple[tuple[float, ...], CpuState]:
    """Returns the distances of a launch's readings in their order, and the geometric means over its readings."""
    known = list(states)
    distances = tuple(state.distance_ns for state in known if state.distance_ns is not None)
    work = [state.work_ns for state in known if state.work_ns is not None]
    return distances, CpuState(geometric_mean(distances), geometric_mean(work))


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
        noisy_neighbour: one CPU for each process of the noisy neighbour.
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
    noisy_neighbour: tuple[int, ...] = ()
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

    @property
    def hand_overs(self) -> tuple[CpuPair, ...]:
        """The pairs of different CPUs of this host that pass frames to each other.

        With workers, each worker is paired with each endpoint and each function, since the switch chooses which worker
        polls a port. Without workers, frames pass from one end of a pair through its functions to the other end.
        """
        if self.switch:
            return _different(product(self.switch, (*self.local, *self.functions)))
        path = FramePath.over(self.endpoints)
        chain = len(self.functions) // max(path.pairs, 1)
        hops: list[CpuPair] = []
        for pair in path.numbers:
            leader, follower = ([] if end in self.away else [self.endpoints[end]] for end in path.ends(pair))
            hops += pairwise([*leader, *self.functions[(pair - 1) * chain : pair * chain], *follower])
        return _different(hops)


def _different(hops: Iterable[CpuPair]) -> tuple[CpuPair, ...]:
    return tuple(sorted({(min(hop), max(hop)) for hop in hops if hop[0] != hop[1]}))
