# SPDX-License-Identifier: BSD-3-Clause
"""A switch that routes: its ports, its table, and the frames that prove that it routes.

A port has the MAC address of its endpoint's peer, so that frames made by programs reach the router, too. A frame comes
out with the TTL lowered by one and the port's MAC address as its source.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model import routes
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.routes import Share, network, own_address

#: Routes between two reports of progress.
PART = 20_000
#: Bound of an installation in seconds: for any table, and for each route.
_LEAST_S, _ROUTE_S = 20.0, 0.0003


@dataclass(frozen=True, slots=True)
class RouterPort:
    """A port of a router.

    Attributes:
        mac: its MAC address.
        ip: its own address, without a network.
        end: the IP address of its endpoint, of the router's version.
        end_mac: the MAC address of its endpoint.
    """

    attachment: Attachment
    mac: str
    ip: str
    end: str
    end_mac: str

    @classmethod
    def of(cls, attachment: Attachment, version: int) -> RouterPort:
        """Returns the port of an attachment; its own address is of 198.19.0.0/16 (RFC 2544)."""
        address, peer = attachment.address, attachment.peer or attachment.address.other_side
        own = f"198.19.{attachment.pair}.{1 if attachment.side == 'a' else 2}"
        return cls(attachment, peer.mac, own_address(version, own), own_address(version, address.ip), address.mac)


@dataclass(frozen=True, slots=True)
class Router:
    """The ports of a router by index, and its table."""

    version: int
    ports: dict[int, RouterPort]
    table: Sequence[tuple[int, Share]]

    @classmethod
    def of(cls, version: int, spec: SwitchSpec, attachments: Sequence[Attachment]) -> Router:
        """Returns the router for a request."""
        ports = {attachment.index: RouterPort.of(attachment, version) for attachment in attachments}
        return cls(version, ports, spec.routes)

    @property
    def size(self) -> int:
        """The number of routes in the table, without those of the endpoints."""
        return sum(part.count for _, part in self.table)

    def install(self, session: HostSession, add: Callable[[RouterPort, Share], None]) -> dict[str, float]:
        """Installs the table in parts and reports progress; returns how long it took, for a result's conditions.

        ``add``: installs routes that lead to the endpoint of a port. Raises ProvisionError after a time that depends on
        the number of routes.
        """
        if not self.size:
            return {}
        began, done, most_s = time.monotonic(), 0, _LEAST_S + self.size * _ROUTE_S
        for target, whole in self.table:
            for first in range(whole.first, whole.first + whole.count, PART):
                part = Share(first, min(PART, whole.first + whole.count - first))
                add(self.ports[target], part)
                done += part.count
                spent = time.monotonic() - began
                session.progress(f"routes {done:,}/{self.size:,}")
                if spent > most_s and done < self.size:
                    raise ProvisionError(
                        f"{done:,} of {self.size:,} routes were installed within {most_s:.0f} s: take fewer with"
                        " --icbench-routes"
                    )
        return {"routes_installed_s": round(time.monotonic() - began, 2)}

    def facts(self) -> dict[str, object]:
        """Returns its part of a result's configuration."""
        described: dict[str, object] = {"ip_version": self.version, "routes": self.size}
        return described | ({"first": network(self.version, 0)} if self.size else {})


def destinations(version: int, peer: Address, part: Share | None) -> list[str]:
    """Returns the addresses that a proof sends to: the peer's, and those of a share's first, middle and last route."""
    numbers = () if part is None else (part.first, part.first + part.count // 2, part.first + part.count - 1)
    return [own_address(version, peer.ip), *dict.fromkeys(routes.destination(version, number) for number in numbers)]
