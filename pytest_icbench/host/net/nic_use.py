# SPDX-License-Identifier: BSD-3-Clause
"""What a host needs a NIC for, so that nobody loses the host, or a connection to it, to a measurement."""

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
    """The reason why a NIC is not to be taken, as it goes on after its name; None if there is none.

    Args:
        route: netlink, in the NIC's network namespace.
        client: address by which this host holds an ssh connection to another one, empty for none.
    """
    if link["flags"] & _IFF_LOOPBACK:
        return "is the loopback"
    if (master := link.get_attr("IFLA_MASTER")) is not None:
        owner = route.get_links(master)[0].get_attr("IFLA_IFNAME")
        return f"is a port of {owner}"
    above = [each.get_attr("IFLA_IFNAME") for each in route.get_links() if _is_on(each, index)]
    if above:
        return f"carries {', '.join(above)}"
    if any(_is_default_by(each, index) for family in (_AF_INET, _AF_INET6) for each in route.get_routes(family=family)):
        return "has the host's default route"
    by_ssh = {_plain(address) for address in (client, *_ssh_addresses())} - {""}
    mine = {
        _plain(str(each.get_attr("IFA_LOCAL") or each.get_attr("IFA_ADDRESS"))) for each in route.get_addr(index=index)
    }
    if by_ssh & mine:
        return "has the address of this very ssh connection"  # which itself could end up in a report
    return None


def _ssh_addresses() -> Iterator[str]:
    """This host's, of the ssh connections that the process or one of those before it came by.

    sudo takes the variable out of the environment, but not out of that of the shell in which it was typed.
    """
    name, pid = "SSH_CONNECTION", os.getpid()
    found = [os.environ.get(name, "")]
    with suppress(OSError, ValueError):
        while pid > 1:
            variables = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
            found += [each.partition("=")[2] for each in variables if each.startswith(f"{name}=")]
            pid = int(
                Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
            )
    for connection in found:
        yield from connection.split()[2:3]


def _plain(address: str) -> str:
    """Without a zone, and an IPv4 address as such where IPv6 carries it."""
    return address.partition("%")[0].lower().removeprefix("::ffff:")


def _is_on(link: Any, index: int) -> bool:
    """Whether an interface (VLAN, macvlan, tunnel) sends its frames by another one of this namespace."""
    info = link.get_attr("IFLA_LINKINFO")
    kind = None if info is None else info.get_attr("IFLA_INFO_KIND")
    if link.get_attr("IFLA_LINK") != index or link["index"] == index or link.get_attr("IFLA_LINK_NETNSID") is not None:
        return False
    return kind is not None and kind != "veth"  # whose IFLA_LINK is its other end


def _is_default_by(each: Any, index: int) -> bool:
    """Whether it is a default route through an interface, whoever made it, also as one of several ways."""
    if each["dst_len"] or each.get_attr("RTA_TABLE") == _TABLE_LOCAL:
        return False
    hops = each.get_attr("RTA_MULTIPATH") or ()
    return index in (each.get_attr("RTA_OIF"), *(hop["oif"] for hop in hops))
