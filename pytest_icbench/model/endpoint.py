# SPDX-License-Identifier: BSD-3-Clause
"""Frozen facts about an endpoint, by which a rig makes or finds it and a workload can use it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pytest_icbench.model.path import FramePath, Side
from pytest_icbench.model.traffic import MTU_ETHERNET

#: The name of the switch that stands for the path that is there.
ATTACH = "attach"
#: What can be attached to: a container by its name or id, a process, a network namespace.
KINDS = ("docker", "podman", "lxc", "pid", "netns")


@dataclass(frozen=True, slots=True)
class AttachTarget:
    """An endpoint in what runs already.

    Attributes:
        container: kind and name: ``docker:web1``, ``pid:4711``, ``netns:/run/netns/x``.
        interface: the interface that frames go through; None: the only one that suits.
        ip: the address of the interface that is used; None: its first one.
        socket: path of the vhost-user or memif socket as the container sees it; None: frames do not go through one.
        pci: the PCI function that DPDK drives; None: frames do not go through one.
    """

    container: str
    interface: str | None = None
    ip: str | None = None
    socket: str | None = None
    pci: str | None = None

    @property
    def kind(self) -> str:
        """One of ``KINDS``."""
        return self.container.partition(":")[0]

    @property
    def target(self) -> str:
        """What follows the kind: a name, a number or a path."""
        return self.container.partition(":")[2]

    def problem(self) -> str | None:
        """Returns a clause on what is wrong with ``container``; None if it is well-formed."""
        forms = "docker:NAME, podman:NAME, lxc:NAME, pid:NUMBER or netns:PATH"
        if self.kind not in KINDS or not self.target:
            return f"'{self.container}' names nothing to attach to: write {forms}"
        if self.kind == "pid" and not re.fullmatch("0{0,9}[1-9][0-9]{0,8}", self.target):
            return f"'{self.target}' is no process id: write pid:NUMBER"
        if self.kind == "netns" and not self.target.startswith("/"):
            return f"'{self.target}' is no absolute path: write netns:/run/netns/{self.target}"
        if self.kind in ("docker", "podman", "lxc") and self.target.startswith("-"):
            return f"'{self.target}' is no name of a container: write {forms}"
        return None


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
