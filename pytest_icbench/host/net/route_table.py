# SPDX-License-Identifier: BSD-3-Clause
"""Many routes at once by rtnetlink(7): a million in seconds, because messages differ by their destination alone."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.namespaces import enter_netns

_NEW_ROUTE, _ERROR = 24, 2
_REQUEST, _ACK, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x200, 0x400
_DESTINATION, _OUT, _GATEWAY = 1, 4, 5
_MAIN, _STATIC, _UNIVERSE, _UNICAST, _ONLINK = 254, 4, 0, 1, 4
_HEADER, _ROUTE = "=IHHII", "=BBBBBBBBI"
#: Messages in a call; all of them fit a socket's buffer.
_AT_ONCE = 1000
#: Sysctls of an interface that forwards IPv6 packets and announces nothing.
_IPV6 = {"accept_dad": "0", "accept_ra": "0", "addr_gen_mode": "1", "forwarding": "1", "disable_ipv6": "0"}


def forward_ipv6(port: str, netns: str) -> None:
    """Makes a link of a router forward IPv6 packets. Raises ProvisionError if the kernel has no IPv6."""
    with enter_netns(netns):
        try:
            for place in ("all", port):
                for name, text in _IPV6.items():
                    Path(f"/proc/sys/net/ipv6/conf/{place}/{name}").write_text(text, encoding="ascii")
        except OSError as error:
            raise ProvisionError(
                f"this kernel forwards no IPv6 packets ({error.strerror}): boot it with IPv6"
            ) from None


def add_routes(netns: str, first: str, count: int, gateway: str, link: int) -> None:
    """Adds routes to consecutive prefixes through one gateway.

    Args:
        netns: path of the router's network namespace.
        first: the first prefix.
        gateway: address of the next hop, which needs no route.
        link: index of the link to it.

    Raises ProvisionError with the kernel's reason.
    """
    with enter_netns(netns), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.bind((0, 0))
        messages = _messages(ipaddress.ip_network(first), count, ipaddress.ip_address(gateway), link)
        for body, prefix in messages:
            netlink.send(body)
            if (code := _answer(netlink)) != 0:
                reason = os.strerror(code)
                remedy = ": take fewer routes, or free memory" if code in (errno.ENOMEM, errno.ENOBUFS) else ""
                raise ProvisionError(f"the kernel refused one of the routes from {prefix} on ({reason}){remedy}")


def _messages(
    first: ipaddress.IPv4Network | ipaddress.IPv6Network,
    count: int,
    gateway: ipaddress.IPv4Address | ipaddress.IPv6Address,
    link: int,
) -> Iterator[tuple[bytes, str]]:
    """Yields the messages of each call with their first prefix. The last message asks for an answer."""
    family, size = (socket.AF_INET, 4) if first.version == 4 else (socket.AF_INET6, 16)
    route = struct.pack(_ROUTE, family, first.prefixlen, 0, 0, _MAIN, _STATIC, _UNIVERSE, _UNICAST, _ONLINK)
    tail = struct.pack("=HH", 4 + size, _GATEWAY) + gateway.packed + struct.pack("=HHI", 8, _OUT, link)
    length = struct.calcsize(_HEADER) + len(route) + 4 + size + len(tail)
    rest = route + struct.pack("=HH", 4 + size, _DESTINATION)
    heads = [
        struct.pack(_HEADER, length, _NEW_ROUTE, _REQUEST | _EXCLUSIVE | _CREATE | flag, 1, 0) + rest
        for flag in (0, _ACK)
    ]
    step, start = first.num_addresses, int(first.network_address)
    for begin in range(0, count, _AT_ONCE):
        last = min(begin + _AT_ONCE, count) - 1
        targets = ((start + number * step).to_bytes(size) for number in range(begin, last + 1))
        body = b"".join([heads[begin + place == last] + target + tail for place, target in enumerate(targets)])
        yield body, str(type(first.network_address)(start + begin * step))


def _answer(netlink: socket.socket) -> int:
    """Returns the first error of a call, 0 without any: one for each refused message, then the one for the last."""
    data = netlink.recv(1 << 16)
    length, kind = struct.unpack_from("=IH", data)
    if kind != _ERROR or length < 20:
        return errno.EBADMSG
    return -int(struct.unpack_from("=i", data, 16)[0])
