# SPDX-License-Identifier: BSD-3-Clause
"""Frozen facts about one attachment point: what a workload needs to know to use it. No behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_icbench.model.path import Side
from pytest_icbench.model.traffic import MTU_ETHERNET


@dataclass(frozen=True, slots=True)
class Address:
    """Who an endpoint is on the wire.

    Unless a topology says otherwise IPs come from RFC 2544's 198.18.0.0/15 and MACs are locally administered.

    Attributes:
        prefix: length of the network's prefix in bits.
    """

    ip: str
    mac: str
    prefix: int = 16

    @staticmethod
    def of(pair: int, side: Side) -> Address:
        """Address of one side of a pair: ``a`` sends or asks, ``b`` receives or answers. ``pair`` is 1 to 254."""
        last = 1 if side == "a" else 2
        return Address(ip=f"198.18.{pair}.{last}", mac=f"02:00:00:00:{pair:02x}:{last:02x}")

    @property
    def other_side(self) -> Address:
        """Address of the other side of its pair, where ``of`` made both."""
        pair, last = (int(part) for part in self.ip.split(".")[2:])
        return Address.of(pair, "b" if last == 1 else "a")


@dataclass(frozen=True, slots=True)
class Veth:
    """A kernel interface inside the node.

    Attributes:
        interface: its name in the node.
        host_interface: the other end's name (on the host, or in the peer's node), None if there is none to count on.
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
        socket: path as the node sees it (the directory is bound into the node at the same path).
        role: ``front-end`` is net_virtio_user, ``back-end`` is net_vhost (only without a switch between).
        serves: whether the endpoint creates the socket; then it is started before its peer.
        packed: packed virtqueues.
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


#: Told apart by ``kind`` where they are JSON.
Endpoint = Veth | VhostUser | Memif | Pci | Nic
