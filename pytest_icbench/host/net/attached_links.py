# SPDX-License-Identifier: BSD-3-Clause
"""Existing interfaces: their state, the neighbours that the kernel learns meanwhile, and what stops packets."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import entry_checks
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.journaled_changes import Holder
from pytest_icbench.host.namespaces import NETNS_DIR, enter_netns
from pytest_icbench.host.net.links import link_index, netlink
from pytest_icbench.host.process import run

_IFF_UP = 0x1
_IFF_LOOPBACK = 0x8
_AF_INET = 2
_NUD_PERMANENT = 0x80
_NUD_NOARP = 0x40
#: How long a datagram may take, in seconds, and headers of IPv4 and UDP, in bytes.
_ARRIVAL_S, _UDP_BYTES = 0.4, 28
_HERE = "/proc/self/ns/net"
#: The chains that see what a namespace receives, and what it passes on.
_RECEIVING, _FORWARDING = ("ingress", "prerouting", "input"), ("forward",)


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface of a namespace.

    Attributes:
        addresses: IPv4 addresses with the lengths of their networks' prefixes.
        up: whether it is set up and has a carrier.
    """

    name: str
    mac: str
    addresses: tuple[tuple[str, int], ...]
    up: bool
    mtu: int


def interfaces(netns: str) -> tuple[Interface, ...]:
    """Returns the interfaces of a namespace but for loopback. Raises ProvisionError."""
    with netlink(netns, doing=f"the interfaces in {netns}") as route:
        addresses: dict[int, list[tuple[str, int]]] = {}
        for entry in route.get_addr(family=_AF_INET):
            ip = entry.get_attr("IFA_LOCAL") or entry.get_attr("IFA_ADDRESS")
            addresses.setdefault(entry["index"], []).append((ip, entry["prefixlen"]))
        return tuple(
            Interface(
                name=link.get_attr("IFLA_IFNAME"),
                mac=link.get_attr("IFLA_ADDRESS") or "",
                addresses=tuple(addresses.get(link["index"], ())),
                up=bool(link["flags"] & _IFF_UP) and link.get_attr("IFLA_CARRIER") != 0,
                mtu=link.get_attr("IFLA_MTU"),
            )
            for link in route.get_links()
            if not link["flags"] & _IFF_LOOPBACK
        )


@dataclass(frozen=True, slots=True)
class Way:
    """The route from a namespace to an address: through ``interface``, by ``gateway`` if it is not None."""

    interface: str
    gateway: str | None


def find_way(netns: str, ip: str) -> Way | None:
    """Returns the route of a namespace to an address, None without one. Raises ProvisionError."""
    from pyroute2.netlink.exceptions import NetlinkError

    with netlink(netns, doing=f"the route to {ip}") as route:
        try:
            answer = route.route("get", dst=ip)[0]
        except NetlinkError:
            return None
        name = route.get_links(answer.get_attr("RTA_OIF"))[0].get_attr("IFLA_IFNAME")
        return Way(name, answer.get_attr("RTA_GATEWAY"))


@dataclass(frozen=True, slots=True)
class Reached:
    """An interface in its namespace, as one end of a path: ``name`` is its container's."""

    name: str
    netns: str
    interface: Interface
    ip: str


def find_barrier(sender: Reached, receiver: Reached, mtu: int) -> str | None:
    """Returns in one sentence what stops packets from one interface to another; None if the kernel's own packets pass.

    Datagrams of the kernel are sent. The containers keep nothing of them but neighbours. ``mtu``: layer 3 MTU in bytes,
    which is the length of the first datagrams.
    """
    here, there = sender.name, receiver.name
    if _arrives(sender, receiver, mtu - _UDP_BYTES):
        return None
    if _arrives(sender, receiver, 64 - 18 - _UDP_BYTES):
        return (
            f"packets of 64 bytes pass from {here} to {there}, and packets of {mtu} do not: raise the MTU of the"
            " links between, or take a smaller --icbench-packet-size"
        )
    if sender.interface.mac == receiver.interface.mac:
        return f"{here} and {there} have the same MAC address {sender.interface.mac}: give one of them another"
    for end in (sender, receiver):
        between = _other_end(end)
        if between is not None and (chain := next(_filters(between, _FORWARDING), None)):
            bridged = " and, by bridge-nf-call-iptables, bridges" if _filters_bridges(between) else ""
            where = "this host" if between == _HERE else between
            return f"{chain} filters what {where} routes{bridged}: accept packets from {here} to {there} there"
    if chain := next(_filters(receiver.netns, _RECEIVING), None):
        return f"{chain} filters what {there} receives: accept UDP from {sender.ip} there"
    return f"no datagram of 64 bytes passes from {here} to {there}: try ping from there, and look for packet filters"


def _arrives(sender: Reached, receiver: Reached, size: int) -> bool:
    """Whether a datagram with ``size`` bytes of payload arrives."""
    with enter_netns(receiver.netns):
        ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with ear, suppress(OSError):
        ear.bind((receiver.ip, 0))
        ear.settimeout(_ARRIVAL_S)
        with enter_netns(sender.netns):
            mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with mouth:
            mouth.bind((sender.ip, 0))
            mouth.sendto(bytes(size), ear.getsockname())
        return len(ear.recv(size + 1)) == size
    return False


def _other_end(end: Reached) -> str | None:
    """Returns the namespace, of this process or of ip-netns(8), with the other end of a veth pair; None elsewhere."""
    with netlink(end.netns, doing=f"the link {end.interface.name}") as route:
        index = link_index(route, end.interface.name)
        peer = route.get_links(index)[0].get_attr("IFLA_LINK")
    for netns in (_HERE, *map(str, sorted(Path(NETNS_DIR).glob("*")))):
        with suppress(ProvisionError, OSError), netlink(netns, doing="the list of links") as route:
            for link in route.get_links():
                if link["index"] == peer and link.get_attr("IFLA_LINK") == index:
                    return netns
    return None


def _filters(netns: str, hooks: Sequence[str]) -> Iterator[str]:
    """Yields the chains of a namespace that filter at one of these hooks, those first that drop by default."""
    chains = []
    with suppress(ProvisionError, ValueError):  # no nft, or one that writes no JSON
        listed = json.loads(run(["nft", "-j", "list", "chains"], timeout_s=5, netns=netns).stdout)
        chains = [item["chain"] for item in listed["nftables"] if "chain" in item]
    for policy in ("drop", "accept"):
        for chain in chains:
            if chain.get("type") == "filter" and chain.get("hook") in hooks and chain.get("policy") == policy:
                yield f"chain {chain['name']} of table {chain['family']} {chain['table']} (policy {policy})"
    with suppress(ProvisionError):  # the tables before nft, which few hosts still have
        if (
            "forward" in hooks
            and "-P FORWARD DROP" in run(["iptables-legacy", "-S", "FORWARD"], timeout_s=5, netns=netns).stdout
        ):
            yield "chain FORWARD of iptables-legacy (policy drop)"


def _filters_bridges(netns: str) -> bool:
    with enter_netns(netns), suppress(OSError):
        return Path("/proc/sys/net/bridge/bridge-nf-call-iptables").read_text(encoding="ascii").strip() == "1"
    return False


def neighbours(interface: str, netns: str) -> frozenset[str]:
    """Returns the addresses that an interface has as neighbours in any state. Raises ProvisionError."""
    with netlink(netns, doing=f"the neighbours of {interface}") as route:
        return frozenset(entry.get_attr("NDA_DST") for entry in _neighbours(route, interface))


def _neighbours(route: Any, interface: str) -> Any:
    return route.get_neighbours(family=_AF_INET, ifindex=link_index(route, interface))


def keep_neighbours(session: Holder, interface: str, netns: str, inode: int, strangers: Sequence[str]) -> None:
    """Records the addresses that are not neighbours before the measurement, and must not be afterwards.

    The kernel learns them as soon as packets flow. ``forget_neighbours`` removes them.
    """
    key = f"{inode} {interface}"
    session.note("neighbours", key, netns=netns, inode=inode, interface=interface, strangers=tuple(strangers))


def forget_neighbours(session: Holder, interface: str, netns: str, inode: int, strangers: Sequence[str]) -> None:
    """Removes the neighbours that the kernel has learned since ``keep_neighbours``. Idempotent."""
    undo_neighbours(netns, inode, interface, tuple(strangers))
    session.forget("neighbours", f"{inode} {interface}")


def undo_neighbours(netns: str, inode: int, interface: str, strangers: tuple[str, ...]) -> None:
    """Removes neighbours that the kernel has learned, unless their namespace or interface is gone."""
    path = Path(netns)
    if not path.exists() or path.stat().st_ino != inode:
        return  # the container has ended, and its pid may be another's
    from pyroute2.netlink.exceptions import NetlinkError

    with suppress(ProvisionError), netlink(netns, doing=f"the neighbours of {interface}") as route:
        index = link_index(route, interface)
        for entry in _neighbours(route, interface):
            address = entry.get_attr("NDA_DST")
            if address in strangers and not entry["state"] & (_NUD_PERMANENT | _NUD_NOARP):
                with suppress(NetlinkError):  # it has expired in the meantime
                    route.neigh("del", index=index, dst=address)


UNDO_KINDS = {
    "neighbours": UndoKind(
        undo_neighbours,
        checks={
            "netns": entry_checks.matching(r"/proc/[1-9][0-9]*/ns/net|/(?!.*(^|/)\.\.(/|$))[^\x00\n]+"),
            "interface": entry_checks.interface,
            "strangers": entry_checks.matching(r"[0-9]{1,3}(\.[0-9]{1,3}){3}"),
        },
    )
}
