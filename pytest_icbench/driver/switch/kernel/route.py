# SPDX-License-Identifier: BSD-3-Clause
"""``route``: a router of the kernel between the endpoints, each in its own subnet.

A port has the MAC address of the endpoint's peer. So frames made by programs reach the router too, and arrive unchanged
except for the TTL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel import KernelPath, port_name
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.host.net import links
from pytest_icbench.model.endpoint import Endpoint


class Route(KernelPath):
    """Forwards only IPv4 packets, by their addresses."""

    name = "route"
    broadcast = "none"
    unknown_unicast = "none"
    vlan = False
    hops = 1

    def node_end(self, attachment: Attachment) -> links.End:
        """Returns the end in the node, with its own subnet."""
        end = kernel.node_end(attachment)
        return replace(end, address=replace(attachment.address, prefix=32))

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Gives each port the route to its endpoint, and each endpoint the way to the router."""
        links.forward_packets(self.netns)
        for attachment in attachments:
            peer = attachment.peer or attachment.address.other_side
            links.serve_endpoint(port_name(attachment), self.netns, attachment.address, peer.mac)
            links.lead_through_router(self.node_end(attachment), peer)
        return self.endpoints(spec, attachments)
