# SPDX-License-Identifier: BSD-3-Clause
"""Who and where an endpoint is, beyond its CPU: what a rig is told, by endpoint index."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.path import FramePath


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """One endpoint's.

    Attributes:
        address: on the wire.
        name: of its container, None where nobody gave it one.
        cpus: all CPUs of its container; empty: its workload's alone.
        socket: file name of its port's socket, None for the switch's.
        function: its virtual function, by PCI address or interface; None: one that is free.
        device: the function's device node in /dev/vfio, as expected; None: whichever it is.
    """

    address: Address
    name: str | None = None
    cpus: tuple[int, ...] = ()
    socket: str | None = None
    function: str | None = None
    device: str | None = None


def default_endpoint_specs(pairs: int) -> list[EndpointSpec]:
    """Those of a case without a topology."""
    path = FramePath(pairs)
    return [EndpointSpec(Address.of(path.pair(index), path.side(index))) for index in path.endpoints]
