# SPDX-License-Identifier: BSD-3-Clause
"""``attach``: the path between containers that already run. It creates nothing and leaves the containers unchanged."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.node.attached_node import Target, find_target
from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.userspace_ports import MEMIF, VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.protocol import Attachment, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import attached_links
from pytest_icbench.host.net.attached_links import Interface, Reached, Way, find_barrier, find_way, interfaces
from pytest_icbench.host.node_files import open_in_root
from pytest_icbench.host.root import Root
from pytest_icbench.model.api_techniques import SOCKET_APIS
from pytest_icbench.model.endpoint import ATTACH, Address, AttachTarget, Endpoint, Memif, Pci, Veth, VhostUser
from pytest_icbench.model.path import FramePath

#: Port kinds: the natural one, those of sockets, and that of a PCI function.
INTERFACE = "interface"
VFIO = "vfio"
#: Sockets that leave an interface as it is; AF_XDP would give it a program.
_INTERFACE_APIS = tuple(api for api in SOCKET_APIS if api != "xdp")


@dataclass(frozen=True, slots=True)
class ResolvedEndpoint:
    """An endpoint of a running container, with its interface and address.

    Attributes:
        interface: None if frames go through a socket or a PCI function.
        address: the interface's address; without an interface the topology's.
        way: the route to its peer; None without an interface.
    """

    attached: AttachTarget
    target: Target
    address: Address
    interface: Interface | None = None
    way: Way | None = None


def resolve_endpoints(
    ends: Sequence[tuple[AttachTarget, Address]], *, port: str, raw: bool, mtu: int, root: Root
) -> list[ResolvedEndpoint]:
    """Resolves endpoints of running containers to interface and address; changes nothing.

    Args:
        ends: targets of the topology with their addresses there, by index.
        port: the case's port kind.
        raw: whether the workload makes whole frames itself.
        mtu: layer 3 MTU in bytes that the case's frames need.

    Raises ProvisionError with the reason if an endpoint is not usable.
    """
    places = [_resolve(attached, address, port, mtu, root) for attached, address in ends]
    if port != INTERFACE:
        return places
    _check_namespaces(places)
    path = FramePath.over(places)
    return [_add_way(place, places[path.peer(index)], raw) for index, place in enumerate(places)]


def _resolve(attached: AttachTarget, address: Address, port: str, mtu: int, root: Root) -> ResolvedEndpoint:
    name = attached.container
    given = "socket" if attached.socket is not None else "pci" if attached.pci is not None else "interface"
    wanted = "interface" if port == INTERFACE else "pci" if port == VFIO else "socket"
    if given != wanted and (given != "interface" or attached.interface is not None):
        ports = {"interface": INTERFACE, "pci": VFIO, "socket": "vhost-user, vhost-user-packed or memif"}[given]
        raise ProvisionError(f"{name}: the topology gives it {given}, not {wanted}: take --icbench-port {ports}")
    if given != wanted:
        raise ProvisionError(f"{name}: port {port} needs {wanted} in the topology: add it")
    target = find_target(attached)
    if attached.socket is not None:
        os.close(_open_socket(target, attached.socket))
        return ResolvedEndpoint(attached, target, address)
    if attached.pci is not None:
        _check_function(name, attached.pci, root)
        return ResolvedEndpoint(attached, target, address)
    interface = _find_interface(attached, target)
    addresses = [item for item in interface.addresses if attached.ip in (None, item[0])]
    if not addresses:
        has = ", ".join(ip for ip, _ in interface.addresses)
        sentence = f"does not have {attached.ip}, but {has}" if has else "has no IPv4 address"
        raise ProvisionError(f"{name}: its interface {interface.name} {sentence}: choose another")
    if interface.mtu < mtu:
        raise ProvisionError(
            f"{name}: its interface {interface.name} has an MTU of {interface.mtu} bytes, and frames need {mtu}: take"
            f" --icbench-packet-size up to {interface.mtu + 18}"
        )
    ip, prefix = addresses[0]
    return ResolvedEndpoint(attached, target, Address(ip, interface.mac, prefix), interface)


def _find_interface(attached: AttachTarget, target: Target) -> Interface:
    """Returns the named interface, or the only one that is up and has an address."""
    name, known = attached.container, interfaces(target.netns)
    names = ", ".join(interface.name for interface in known) or "none but loopback"
    if attached.interface is None:
        fit = [interface for interface in known if interface.up and interface.addresses]
        if attached.ip is not None:
            fit = [interface for interface in fit if attached.ip in (ip for ip, _ in interface.addresses)]
        if len(fit) != 1:
            which = "several interfaces are" if fit else "no interface is"
            address = attached.ip or "an IPv4 address"
            raise ProvisionError(f"{name}: {which} up with {address} (it has {names}): name one by interface")
        return fit[0]
    for interface in known:
        if interface.name == attached.interface:
            if not interface.up:
                raise ProvisionError(
                    f"{name}: its interface {interface.name} is down or has no carrier: `ip link set"
                    f" {interface.name} up` there, and at its other end"
                )
            return interface
    raise ProvisionError(f"{name}: there is no interface {attached.interface}; it has {names}")


def _open_socket(target: Target, path: str) -> int:
    """Opens the name of a socket as the container's processes see it: its links lead to no file of the host.

    Raises ProvisionError if nothing serves there.
    """
    try:
        descriptor = open_in_root(target.root, path)
    except OSError as error:
        raise ProvisionError(
            f"{target.name}: {path} cannot be used ({error.strerror}): start the switch that serves it"
        ) from None
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ProvisionError(f"{target.name}: {path} is not a socket")
    return descriptor


def _check_function(name: str, pci: str, root: Root) -> None:
    """Raises ProvisionError unless DPDK can drive a PCI function without a change."""
    device = f"/sys/bus/pci/devices/{pci}"
    if not root.exists(device):
        raise ProvisionError(f"{name}: there is no PCI function {pci} here")
    driver = root.path(f"{device}/driver").resolve().name if root.exists(f"{device}/driver") else "none"
    if driver != "vfio-pci":
        raise ProvisionError(
            f"{name}: the driver of PCI function {pci} is {driver}: bind it to vfio-pci, which DPDK needs"
        )


def _check_namespaces(places: Sequence[ResolvedEndpoint]) -> None:
    """Raises ProvisionError if both ends of a pair share a namespace, which their frames would not leave."""
    for a, b in FramePath.over(places).by_pair(places):
        if a.target.inode == b.target.inode:
            raise ProvisionError(
                f"{a.attached.container} and {b.attached.container} are in the same network namespace, as containers of"
                " one pod are: frames between them would not leave it, so take a container in another namespace"
            )


def _add_way(place: ResolvedEndpoint, peer: ResolvedEndpoint, raw: bool) -> ResolvedEndpoint:
    """Returns an endpoint with the route to its peer. Raises ProvisionError without a usable route."""
    assert place.interface is not None
    name, there = place.attached.container, peer.attached.container
    route = find_way(place.target.netns, peer.address.ip)
    if route is None:
        raise ProvisionError(
            f"{name} has no route to {there} ({peer.address.ip}): give it one, or take another address"
        )
    if route.interface != place.interface.name:
        raise ProvisionError(
            f"{name}: its route to {there} ({peer.address.ip}) is through {route.interface}, not"
            f" {place.interface.name}: name {route.interface} by interface, or use addresses of one network"
        )
    if raw and route.gateway is not None:
        raise ProvisionError(
            f"{name}: its route to {there} ({peer.address.ip}) is through the router {route.gateway}, where raw frames"
            " do not go: take --icbench-api udp or udp-mmsg"
        )
    return ResolvedEndpoint(place.attached, place.target, place.address, place.interface, way=route)


class AttachedPath(kernel.KernelSwitch):
    """Any path between running containers: bridges, routers, a virtual switch with its sockets, a card."""

    name = ATTACH
    by_name_only = True
    learns = False
    ports: ClassVar[tuple[str, ...]] = (INTERFACE, VHOST_USER, VHOST_USER_PACKED, MEMIF, VFIO)
    apis: ClassVar[tuple[str, ...]] = (*_INTERFACE_APIS, "dpdk")
    segments = False

    def __init__(self) -> None:
        self._places: list[ResolvedEndpoint] = []
        self._strangers: list[tuple[ResolvedEndpoint, tuple[str, ...]]] = []
        self._mtu = 0
        self._sockets: list[int] = []

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        """Returns sockets for interfaces, DPDK for all other ports."""
        return _INTERFACE_APIS if port == INTERFACE else ("dpdk",)

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the kernel's release. The containers are checked with the topology."""
        return SwitchFacts(version=kernel.kernel_release())

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Returns the existing endpoints. Raises ProvisionError if one does not exist or is not usable."""
        self.session, self.cpus, self._mtu = session, spec.endpoint_cpus, spec.mtu
        ends = [(attachment.attached, attachment.address) for attachment in attachments if attachment.attached]
        if len(ends) < len(attachments):
            raise ProvisionError(f"{ATTACH} has an endpoint without a running container")
        self._places = resolve_endpoints(ends, port=spec.port, raw=False, mtu=spec.mtu, root=session.root)
        if spec.port == INTERFACE:
            self._mark_neighbours(session)
        return [self._endpoint(place, spec) for place in self._places]

    def _mark_neighbours(self, session: HostSession) -> None:
        """Records the addresses that will become neighbours only by frames between the endpoints."""
        path = FramePath.over(self._places)
        for index, place in enumerate(self._places):
            assert place.interface is not None
            assert place.way is not None
            peer, target = self._places[path.peer(index)], place.target
            known = attached_links.neighbours(place.interface.name, target.netns)
            strangers = tuple({place.way.gateway or peer.address.ip, peer.address.ip} - known)
            if strangers:
                attached_links.keep_neighbours(session, place.interface.name, target.netns, target.inode, strangers)
                self._strangers.append((place, strangers))

    def _endpoint(self, place: ResolvedEndpoint, spec: SwitchSpec) -> Endpoint:
        if place.interface is not None:
            return Veth(place.address, place.interface.name, None, spec.mtu)
        if place.attached.socket is None:
            assert place.attached.pci is not None
            return Pci(place.address, place.attached.pci)
        self._sockets.append(_open_socket(place.target, place.attached.socket))
        # The workload connects by this descriptor, so that nobody can put another socket in its place meanwhile.
        path = f"/proc/{os.getpid()}/fd/{self._sockets[-1]}"
        if spec.port == MEMIF:
            return Memif(place.address, path, role="client")
        return VhostUser(place.address, path, packed=spec.port == VHOST_USER_PACKED)

    def facts(self) -> SwitchFacts:
        """Returns the kernel's release, and the interface of each endpoint."""
        interfaces = {
            place.attached.container: place.interface.name for place in self._places if place.interface is not None
        }
        return SwitchFacts(version=kernel.kernel_release(), config=interfaces)

    def check(self) -> None:
        """Raises ProvisionError if a container has ended."""
        for place in self._places:
            if place.target.has_ended:
                raise ProvisionError(f"{place.attached.container} has ended during the run: start it, and run again")

    def fault(self) -> str | None:
        """Returns what stops the kernel's own packets between the ends of a pair, in either direction."""
        ends = [
            Reached(place.attached.container, place.target.netns, place.interface, place.address.ip)
            for place in self._places
            if place.interface is not None
        ]
        for a, b in FramePath.over(ends).by_pair(ends):
            if barrier := find_barrier(a, b, self._mtu) or find_barrier(b, a, self._mtu):
                return barrier
        return None

    def stop(self) -> None:
        """Removes the neighbours that the kernel has learned. Nothing else was changed."""
        assert self.session is not None or not self._strangers
        while self._strangers and self.session is not None:
            place, strangers = self._strangers.pop()
            assert place.interface is not None
            attached_links.forget_neighbours(
                self.session, place.interface.name, place.target.netns, place.target.inode, strangers
            )
        while self._sockets:
            os.close(self._sockets.pop())
        self._places.clear()
