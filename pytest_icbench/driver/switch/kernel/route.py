# SPDX-License-Identifier: BSD-3-Clause
"""``route``: a router of the kernel between the endpoints, each of which is alone in its subnet.

A port has the MAC address of the endpoint's peer. So frames that a program makes by itself reach the router too, and
arrive as they were sent, but for the TTL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel_ports import KernelPath, port_of
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.host.net import links
from pytest_icbench.model.endpoint import Endpoint


class Route(KernelPath):
    """It forwards IPv4 packets by their addresses and nothing else."""

    name = "route"
    broadcast = "none"
    unknown_unicast = "none"
    vlan = False
    hops = 1

    def node_end(self, attachment: Attachment) -> links.End:
        """Returns the end in the node, with a subnet of its own."""
        end = kernel.node_end(attachment)
        return replace(end, address=replace(attachment.address, prefix=32))

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Gives each port the route to its endpoint, and each endpoint the way to the router."""
        links.forward_packets(self.netns)
        for attachment in attachments:
            peer = attachment.peer or attachment.address.other_side
            links.serve_endpoint(port_of(attachment), self.netns, attachment.address, peer.mac)
            links.lead_through_router(self.node_end(attachment), peer)
        return self.endpoints(spec, attachments)
