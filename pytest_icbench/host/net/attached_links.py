# SPDX-License-Identifier: BSD-3-Clause
"""Existing interfaces: reads their state, and removes the neighbours that the kernel learns in a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import entry_checks
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.journaled_changes import Holder
from pytest_icbench.host.net.links import link_index, netlink

_IFF_UP = 0x1
_IFF_LOOPBACK = 0x8
_AF_INET = 2
_NUD_PERMANENT = 0x80
_NUD_NOARP = 0x40


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
