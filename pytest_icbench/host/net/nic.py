# SPDX-License-Identifier: BSD-3-Clause
"""A NIC of the host that a rig takes as its uplink. Its addresses, routes, MTU and flags are restored afterwards.

The NIC is moved into the network namespace of its user, where the host puts nothing else on it. Its state is journaled
before that. The namespace has a name, so that the NIC can be moved back even after SIGKILL: a veth ends with its
namespace, and a card would come back under any free name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import entry_checks
from pytest_icbench.host.entry_checks import Scope
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.namespaces import open_netns
from pytest_icbench.host.net import ethtool
from pytest_icbench.host.net.links import await_up, link_index, netlink
from pytest_icbench.host.process import wait_until
from pytest_icbench.host.resource.pci import SETTLE_S
from pytest_icbench.host.resource.pci import interfaces as pci_interfaces
from pytest_icbench.host.root import Root

_IFF_LOOPBACK = 0x8
_AF_INET, _AF_INET6 = 2, 10
_TABLE_LOCAL = 255


def find_use(route: Any, index: int, link: Any, client: str) -> str | None:
    """Returns how the host uses a NIC, as a predicate of its name; None if the NIC may be taken.

    Args:
        route: a netlink socket in the NIC's network namespace.
        index: the NIC's index.
        link: the netlink message about it.
        client: address of this host in an ssh connection to another one; empty for none.
    """
    if link["flags"] & _IFF_LOOPBACK:
        return "is the loopback"
    if (master := link.get_attr("IFLA_MASTER")) is not None:
        owner = route.get_links(master)[0].get_attr("IFLA_IFNAME")
        return f"is a port of {owner}"
    above = [other.get_attr("IFLA_IFNAME") for other in route.get_links() if _is_on(other, index)]
    if above:
        return f"carries {', '.join(above)}"
    if any(
        _is_default_by(entry, index) for family in (_AF_INET, _AF_INET6) for entry in route.get_routes(family=family)
    ):
        return "has the host's default route"
    by_ssh = {_plain(address) for address in (client, *_ssh_addresses())} - {""}
    mine = {
        _plain(str(entry.get_attr("IFA_LOCAL") or entry.get_attr("IFA_ADDRESS")))
        for entry in route.get_addr(index=index)
    }
    if by_ssh & mine:
        return "has the address of this very ssh connection"  # a report must not have the address itself
    return None


def _ssh_addresses() -> Iterator[str]:
    """Yields this host's addresses in the ssh connections of the process and of its ancestors.

    sudo removes the variable from its own environment, but not from the environment of the shell that started it.
    """
    name, pid = "SSH_CONNECTION", os.getpid()
    connections = [os.environ.get(name, "")]
    with suppress(OSError, ValueError):
        while pid > 1:
            variables = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
            connections += [variable.partition("=")[2] for variable in variables if variable.startswith(f"{name}=")]
            pid = int(
                Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
            )
    for connection in connections:
        yield from connection.split()[2:3]


def _plain(address: str) -> str:
    """Returns an address without its zone, and an IPv4 address in IPv6 as plain IPv4."""
    return address.partition("%")[0].lower().removeprefix("::ffff:")


def _is_on(link: Any, index: int) -> bool:
    """Returns whether an interface (VLAN, macvlan, tunnel) sends its frames by another one of this namespace."""
    info = link.get_attr("IFLA_LINKINFO")
    kind = None if info is None else info.get_attr("IFLA_INFO_KIND")
    if link.get_attr("IFLA_LINK") != index or link["index"] == index or link.get_attr("IFLA_LINK_NETNSID") is not None:
        return False
    return kind is not None and kind != "veth"  # IFLA_LINK of a veth is its other end


def _is_default_by(entry: Any, index: int) -> bool:
    """Returns whether a default route leads through an interface, perhaps as one of several hops."""
    if entry["dst_len"] or entry.get_attr("RTA_TABLE") == _TABLE_LOCAL:
        return False
    hops = entry.get_attr("RTA_MULTIPATH") or ()
    return index in (entry.get_attr("RTA_OIF"), *(hop["oif"] for hop in hops))


_IFF_UP = 0x1
_IFF_NOARP = 0x80
_IFF_PROMISC = 0x100
_IFF_ALLMULTI = 0x200
#: The flags that users set.
_FLAGS = _IFF_NOARP | _IFF_PROMISC | _IFF_ALLMULTI
_IFA_F_PERMANENT = 0x80
#: The flags of an address that users set: nodad, home, mngtmpaddr, noprefixroute, autojoin.
_ADDRESS_FLAGS = 0x02 | 0x10 | 0x100 | 0x200 | 0x400
#: The origins of routes that the kernel makes and removes together with the addresses.
_RTPROT_KERNEL, _RTPROT_RA = 2, 9
_HERE = "/proc/thread-self/ns/net"
#: Settings below /proc/sys/net that a stay in another namespace loses.
_SYSCTLS = ("ipv6/conf/{}/disable_ipv6", "ipv6/conf/{}/accept_ra", "ipv6/conf/{}/autoconf")


@dataclass(frozen=True, slots=True)
class State:
    """The state of a NIC that is restored.

    Attributes:
        flags: interface flags (``netdevice(7)``) as the user set them.
        addresses, routes: netlink attributes, as pyroute2 takes them.
        lro: whether large receive offload was on, which a bridge switches off; None if there is none.
        sysctls: texts by name below /proc/sys/net.
        channels: queues (receive, transmit, other, combined; ``ethtool -l``); None if their number is fixed.
    """

    name: str
    mac: str
    mtu: int
    txqueuelen: int
    flags: int
    addresses: tuple[Mapping[str, Any], ...]
    routes: tuple[Mapping[str, Any], ...]
    lro: bool | None
    sysctls: Mapping[str, str]
    channels: tuple[int, ...] | None = None


def check(name: str, *, client: str = "") -> None:
    """Checks that a NIC can be taken. Changes nothing.

    ``client``: address of this host in an ssh connection to another one; empty for none. Raises Unsupported if there is
    none of that name, or the host needs it.
    """
    try:
        with netlink(doing=f"the state of {name}") as route:
            index = link_index(route, name)
            link = route.get_links(index)[0]
            reason = find_use(route, index, link, client)
    except ProvisionError:
        known = ", ".join(sorted(path.name for path in Path("/sys/class/net").iterdir() if path.name != "lo"))
        raise Unsupported(f"--icbench-uplink: there is no network interface {name}: this host has {known}") from None
    if reason is not None:
        raise Unsupported(f"--icbench-uplink: {name} {reason}: name a NIC that is for measurements alone")


def _routes_through(route: Any, index: int, family: int) -> list[Any]:
    """Returns the netlink messages of a link's routes that users have made."""
    return [
        entry
        for entry in route.get_routes(family=family, oif=index)
        if entry.get_attr("RTA_TABLE") != _TABLE_LOCAL and entry["proto"] not in (_RTPROT_KERNEL, _RTPROT_RA)
    ]


def read_state(name: str) -> State:
    """Reads a NIC's state. Raises ProvisionError if it is not in this process' namespace."""
    with netlink(doing=f"the state of {name}") as route:
        index = link_index(route, name)
        link = route.get_links(index)[0]
        addresses = [_address(entry) for entry in route.get_addr(index=index) if entry["flags"] & _IFA_F_PERMANENT]
        routes = [_route(entry) for family in (_AF_INET, _AF_INET6) for entry in _routes_through(route, index, family)]
    return State(
        name=name,
        mac=link.get_attr("IFLA_ADDRESS"),
        mtu=link.get_attr("IFLA_MTU"),
        txqueuelen=link.get_attr("IFLA_TXQLEN"),
        flags=link["flags"] & (_FLAGS | _IFF_UP),
        addresses=tuple(one for one in addresses if not str(one["address"]).lower().startswith("fe80:")),
        routes=tuple(routes),
        lro=ethtool.read_lro(name),
        channels=None if (queues := ethtool.read_channels(name)) is None else tuple(queues),
        sysctls={
            pattern.format(name): text for pattern in _SYSCTLS if (text := _sysctl(pattern.format(name))) is not None
        },
    )


def _address(message: Any) -> dict[str, Any]:
    """Returns the attributes with which an address is restored."""
    attributes = {key: message[key] for key in ("family", "prefixlen", "scope")}
    flags = (message.get_attr("IFA_FLAGS") or 0) & _ADDRESS_FLAGS
    return attributes | ({"flags": flags} if flags else {}) | _known(message, "IFA", "address local broadcast label")


def _route(message: Any) -> dict[str, Any]:
    """Returns the attributes with which a route is restored."""
    attributes = {key: message[key] for key in ("family", "dst_len", "proto", "scope", "type")}
    return attributes | _known(message, "RTA", "dst gateway prefsrc priority table")


def _known(message: Any, prefix: str, names: str) -> dict[str, Any]:
    """Returns the attributes of these names that a message has."""
    values = {name: message.get_attr(f"{prefix}_{name.upper()}") for name in names.split()}
    return {name: value for name, value in values.items() if value is not None}


def _sysctl(name: str) -> str | None:
    """Returns the text of a file below /proc/sys/net, None if it cannot be read."""
    with suppress(OSError):
        return Path("/proc/sys/net", name).read_text(encoding="ascii").strip()
    return None


def remember(changes: Changes, name: str, pci: str) -> None:
    """Records an interface's state, to be restored once its function is back from another driver. Sets it down.

    ``pci``: address of its PCI function. Raises ProvisionError if it is in use.
    """
    try:
        check(name)
    except Unsupported as error:
        raise ProvisionError(str(error)) from None
    changes.record("nic", state=asdict(read_state(name)), netns=None, moved=pci)
    with netlink(doing=f"to set {name} down") as route:
        route.link("set", index=link_index(route, name), flags=0, change=_IFF_UP)


@dataclass(frozen=True, slots=True)
class Stay:
    """A NIC's state while a rig has it.

    Attributes:
        netns: path of a namespace that outlives its processes (``links.create_netns``, ``links.pin_netns``).
        name: its name there.
        mtu: layer 3 MTU in bytes.
        promiscuous: whether it receives frames to any address.
        single_queue: whether all frames arrive in its first queue, the only one that AF_XDP uses.
    """

    netns: str
    name: str
    mtu: int
    promiscuous: bool = False
    up: bool = True
    single_queue: bool = False


def take(changes: Changes, name: str, stay: Stay) -> None:
    """Moves a NIC into a namespace, without addresses, ARP and IPv6. The change is journaled, for ``changes`` to undo.

    Raises ProvisionError if there is no such NIC, it is in use, or it refuses the MTU.
    """
    try:
        check(name)
    except Unsupported as error:  # it was free when the case was scheduled
        raise ProvisionError(str(error)) from None
    before = read_state(name)
    changes.record("nic", state=asdict(before), netns=stay.netns, moved=stay.name)
    if stay.single_queue and before.channels is not None:
        ethtool.set_channels(name, ethtool.limit_to_single(before.channels))
    flags = _IFF_NOARP | (_IFF_PROMISC if stay.promiscuous else 0)
    with open_netns(stay.netns) as target, netlink(doing=f"to move {name} into {stay.netns}") as route:
        index = link_index(route, name)
        route.link("set", index=index, flags=0, change=_IFF_UP)
        route.link("set", index=index, net_ns_fd=target, ifname=stay.name)
    with netlink(stay.netns, doing=f"MTU {stay.mtu} on {name}") as route:
        index = link_index(route, stay.name)
        with suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{stay.name}/disable_ipv6").write_text("1", encoding="ascii")
        route.link("set", index=index, mtu=stay.mtu)
        route.link("set", index=index, flags=flags, change=_FLAGS)
    if stay.up:
        with netlink(stay.netns, doing=f"to set {name} up") as route:
            route.link("set", index=link_index(route, stay.name), flags=_IFF_UP, change=_IFF_UP)


def await_carrier(name: str, netns: str, *, nic: str, timeout_s: float = SETTLE_S) -> None:
    """Waits until a taken NIC has a carrier.

    Args:
        name: its name in the namespace.
        nic: its name on the host, for the error message.

    Raises ProvisionError after ``timeout_s`` seconds.
    """
    try:
        await_up(name, netns, timeout_s=timeout_s)
    except ProvisionError:
        raise ProvisionError(
            f"the uplink {nic} has no carrier after {timeout_s:g} s: connect its cable, and bring the other end up"
        ) from None


def undo_nic(state: State, netns: str | None, moved: str) -> None:
    """Moves a NIC back, unless it is back already, and restores its state.

    Args:
        netns: path of the namespace it was moved into; None if another driver had it.
        moved: its name in that namespace, or the address of its PCI function.
    """
    with netlink() as route:
        here = bool(route.link_lookup(ifname=state.name))
    if not here and netns is None:
        _await_function(state, moved)
    elif not here and netns is not None:
        _fetch(state, netns, moved)
    _restore(state)


def _await_function(before: State, pci: str) -> None:
    """Waits until the kernel's driver has made the interface again, and gives it its old name."""
    root = Root()
    if not wait_until(lambda: pci_interfaces(root, pci), SETTLE_S):
        raise ProvisionError(f"the NIC {before.name} ({pci}) has not come back: bind its driver by hand")
    present = pci_interfaces(root, pci)[0]
    if present != before.name:
        with netlink(doing=f"to name {before.name} again") as route:
            index = link_index(route, present)
            route.link("set", index=index, flags=0, change=_IFF_UP)
            route.link("set", index=index, ifname=before.name)


def _fetch(before: State, netns: str, moved: str) -> None:
    """Moves a NIC back from a namespace. Raises ProvisionError if it is gone."""
    if Path(netns).exists():
        with open_netns(_HERE) as home, netlink(netns, doing=f"to move {before.name} back from {netns}") as route:
            if indices := route.link_lookup(ifname=moved):
                _drop_program(route, indices[0])
                route.link("set", index=indices[0], flags=0, change=_IFF_UP)
                route.link("set", index=indices[0], net_ns_fd=home, ifname=before.name)
                return
    if not _rename_returned(before):
        raise ProvisionError(f"the NIC {before.name} is gone: it ended with the namespace {netns}")


def _rename_returned(before: State) -> bool:
    """Renames a NIC that the kernel has brought back. Returns whether there is one."""
    with netlink(doing=f"to name {before.name} again") as route:
        for link in route.get_links():
            name = str(link.get_attr("IFLA_IFNAME"))
            if name.startswith("dev") and link.get_attr("IFLA_ADDRESS") == before.mac:
                route.link("set", index=link["index"], flags=0, change=_IFF_UP)
                route.link("set", index=link["index"], ifname=before.name)
                return True
    return False


def _drop_program(route: Any, index: int) -> None:
    """Detaches the program that a killed AF_XDP application has left."""
    link = route.get_links(index)[0]
    xdp = link.get_attr("IFLA_XDP")
    if xdp is not None and xdp.get_attr("IFLA_XDP_ATTACHED"):
        route.link("set", index=index, xdp_fd=-1)


def _restore(before: State) -> None:
    """Restores the state of a NIC that is back under its old name. Raises ProvisionError."""
    with netlink(doing=f"to restore {before.name}") as route:
        index = link_index(route, before.name)
        if route.get_links(index)[0].get_attr("IFLA_ADDRESS") != before.mac:
            route.link("set", index=index, flags=0, change=_IFF_UP)
            route.link("set", index=index, address=before.mac)
        route.link("set", index=index, mtu=before.mtu, txqlen=before.txqueuelen)
        route.link("set", index=index, flags=before.flags & _FLAGS, change=_FLAGS)
        _restore_settings(before)
        if not before.flags & _IFF_UP:
            route.link("set", index=index, flags=0, change=_IFF_UP)
        present = {entry.get_attr("IFA_ADDRESS") for entry in route.get_addr(index=index)}
        for address in before.addresses:
            if address["address"] not in present:
                route.addr("add", index=index, **address)
        if before.flags & _IFF_UP:
            route.link("set", index=index, flags=_IFF_UP, change=_IFF_UP)
        for attributes in before.routes:
            route.route("replace", oif=index, **attributes)


def _restore_settings(before: State) -> None:
    """Restores what netlink does not set: files below /proc/sys/net, large receive offload and queues."""
    for name, text in before.sysctls.items():
        with suppress(OSError):
            Path("/proc/sys/net", name).write_text(text, encoding="ascii")
    if before.lro and not ethtool.read_lro(before.name):
        ethtool.set_feature(before.name, ethtool.LRO, True)
    if before.channels is not None and ethtool.read_channels(before.name) != list(before.channels):
        ethtool.set_channels(before.name, before.channels)


def _is_written_state(value: State, scope: Scope) -> bool:
    """Whether a session may have written a NIC's state: its name and its settings are checked."""
    return entry_checks.interface(value.name, scope) and entry_checks.sysctls(value.sysctls, scope)


UNDO_KINDS = {
    "nic": UndoKind(
        undo_nic,
        checks={"state": _is_written_state, "netns": entry_checks.netns, "moved": entry_checks.interface_or_pci},
    )
}
