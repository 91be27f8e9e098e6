# SPDX-License-Identifier: BSD-3-Clause
"""``route``: a router of the kernel between the endpoints, each in its own subnet; mode ``ip6`` routes IPv6.

A port has the MAC address of the endpoint's peer. So frames made by programs reach the router too, and arrive unchanged
except for the TTL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel import KernelPath, port_name
from pytest_icbench.driver.switch.common.routing import Router, RouterPort
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links
from pytest_icbench.host.net.route_table import add_routes, forward_ipv6
from pytest_icbench.model import routes
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.routes import Share, network


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
