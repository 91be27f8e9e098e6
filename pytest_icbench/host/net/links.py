# SPDX-License-Identifier: BSD-3-Clause
"""Kernel links by netlink: veth pairs, bridges, namespaces. Calls take milliseconds. Every link is journaled.

The links of a measurement carry only its frames: IPv6 and ARP are off, neighbours are permanent. ``mtu`` is that of
layer 3, in bytes; ``netns`` is the path of a namespace, None for this process'.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import entry_checks
from pytest_icbench.host.cleanup import unmount_below
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.journaled_changes import Holder
from pytest_icbench.host.namespaces import (
    CLONE_NEWNET,
    NETNS_DIR,
    bind_namespace,
    enter_netns,
    open_netns,
    save_netns,
    unshare,
)
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.traffic import MTU_ETHERNET

_IFF_UP = 0x1
_IFF_NOARP = 0x80
#: The group of the links that end together (IFLA_GROUP of rtnetlink(7)); the kernel's own is 0.
_GROUP = 0x1CB
#: The length of a veth's transmit queue, in frames, if a queueing discipline is used.
TX_QUEUE_LENGTH = 1000


@contextmanager
def netlink(netns: str | None = None, *, doing: str = "the request") -> Iterator[Any]:
    """Opens a netlink socket in a namespace. Errors of netlink become ProvisionErrors.

    ``doing``: the subject of error messages.
    """
    from pyroute2 import IPRoute  # takes a third of a second, which only a session needs
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        with enter_netns(netns), IPRoute() as route:
            yield route
    except NetlinkError as error:
        reason = os.strerror(error.code)
        remedy = ": run as root" if error.code in (errno.EPERM, errno.EACCES) else ""
        raise ProvisionError(f"the kernel refused {doing} ({reason}){remedy}") from None
    except OSError as error:
        if error.errno != errno.ENOBUFS:
            raise
        raise ProvisionError(f"the answer to {doing} did not fit a socket: raise net.core.rmem_max") from None


def link_index(route: Any, name: str) -> int:
    """Returns a link's index in the namespace of a netlink socket. Raises ProvisionError if there is none."""
    indices = route.link_lookup(ifname=name)
    if not indices:
        raise ProvisionError(f"there is no link {name}: it was removed, or its namespace ended")
    return int(indices[0])


def _sysctl(name: str, text: str) -> None:
    """Writes a file below /proc/sys/net of the thread's namespace, if the kernel has that setting."""
    with suppress(FileNotFoundError):
        Path("/proc/sys/net", name).write_text(text, encoding="ascii")


def _quiet(name: str) -> None:
    """Switches IPv6 off: router solicitations, duplicate address detection, multicast reports."""
    _sysctl(f"ipv6/conf/{name}/disable_ipv6", "1")


@dataclass(frozen=True, slots=True)
class End:
    """An end of a veth pair.

    Attributes:
        name: its name in its namespace.
        netns: path of the namespace in which it is created; None for this process'.
        address: its MAC and IP addresses; None for a port of a switch.
        neighbours: its peers; empty for the other side of its pair.
        index: its index in its namespace, which must be free; None for the kernel's choice.
        grouped: whether ``remove_grouped`` removes it.
    """

    name: str
    netns: str | None = None
    address: Address | None = None
    neighbours: tuple[Address, ...] = ()
    index: int | None = None
    grouped: bool = False


def create_pair(
    session: Holder, a: End, b: End, *, mtu: int = MTU_ETHERNET, txqueuelen: int = TX_QUEUE_LENGTH, up: bool = True
) -> None:
    """Creates a veth pair, each end in its namespace and configured as by ``move``.

    This avoids a move, which takes 20 ms an end.

    Args:
        txqueuelen: length of the transmit queues in frames.
        up: whether to set both ends up and wait until they transmit.

    Raises ProvisionError.
    """
    for end in (a, b):
        if end.netns is None:
            session.note("link", end.name, name=end.name, netns=None)
    with ExitStack() as stack:
        peer = _attributes(b, mtu, txqueuelen)
        peer["net_ns_fd"] = stack.enter_context(open_netns(b.netns or "/proc/thread-self/ns/net"))
        try:
            # Before Linux 6.14 the first end's name must be free in the namespace that sends the request.
            with netlink(a.netns, doing=f"to create the links {a.name} and {b.name}") as route:
                route.link("add", kind="veth", **_attributes(a, mtu, txqueuelen), peer=peer)
        except ProvisionError:
            for end in (a, b):
                session.forget("link", end.name)
            raise
    for end in (a, b):
        configure(end, up=up)
    if up:
        for end in (a, b):
            await_up(end.name, end.netns)


def _attributes(end: End, mtu: int, txqueuelen: int) -> dict[str, Any]:
    """Returns the netlink attributes with which an end is created."""
    attributes: dict[str, Any] = {"ifname": end.name, "mtu": mtu, "txqlen": txqueuelen}
    if end.index is not None:
        attributes["index"] = end.index
    if end.address is not None:
        attributes["address"] = end.address.mac
    if end.grouped:
        attributes["group"] = _GROUP
    return attributes


def configure(end: End, *, up: bool = True, has_mac: bool = False) -> None:
    """Makes a link an endpoint: sets its addresses and permanent neighbours, switches ARP and IPv6 off.

    ``has_mac``: whether its MAC address is right and stays, as an ipvlan link's must.
    """
    with netlink(end.netns, doing=f"to configure {end.name} in {end.netns or 'the host'}") as route:
        _quiet(end.name)
        index = link_index(route, end.name)
        route.link("set", index=index, flags=_IFF_NOARP, change=_IFF_NOARP)
        if end.address is not None:
            if not has_mac:
                route.link("set", index=index, address=end.address.mac)
            route.addr("add", index=index, address=end.address.ip, prefixlen=end.address.prefix)
            for other in end.neighbours or (end.address.other_side,):
                route.neigh("replace", index=index, dst=other.ip, lladdr=other.mac, state="permanent")
        if up:
            route.link("set", index=index, flags=_IFF_UP, change=_IFF_UP)


def move(name: str, end: End, *, up: bool = True) -> None:
    """Moves a link of the session into a namespace and makes it an endpoint: MAC, IP, permanent neighbours, no IPv6.

    Args:
        name: its name in this process' namespace.
        end: what it becomes; its ``netns`` is not None.
        up: whether to set it up.
    """
    assert end.netns is not None
    with open_netns(end.netns) as target, netlink(doing=f"to move the link {name} into {end.netns}") as route:
        route.link("set", index=link_index(route, name), net_ns_fd=target, ifname=end.name)
    configure(end, up=up)


def create_bridge(
    session: Holder, name: str, netns: str | None = None, *, mtu: int = MTU_ETHERNET, grouped: bool = False
) -> None:
    """Creates a learning bridge without spanning tree, forwarding delay, multicast snooping and IPv6. It is down.

    Args:
        name: a name of the session, or any name in a namespace of the session, with which the bridge ends.
        grouped: whether ``remove_grouped`` removes it.
    """
    if netns is None:
        session.note("link", name, name=name, netns=None)
    settings = {"br_stp_state": 0, "br_forward_delay": 0, "br_mcast_snooping": 0}
    settings |= {"group": _GROUP} if grouped else {}
    with netlink(netns, doing=f"to create the bridge {name}") as route:
        route.link("add", ifname=name, kind="bridge", mtu=mtu, **settings)
        _quiet(name)


def bypass_bridge_filters(netns: str) -> None:
    """Makes the bridges of a namespace bypass its packet filters. The setting ends with the namespace.

    The filters (br_netfilter) are on wherever their module is loaded. They also drop IP packets that they find faulty.
    """
    with enter_netns(netns):
        for family in ("iptables", "ip6tables", "arptables"):
            _sysctl(f"bridge/bridge-nf-call-{family}", "0")


def set_bridge_ageing(name: str, seconds: float, netns: str | None = None) -> None:
    """Sets the time after which a bridge forgets an address that sends nothing."""
    with netlink(netns, doing=f"an ageing time of {seconds:g} s on the bridge {name}") as route:
        ticks = round(seconds * os.sysconf("SC_CLK_TCK"))
        route.link("set", index=link_index(route, name), kind="bridge", br_ageing_time=ticks)


def enslave(name: str, bridge: str) -> None:
    """Adds a link to a bridge as a port."""
    with netlink(doing=f"to add {name} to the bridge {bridge}") as route:
        route.link("set", index=link_index(route, name), master=link_index(route, bridge))


def set_up(name: str, netns: str | None = None, *, arp: bool = False) -> None:
    """Sets a link up. ARP stays off unless ``arp`` is true."""
    flags = _IFF_UP if arp else _IFF_UP | _IFF_NOARP
    with netlink(netns, doing=f"to set {name} up") as route:
        route.link("set", index=link_index(route, name), flags=flags, change=flags)


def await_up(name: str, netns: str | None = None, *, timeout_s: float = 2.0) -> None:
    """Waits until a link that was set up and its other end transmit.

    The kernel attaches the transmit queues in the background once there is a carrier. It drops earlier frames.
    Raises ProvisionError after ``timeout_s`` seconds.
    """
    deadline = time.monotonic() + timeout_s
    with netlink(netns, doing=f"the state of {name}") as route:
        index = link_index(route, name)
        while (state := route.get_links(index)[0].get_attr("IFLA_OPERSTATE")) != "UP":
            if time.monotonic() > deadline:
                raise ProvisionError(
                    f"the link {name} has no carrier after {timeout_s:g} s (state {state}): its other end is not up"
                )
            time.sleep(0.001)
        # The kernel sets the state first, then the queues, under one lock. A request with that lock comes after both.
        route.link("set", index=index, flags=0, change=0)


def set_mtu(name: str, mtu: int, netns: str | None = None) -> None:
    """Sets the layer 3 MTU in bytes."""
    with netlink(netns, doing=f"MTU {mtu} on {name}") as route:
        route.link("set", index=link_index(route, name), mtu=mtu)


def read_statistics(name: str, netns: str | None = None) -> dict[str, int]:
    """Returns the kernel's 64-bit counters of a link by name: ``rx_packets tx_packets rx_bytes rx_dropped …``."""
    with netlink(netns, doing=f"the counters of {name}") as route:
        link = route.get_links(link_index(route, name))[0]
        return {key: int(value) for key, value in dict(link.get_attr("IFLA_STATS64")).items()}


@dataclass(frozen=True, slots=True)
class LinkState:
    """The state of a link that every process of root can change. ``mtu``: its layer 3 MTU in bytes."""

    up: bool
    mtu: int


def read_states(netns: str | None = None) -> dict[str, LinkState]:
    """Returns the state of each link of a namespace, by name. Raises ProvisionError."""
    with netlink(netns, doing="the list of links") as route:
        return {
            str(link.get_attr("IFLA_IFNAME")): LinkState(
                up=bool(link["flags"] & _IFF_UP), mtu=int(link.get_attr("IFLA_MTU"))
            )
            for link in route.get_links()
        }


def read_index(name: str, netns: str | None = None) -> int:
    """Returns a link's index. Raises ProvisionError if there is none of that name."""
    with netlink(netns, doing=f"the index of {name}") as route:
        return link_index(route, name)


def read_mac(name: str, netns: str | None = None) -> str:
    """Returns a link's MAC address. Raises ProvisionError if there is none of that name."""
    with netlink(netns, doing=f"the address of {name}") as route:
        return str(route.get_links(link_index(route, name))[0].get_attr("IFLA_ADDRESS"))


def exists(name: str, netns: str | None = None) -> bool:
    """Returns whether there is a link of that name."""
    with netlink(netns) as route:
        return bool(route.link_lookup(ifname=name))


def remove_link(name: str, netns: str | None = None) -> None:
    """Removes a link. The link or its namespace may be missing."""
    if netns is not None and not Path(netns).exists():
        return
    with netlink(netns, doing=f"to delete {name}") as route:
        from pyroute2.netlink.exceptions import NetlinkError

        for index in route.link_lookup(ifname=name):
            try:
                route.link("del", index=index)
            except NetlinkError as error:
                if error.code != errno.ENODEV:  # it vanished with its other end
                    raise


def remove_grouped(netns: str) -> None:
    """Removes all links of a namespace that were made for it, with the other ends of veths, in one request.

    Single requests would each wait for a grace period of the kernel (20 ms). Raises ProvisionError.
    """
    with netlink(netns, doing=f"to delete the links of {netns}") as route:
        from pyroute2.netlink.exceptions import NetlinkError

        try:
            route.link("del", group=_GROUP)
        except NetlinkError as error:
            if error.code != errno.ENODEV:  # there is none
                raise


def pin_netns(session: Holder, netns: str, suffix: str) -> str:
    """Gives a namespace a name of the session, so that it outlives its processes. Returns its path.

    Args:
        netns: path of the namespace, such as a node's.
        suffix: see ``Holder.name``.

    ``delete_netns`` removes the name again. Raises ProvisionError.
    """
    name = session.name(suffix)
    path = NETNS_DIR / name
    session.note("netns", name, name=name)
    NETNS_DIR.mkdir(parents=True, exist_ok=True)
    path.touch(exist_ok=False)
    try:
        bind_namespace(netns, path)
    except OSError as error:
        raise ProvisionError(f"network namespace {name} cannot be kept ({error.strerror}): run as root") from None
    return str(path)


def create_netns(session: Holder, suffix: str) -> str:
    """Creates a network namespace with loopback up and IPv6 off. Returns its path, below /run/netns."""
    with save_netns():
        unshare(CLONE_NEWNET)
        for scope in ("all", "default"):
            _quiet(scope)
        path = pin_netns(session, "/proc/thread-self/ns/net", suffix)
        with netlink(doing="to set lo up") as route:
            route.link("set", index=1, flags=_IFF_UP, change=_IFF_UP)
    return path


def remove_netns(name: str) -> None:
    """Removes a named namespace that may be missing."""
    path = NETNS_DIR / name
    unmount_below(path)
    path.unlink(missing_ok=True)


def delete_netns(session: Holder, path: str) -> None:
    """Removes the name of a namespace, which ends with its last process and socket. Idempotent."""
    name = Path(path).name
    remove_netns(name)
    session.forget("netns", name)


#: The router's address, the same for each endpoint, on a network without other hosts.
GATEWAY = "169.254.1.1"
_SCOPE_LINK = 253
_FORWARDING = {
    "ip_forward": "1",
    "conf/all/rp_filter": "0",
    "conf/default/rp_filter": "0",
    "conf/all/send_redirects": "0",
    "conf/default/send_redirects": "0",
}


def forward_packets(netns: str) -> None:
    """Makes a namespace a router that sends no redirects and takes packets from any source. Raises OSError."""
    with enter_netns(netns):
        for name, text in _FORWARDING.items():
            with suppress(FileNotFoundError):
                Path("/proc/sys/net/ipv4", name).write_text(text, encoding="ascii")


def serve_endpoint(port: str, netns: str, endpoint: Address, mac: str) -> None:
    """Gives a router's port a MAC address and the route to its endpoint, IPv4 or IPv6. Raises ProvisionError."""
    host_bits = 128 if ":" in endpoint.ip else 32
    with netlink(netns, doing=f"the route to {endpoint.ip}") as route:
        index = link_index(route, port)
        route.link("set", index=index, address=mac)
        route.route("add", dst=endpoint.ip, dst_len=host_bits, oif=index, scope=_SCOPE_LINK)
        route.neigh("replace", index=index, dst=endpoint.ip, lladdr=endpoint.mac, state="permanent")


def lead_all(device: str, netns: str) -> None:
    """Sets a link up and makes it the default route. Raises ProvisionError."""
    with netlink(netns, doing=f"the route to {device}") as route:
        index = link_index(route, device)
        route.link("set", index=index, state="up")
        route.route("add", dst="0.0.0.0", dst_len=0, oif=index, scope=_SCOPE_LINK)


def lead_through_router(end: End, peer: Address) -> None:
    """Makes an endpoint, which is alone in its subnet, send packets for its peer to a router.

    ``peer``: its MAC address is the one of the router's port. Raises ProvisionError.
    """
    with netlink(end.netns, doing=f"the route of {end.name}") as route:
        index = link_index(route, end.name)
        route.neigh("replace", index=index, dst=GATEWAY, lladdr=peer.mac, state="permanent")
        route.route("add", dst=GATEWAY, dst_len=32, oif=index, scope=_SCOPE_LINK)
        route.route("add", dst=peer.ip, dst_len=32, gateway=GATEWAY, oif=index)


UNDO_KINDS = {
    "netns": UndoKind(remove_netns, checks={"name": entry_checks.name}),
    "link": UndoKind(remove_link, checks={"name": entry_checks.link, "netns": entry_checks.netns}),
}
