# SPDX-License-Identifier: BSD-3-Clause
"""A router of the kernel in a network namespace: host routes, forwarding, permanent neighbours. All end with it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pytest_icbench.host.namespaces import entered
from pytest_icbench.host.net.links import End, link_index, netlink
from pytest_icbench.model.endpoint import Address

#: The router as each endpoint sees it, on a network that leads nowhere else.
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
    with entered(netns):
        for name, text in _FORWARDING.items():
            with suppress(FileNotFoundError):
                Path("/proc/sys/net/ipv4", name).write_text(text, encoding="ascii")


def serve(port: str, netns: str, endpoint: Address, mac: str) -> None:
    """Gives a router's port a MAC address and the route to the endpoint behind it. Raises ProvisionError."""
    with netlink(netns, doing=f"the route to {endpoint.ip}") as route:
        index = link_index(route, port)
        route.link("set", index=index, address=mac)
        route.route("add", dst=endpoint.ip, dst_len=32, oif=index, scope=_SCOPE_LINK)
        route.neigh("replace", index=index, dst=endpoint.ip, lladdr=endpoint.mac, state="permanent")


def lead_all(device: str, netns: str) -> None:
    """Sets a link up and makes it the way to every address without another one. Raises ProvisionError."""
    with netlink(netns, doing=f"the route to {device}") as route:
        index = link_index(route, device)
        route.link("set", index=index, state="up")
        route.route("add", dst="0.0.0.0", dst_len=0, oif=index, scope=_SCOPE_LINK)


def lead_through_router(end: End, peer: Address) -> None:
    """Makes an endpoint, which is alone in its subnet, send what is for its peer to a router.

    Args:
        peer: its MAC address is that of the router's port.

    Raises ProvisionError.
    """
    with netlink(end.netns, doing=f"the route of {end.name}") as route:
        index = link_index(route, end.name)
        route.neigh("replace", index=index, dst=GATEWAY, lladdr=peer.mac, state="permanent")
        route.route("add", dst=GATEWAY, dst_len=32, oif=index, scope=_SCOPE_LINK)
        route.route("add", dst=peer.ip, dst_len=32, gateway=GATEWAY, oif=index)
