# SPDX-License-Identifier: BSD-3-Clause
"""Where the endpoints of a topology are that run already, each with its address; or one sentence on why not.

Looks only: both before a run, so that nothing has changed by then, and when a rig is made.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.driver.node.attached.target import Target, find
from pytest_icbench.driver.switch.common.ports import SUN_PATH_MAX
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.net.attached_links import Interface, Way, find_way, interfaces
from pytest_icbench.host.root import Root
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.existing import Existing
from pytest_icbench.model.path import FramePath

#: Port kinds: the natural one, those of sockets, and that of a PCI function.
INTERFACE = "interface"
VFIO = "vfio"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an endpoint.

    Attributes:
        interface: None if frames go through a socket or a PCI function.
        address: that of the interface, else the topology's.
        socket: path of the socket on this host.
        way: the way to its peer, None without an interface.
    """

    existing: Existing
    target: Target
    address: Address
    interface: Interface | None = None
    socket: Path | None = None
    way: Way | None = None


def find_places(ends: Sequence[tuple[Existing, Address]], *, port: str, raw: bool, mtu: int, root: Root) -> list[Place]:
    """Returns the places of a case's endpoints, by index.

    Args:
        ends: what the topology says of each, and its address there.
        port: the case's port kind.
        raw: whether endpoints make their frames by themselves.
        mtu: layer 3 MTU in bytes that the case's frames need.

    Raises ProvisionError with one sentence.
    """
    places = [_place(existing, address, port, mtu, root) for existing, address in ends]
    if port != INTERFACE:
        return places
    _check_apart(places)
    path = FramePath.over(places)
    return [_led(place, places[path.peer(index)], raw) for index, place in enumerate(places)]


def _place(existing: Existing, address: Address, port: str, mtu: int, root: Root) -> Place:
    name = existing.container
    given = "socket" if existing.socket is not None else "pci" if existing.pci is not None else "interface"
    wanted = "interface" if port == INTERFACE else "pci" if port == VFIO else "socket"
    if given != wanted and (given != "interface" or existing.interface is not None):
        ports = {"interface": INTERFACE, "pci": VFIO, "socket": "vhost-user, vhost-user-packed or memif"}[given]
        raise ProvisionError(f"{name}: the topology gives it {given}, not {wanted}: take --icbench-port {ports}")
    if given != wanted:
        raise ProvisionError(f"{name}: port {port} needs {wanted} in the topology: add it")
    target = find(existing)
    if existing.socket is not None:
        return Place(existing, target, address, socket=_socket(target, existing.socket))
    if existing.pci is not None:
        _check_function(name, existing.pci, root)
        return Place(existing, target, address)
    interface = _interface(existing, target)
    addresses = [item for item in interface.addresses if existing.ip in (None, item[0])]
    if not addresses:
        has = ", ".join(ip for ip, _ in interface.addresses)
        sentence = f"does not have {existing.ip}, but {has}" if has else "has no IPv4 address"
        raise ProvisionError(f"{name}: its interface {interface.name} {sentence}: choose another")
    if interface.mtu < mtu:
        raise ProvisionError(
            f"{name}: its interface {interface.name} has an MTU of {interface.mtu} bytes, and frames need {mtu}: take"
            f" --icbench-packet-size up to {interface.mtu + 18}"
        )
    ip, prefix = addresses[0]
    return Place(existing, target, Address(ip, interface.mac, prefix), interface)


def _interface(existing: Existing, target: Target) -> Interface:
    """Returns the interface that is named, or the only one that is up and has an address."""
    name, known = existing.container, interfaces(target.netns)
    names = ", ".join(interface.name for interface in known) or "none but loopback"
    if existing.interface is None:
        fit = [interface for interface in known if interface.up and interface.addresses]
        if existing.ip is not None:
            fit = [interface for interface in fit if existing.ip in (ip for ip, _ in interface.addresses)]
        if len(fit) != 1:
            which = "several interfaces are" if fit else "no interface is"
            address = existing.ip or "an IPv4 address"
            raise ProvisionError(f"{name}: {which} up with {address} (it has {names}): name one by interface")
        return fit[0]
    for interface in known:
        if interface.name == existing.interface:
            if not interface.up:
                raise ProvisionError(
                    f"{name}: its interface {interface.name} is down or has no carrier: `ip link set"
                    f" {interface.name} up` there, and at its other end"
                )
            return interface
    raise ProvisionError(f"{name}: there is no interface {existing.interface}; it has {names}")


def _socket(target: Target, path: str) -> Path:
    """Returns a socket's path on this host. Raises ProvisionError if nothing serves there."""
    full = Path(f"{target.root}{path}") if target.pid is not None else Path(path)
    try:
        is_socket = stat.S_ISSOCK(full.stat().st_mode)
    except OSError as error:
        raise ProvisionError(
            f"{target.name}: {path} cannot be used ({error.strerror}): the switch has to serve it before"
        ) from None
    if not is_socket:
        raise ProvisionError(f"{target.name}: {path} is no socket")
    if len(str(full)) > SUN_PATH_MAX:
        raise ProvisionError(
            f"{target.name}: {full} is longer than the {SUN_PATH_MAX} bytes of a Unix socket's address"
        )
    return full


def _check_function(name: str, pci: str, root: Root) -> None:
    """Raises ProvisionError unless DPDK can drive a PCI function without a change."""
    device = f"/sys/bus/pci/devices/{pci}"
    if not root.exists(device):
        raise ProvisionError(f"{name}: there is no PCI function {pci} here")
    driver = root.path(f"{device}/driver").resolve().name if root.exists(f"{device}/driver") else "none"
    if driver != "vfio-pci":
        raise ProvisionError(
            f"{name}: the driver of PCI function {pci} is {driver}: DPDK needs vfio-pci, bind it before"
        )


def _check_apart(places: Sequence[Place]) -> None:
    """Raises ProvisionError if both ends of a pair are in one namespace: their frames would never leave it."""
    for a, b in FramePath.over(places).by_pair(places):
        if a.target.inode == b.target.inode:
            raise ProvisionError(
                f"{a.existing.container} and {b.existing.container} are in the same network namespace, as containers of"
                " one pod are: frames between them would not leave it, so take another one"
            )


def _led(place: Place, peer: Place, raw: bool) -> Place:
    """Returns a place with the way to its peer. Raises ProvisionError if there is none, or none for such frames."""
    assert place.interface is not None
    name, there = place.existing.container, peer.existing.container
    route = find_way(place.target.netns, peer.address.ip)
    if route is None:
        raise ProvisionError(
            f"{name} has no route to {there} ({peer.address.ip}): give it one, or take another address"
        )
    if route.interface != place.interface.name:
        raise ProvisionError(
            f"{name}: its way to {there} ({peer.address.ip}) is through {route.interface}, not {place.interface.name}:"
            f" name {route.interface} by interface, or addresses that belong together"
        )
    if raw and route.gateway is not None:
        raise ProvisionError(
            f"{name}: its way to {there} ({peer.address.ip}) is through the router {route.gateway}, where raw frames do"
            " not go: take --icbench-api udp or udp-mmsg"
        )
    return Place(place.existing, place.target, place.address, place.interface, way=route)
