# SPDX-License-Identifier: BSD-3-Clause
"""Identifies the states of a host by the distance between its CPUs. Pure.

A hypervisor moves virtual CPUs between the caches of a machine, and a frame that changes CPUs then takes another time
to arrive. The distance is one of a few times, which differ by factors. So states are separated at gaps between the
logarithms of the distances, and no limit depends on a processor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

#: Distances that differ by more than this factor are of two states. Of 1,816 readings on a virtual machine whose CPUs
#: moved between two caches, those of one state were 52 to 128 ns, those of the other 340 to 473. Launches are few, so
#: the gap has to be wider than those within a state. Two CPUs of one core have half the distance of two cores of one
#: cache.
LEAST_FACTOR = 1.9


def geometric_mean(values: Sequence[float]) -> float | None:
    """Returns the geometric mean of positive values; None without values."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def find_states(distances: Iterable[float]) -> list[list[float]]:
    """Returns positive distances by state, the nearest state first; each state in ascending order.

    A state ends where the next distance is more than ``LEAST_FACTOR`` times as long.
    """
    ordered = sorted(distances)
    if not ordered:
        return []
    states = [[ordered[0]]]
    for before, after in pairwise(ordered):
        if after > LEAST_FACTOR * before:
            states.append([])
        states[-1].append(after)
    return states


def same_state(one: float | None, other: float | None) -> bool:
    """Whether two distances are of one state. An unknown one matches every state."""
    return one is None or other is None or max(one, other) <= LEAST_FACTOR * min(one, other)


def has_changed(readings: Sequence[float]) -> bool:
    """Whether the state changed between readings."""
    return bool(readings) and not same_state(min(readings), max(readings))
