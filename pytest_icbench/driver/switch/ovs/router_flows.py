# SPDX-License-Identifier: BSD-3-Clause
"""Flows of OpenFlow that route: untagged packets to a port's MAC address go by their destination. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_icbench.driver.switch.common.routing import Router, RouterPort
from pytest_icbench.model.routes import Share, network

#: The tables after the one that counts by port.
_ENTRANCE, _ROUTES = 1, 2
#: Above the flows of the table, whose addresses are others.
_HOST_PRIORITY, _ROUTE_PRIORITY = 20, 10
#: Bytes of the daemon's memory for a route by IP version, with its flow in the datapath.
ROUTE_BYTES = {4: 2600, 6: 2800}
#: Flows of the datapath without routes, by default.
_FLOW_LIMIT = 200_000


def port_action() -> str:
    """Returns the action of the flow that counts a port's frames."""
    return f"resubmit(,{_ENTRANCE})"


def port_flows(router: Router) -> list[str]:
    """Returns the flows to each endpoint, and those that let in what is for a port's MAC address."""
    ip, field = _words(router.version)
    lines = []
    for index, port in router.ports.items():
        entrance = f"table={_ENTRANCE},priority=1,in_port={index + 1},{ip},vlan_tci=0,dl_dst={port.mac}"
        lines.append(f"{entrance},actions=resubmit(,{_ROUTES})")
        lines.append(f"table={_ROUTES},priority={_HOST_PRIORITY},{ip},{field}={port.end},actions={_forward(port)}")
    return lines


def route_flows(version: int, port: RouterPort, part: Share) -> Iterator[str]:
    """Yields the flows of routes that lead to the endpoint of a port."""
    ip, field = _words(version)
    action = _forward(port)
    for number in range(part.first, part.first + part.count):
        target = network(version, number)
        yield f"table={_ROUTES},priority={_ROUTE_PRIORITY},{ip},{field}={target},actions={action}"


def flow_limit(routes: int) -> dict[str, str]:
    """Returns the daemon's option with which its datapath has a flow for each route."""
    return {"flow-limit": str(2 * routes)} if 2 * routes > _FLOW_LIMIT else {}


def _words(version: int) -> tuple[str, str]:
    return ("ip", "nw_dst") if version == 4 else ("ipv6", "ipv6_dst")


def _forward(port: RouterPort) -> str:
    return f"dec_ttl,mod_dl_src:{port.mac},mod_dl_dst:{port.end_mac},output:{port.attachment.index + 1}"
