# SPDX-License-Identifier: BSD-3-Clause
"""``ipvlan``: a link of the kernel's ipvlan in each node, upon one lower link whose MAC address all of them have.

Frames find their way by IP addresses, in the natural mode ``l2`` as in ``l3``, which has no neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel_ports import KernelPath
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.host.net import links, stacked
from pytest_icbench.model.endpoint import Endpoint

_LOWER, _FAR = "lower", "far"
_L3 = "l3"


class Ipvlan(KernelPath):
    """It knows the IP addresses of its links and passes IPv4 packets between them."""

    name = "ipvlan"
    broadcast = "all"
    unknown_unicast = "none"
    hops = 0
    modes = (_L3,)
    kinds = ("veth", "ipvlan")
    veth_ports = False

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes the lower link, and an ipvlan link in each node."""
        assert self.session is not None
        links.create_pair(self.session, links.End(_LOWER, self.netns), links.End(_FAR, self.netns), mtu=spec.mtu)
        mac = links.read_mac(_LOWER, self.netns)
        placed = []
        for attachment in attachments:
            peer = attachment.peer or attachment.address.other_side
            placed.append(
                replace(attachment, address=replace(attachment.address, mac=mac), peer=replace(peer, mac=mac))
            )
            stacked.create_ipvlan(_LOWER, self.netns, kernel.node_end(placed[-1]), mode=spec.mode or "l2", mtu=spec.mtu)
        return self.endpoints(spec, placed)
