# SPDX-License-Identifier: BSD-3-Clause
"""The main value of a measurement in one state of the host. Facts only, pure."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.stats.quantiles import Estimate


@dataclass(frozen=True, slots=True)
class StateLevel:
    """The launches of a case in one state of the host.

    Attributes:
        distance_ns: geometric mean over the launches of the distance between the CPUs that pass frames, in ns.
        launches: their number.
        value: the main value, median over these launches, in its unit; null if no launch has one.
        values: the main value of each launch that has one.
    """

    distance_ns: float
    launches: int
    value: Estimate | None
    values: tuple[float, ...] = ()
