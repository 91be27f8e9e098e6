# SPDX-License-Identifier: BSD-3-Clause
"""Routing: which switches route packets, the routes of their tables, and who sends to which of them. Pure.

Route n of IPv4 is the n-th /28 of 10.0.0.0/8, and of IPv6 the n-th /64 of fd0a::/32. A sender's flows take the routes
of its share in turn, so that each lookup finds another one. A share leads to the other end of the sender's pair.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_icbench.wording import THOUSANDS, counted, shortened

#: The kernel's router, which routes IPv4 in its natural mode.
ROUTER = "route"
#: Modes of a switch that route packets, with their IP version.
ROUTER_MODES: Mapping[str, int] = MappingProxyType({"ip4": 4, "ip6": 6})
#: The workload's PATTERN_ROUTES_MAX.
MAX_ROUTES = 1_000_000
#: Pattern of routes in a case's id.
LABEL = r"routes\d+[kM]?"
_BASES = {4: int(ipaddress.IPv4Address("10.0.0.0")), 6: int(ipaddress.IPv6Address("fd0a::"))}
_STEPS = {4: 16, 6: 1 << 64}
#: Length of the prefix of a route by IP version.
PREFIX_BITS: Mapping[int, int] = MappingProxyType({4: 28, 6: 64})
#: Prefix of the IPv6 address of an endpoint, which its IPv4 address follows, and of its network.
_IPV6_PREFIX = "fd69:6362:656e:6368::"


@dataclass(frozen=True, slots=True)
class Share:
    """The routes that the frames of one sender take: numbers from ``first`` on."""

    first: int
    count: int

    @property
    def option(self) -> str:
        """The value of the workload's ``--routes``."""
        return f"{self.first}:{self.count}"


def ip_version(switch: str, mode: str | None) -> int | None:
    """Returns the IP version of the packets that a switch routes in a mode; None: it forwards frames."""
    if mode is None:
        return 4 if switch == ROUTER else None
    return ROUTER_MODES.get(mode)


def label(routes: int) -> str:
    """Returns the label in ids: ``routes100k``."""
    return f"routes{shortened(routes)}"


def parse(text: str) -> int:
    """Returns the number of a label without its word: ``100k``."""
    return int(text.rstrip("kM")) * THOUSANDS[text[len(text.rstrip("kM")) :]]


def share(routes: int, senders: int, sender: int) -> Share:
    """Returns the share of one of several senders; ``sender`` counts from 0."""
    least, more = divmod(routes, senders)
    return Share(sender * least + min(sender, more), least + (sender < more))


def network(version: int, number: int) -> str:
    """Returns the prefix of a route, ``10.0.0.16/28``."""
    address = _BASES[version] + number * _STEPS[version]
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    return f"{kind(address)}/{PREFIX_BITS[version]}"


def destination(version: int, number: int) -> str:
    """Returns the address below a route to which its frames go."""
    first = ipaddress.ip_address(network(version, number).partition("/")[0])
    return str(first + 1)


def own_address(version: int, ip: str) -> str:
    """Returns an endpoint's address of an IP version, given its IPv4 address."""
    return ip if version == 4 else str(ipaddress.IPv6Address(f"{_IPV6_PREFIX}{ip}"))


def few_flows(flows: int, least: int) -> str | None:
    """Returns the warning that a sender's flows do not take all of its ``least`` routes; None if they do."""
    if flows >= least:
        return None
    taken = f"{counted(flows, 'flow')} look{'s' if flows == 1 else ''} up {flows:,} of the {least:,} routes of a sender"
    return f"{taken}, not the whole table: take more with --icbench-flows {shortened(least)}"
