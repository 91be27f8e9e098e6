# SPDX-License-Identifier: BSD-3-Clause
"""Frozen facts about an endpoint, by which a rig makes it and a workload can use it. No behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_icbench.model.attach_target import AttachTarget
from pytest_icbench.model.path import FramePath, Side
from pytest_icbench.model.traffic import MTU_ETHERNET


@dataclass(frozen=True, slots=True)
class Address:
    """The addresses of an endpoint on the wire.

    Unless a topology says otherwise, IPs come from RFC 2544's 198.18.0.0/15 and MACs are locally administered.

    Attributes:
        prefix: length of the network's prefix in bits.
    """

    ip: str
    mac: str
    prefix: int = 16

    @staticmethod
    def of(pair: int, side: Side) -> Address:
        """Returns the address of one side of a pair, 1 to 254; ``a`` sends or asks, ``b`` receives or answers."""
        last = 1 if side == "a" else 2
        return Address(ip=f"198.18.{pair}.{last}", mac=f"02:00:00:00:{pair:02x}:{last:02x}")

    @property
    def other_side(self) -> Address:
        """The address of the other side of its pair, if ``of`` made both."""
        pair, last = (int(part) for part in self.ip.split(".")[2:])
        return Address.of(pair, "b" if last == 1 else "a")


@dataclass(frozen=True, slots=True)
class Veth:
    """A kernel interface inside the node.

    Attributes:
        interface: its name in the node.
        host_interface: name of the other end (on the host, or in the peer's node); None if it is not known.
    """

    address: Address
    interface: str
    host_interface: str | None
    mtu: int = MTU_ETHERNET
    kind: Literal["veth"] = "veth"
    serves: bool = False


@dataclass(frozen=True, slots=True)
class VhostUser:
    """A vhost-user socket.

    Attributes:
        socket: path in the node (the directory is bound into the node at the same path).
        role: ``front-end`` is net_virtio_user, ``back-end`` is net_vhost (only without a switch between).
        serves: whether the endpoint creates the socket, so that its peer waits for it.
        packed: whether its virtqueues are packed.
    """

    address: Address
    socket: str
    role: Literal["front-end", "back-end"] = "front-end"
    serves: bool = False
    packed: bool = False
    kind: Literal["vhost-user"] = "vhost-user"


@dataclass(frozen=True, slots=True)
class Memif:
    """A memif socket. ``role`` is DPDK's: the ``server`` creates the socket."""

    address: Address
    socket: str
    role: Literal["server", "client"] = "client"
    id: int = 0
    kind: Literal["memif"] = "memif"

    @property
    def serves(self) -> bool:
        return self.role == "server"


@dataclass(frozen=True, slots=True)
class Pci:
    """A PCI function given to the node (``pci`` is domain:bus:device.function)."""

    address: Address
    pci: str
    kind: Literal["pci"] = "pci"
    serves: bool = False


@dataclass(frozen=True, slots=True)
class Nic:
    """A kernel interface inside the node that DPDK drives, by ``af_packet`` or ``af_xdp``."""

    address: Address
    interface: str
    driver: Literal["af_packet", "af_xdp"]
    kind: Literal["nic"] = "nic"
    serves: bool = False


@dataclass(frozen=True, slots=True)
class Tap:
    """The character device of a macvtap link that is in the switch's namespace; ``device`` is its path in the node."""

    address: Address
    device: str
    kind: Literal["tap"] = "tap"
    serves: bool = False


#: In JSON ``kind`` tells the types apart.
Endpoint = Veth | VhostUser | Memif | Pci | Nic | Tap


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
