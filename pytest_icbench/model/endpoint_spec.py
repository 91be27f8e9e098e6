# SPDX-License-Identifier: BSD-3-Clause
"""The specification of an endpoint for a rig: its address, its container and its port, without its CPU."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.model.attach_target import AttachTarget
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.path import FramePath


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """The specification of one endpoint.

    Attributes:
        address: its addresses on the wire.
        name: name of its container; None for a generated one.
        cpus: all CPUs of its container; empty for the CPU of its workload alone.
        socket: file name of its port's socket; None for the switch's choice.
        function: its virtual function, by PCI address or interface; None for any that is free.
        device: the expected device node of the function in /dev/vfio; None for any.
        attached: the container that it is in, if that runs already; None: one is made.
    """

    address: Address
    name: str | None = None
    cpus: tuple[int, ...] = ()
    socket: str | None = None
    function: str | None = None
    device: str | None = None
    attached: AttachTarget | None = None


def default_endpoint_specs(pairs: int) -> list[EndpointSpec]:
    """Returns the specifications of a case without a topology, by endpoint index."""
    path = FramePath(pairs)
    return [EndpointSpec(Address.of(path.pair(index), path.side(index))) for index in path.endpoints]
