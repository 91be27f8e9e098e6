# SPDX-License-Identifier: BSD-3-Clause
"""The uses of a NIC by its host, so that no measurement cuts the host or a connection to it off."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_IFF_LOOPBACK = 0x8
_AF_INET, _AF_INET6 = 2, 10
_TABLE_LOCAL = 255


def use_of(route: Any, index: int, link: Any, client: str) -> str | None:
    """Returns the reason why a NIC is not to be taken, to be put behind its name; None if there is none.

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
        return "has the address of this very ssh connection"  # the address itself could end up in a report
    return None


def _ssh_addresses() -> Iterator[str]:
    """Yields this host's addresses in the ssh connections of the process and of its ancestors.

    sudo removes the variable from its own environment, but not from that of the shell that started it.
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
