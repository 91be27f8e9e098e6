# SPDX-License-Identifier: BSD-3-Clause
"""The state of the CPUs that measure, as short probes before and after a launch find it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_icbench.stats.states import geometric_mean

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
