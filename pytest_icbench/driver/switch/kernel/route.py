# SPDX-License-Identifier: BSD-3-Clause
"""``route``: a router of the kernel between the endpoints, each in its own subnet; mode ``ip6`` routes IPv6.

A port has the MAC address of the endpoint's peer. So frames made by programs reach the router too, and arrive unchanged
except for the TTL. Many routes are added at once by rtnetlink(7): a million in seconds.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel import KernelPath, port_name
from pytest_icbench.driver.switch.common.routing import Router, RouterPort
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import links
from pytest_icbench.model import routes
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.routes import Share, network

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


class Route(KernelPath):
    """Forwards only IP packets of one version, by their addresses."""

    name = routes.ROUTER
    modes = ("ip6",)
    route_bytes: ClassVar[Mapping[int, int]] = {4: 256, 6: 640}

    def __init__(self) -> None:
        super().__init__()
        self._router: Router | None = None

    def node_end(self, attachment: Attachment) -> links.End:
        """Returns the end in the node, with its own subnet."""
        end = kernel.node_end(attachment)
        return replace(end, address=replace(attachment.address, prefix=32))

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """As any path of the kernel; then installs the table."""
        endpoints = super().start(session, spec, attachments)
        self._facts = replace(self._facts, conditions=self._router_of().install(session, self._add))
        return endpoints

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Gives each port the route to its endpoint, and each endpoint the way to the router."""
        version = routes.ip_version(self.name, spec.mode) or 4
        self._router = router = Router.of(version, spec, attachments)
        links.forward_packets(self.netns)
        for attachment in attachments:
            peer, port = attachment.peer or attachment.address.other_side, port_name(attachment)
            if version == 6:
                forward_ipv6(port, self.netns)
            links.serve_endpoint(port, self.netns, attachment.address, peer.mac)
            if version == 6:
                end = replace(attachment.address, ip=router.ports[attachment.index].end)
                links.serve_endpoint(port, self.netns, end, peer.mac)
            links.lead_through_router(self.node_end(attachment), peer)
        return self.endpoints(spec, attachments)

    def _router_of(self) -> Router:
        if self._router is None:
            raise ProvisionError(f"{self.name} was not started")
        return self._router

    def _add(self, port: RouterPort, part: Share) -> None:
        index = links.read_index(port_name(port.attachment), self.netns)
        add_routes(self.netns, network(self._router_of().version, part.first), part.count, port.end, index)

    def describe_config(self, spec: SwitchSpec, settings: Mapping[str, str], first: Attachment) -> Mapping[str, Any]:
        """Returns the configuration for results, with the table."""
        return {**super().describe_config(spec, settings, first), **self._router_of().facts()}
