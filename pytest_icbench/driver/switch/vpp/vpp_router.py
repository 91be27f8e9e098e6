# SPDX-License-Identifier: BSD-3-Clause
"""VPP as a router: addresses and neighbours of its ports, and its table, by its command line."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_icbench.driver.switch.common.routing import Router, RouterPort
from pytest_icbench.driver.switch.vpp.program import Memory
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.routes import Share, network

if TYPE_CHECKING:
    from pytest_icbench.driver.switch.vpp.client import VppClient

#: Seconds for the routes of one command.
_PART_S = 60.0
#: Prefixes in a command that names them.
_NAMED = 500
#: Seconds for the update of a million routes after a link has changed; the walks that wait, as VPP shows them.
_WALKS_S = 120.0
_WAITING = re.compile(r"Occupancy:(\d+)")
#: Bytes of the heap for a route by IP version, and of the statistics for each thread, which count a route's frames.
HEAP_BYTES = {4: 600, 6: 900}
_STATISTICS_BYTES = 96


def with_routes(memory: Memory, version: int, routes: int, threads: int) -> Memory:
    """Returns the memory of a VPP with that many routes."""
    heap, statistics = routes * HEAP_BYTES[version] >> 20, routes * _STATISTICS_BYTES * threads >> 20
    return memory._replace(heap_mib=memory.heap_mib + heap, statistics_mib=memory.statistics_mib + statistics)


def port_commands(port: RouterPort, version: int, name: str) -> list[str]:
    """Returns the lines that make an interface the port of a router. Pure."""
    bits = 32 if version == 4 else 128
    return [
        f"set interface mac address {name} {port.mac}",
        *([f"enable ip6 interface {name}", f"ip6 nd {name} ra-suppress"] if version == 6 else []),
        f"set interface ip address {name} {port.ip}/{bits}",
        f"set ip neighbor static {name} {port.end} {port.end_mac}",
        f"ip route add {port.end}/{bits} via {port.end} {name}",
    ]


def route_commands(version: int, port: RouterPort, name: str, part: Share) -> Iterator[str]:
    """Yields the lines that add routes which lead to the endpoint of a port. Pure.

    A count steps over IPv4 prefixes; over those of IPv6 it does not step by a defined width, so they are all named.
    """
    way = f"via {port.end} {name}"
    if version == 4:
        yield f"ip route add count {part.count} {network(version, part.first)} {way}"
        return
    numbers = range(part.first, part.first + part.count)
    for begin in range(0, part.count, _NAMED):
        prefixes = " ".join(network(version, number) for number in numbers[begin : begin + _NAMED])
        yield f"ip route add {prefixes} {way}"


def join(client: VppClient, router: Router, interfaces: dict[int, int], mtu: int) -> list[str]:
    """Makes the interfaces ports of a router; returns the lines. Raises ProvisionError with VPP's reason."""
    names = _names(client)
    lines: list[str] = []
    for index, port in router.ports.items():
        client.call("sw_interface_set_mtu", sw_if_index=interfaces[index], mtu=[mtu, 0, 0, 0])
        lines += port_commands(port, router.version, names[interfaces[index]])
    _run(client, lines)
    return lines


def add(client: VppClient, router: Router, interfaces: dict[int, int], port: RouterPort, part: Share) -> None:
    """Adds routes. Raises ProvisionError with VPP's reason."""
    name = _names(client)[interfaces[port.attachment.index]]
    for line in route_commands(router.version, port, name, part):
        client.command(line, _PART_S)


def await_walks(client: VppClient) -> None:
    """Waits until all routes follow their ports' links, which come and go with the endpoints' processes.

    VPP updates the routes of a link one by one, and drops their frames until then. Raises ProvisionError.
    """
    deadline = time.monotonic() + _WALKS_S
    while any(map(int, _WAITING.findall(client.command("show fib walk")))):
        if time.monotonic() > deadline:
            raise ProvisionError(
                f"vpp has not updated the routes of its ports within {_WALKS_S:.0f} s: take fewer routes"
            )
        time.sleep(0.02)


def _run(client: VppClient, lines: Sequence[str]) -> None:
    for line in lines:
        client.command(line)


def _names(client: VppClient) -> dict[int, str]:
    return {item.sw_if_index: item.interface_name for item in client.call("sw_interface_dump")}
