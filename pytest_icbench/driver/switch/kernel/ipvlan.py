# SPDX-License-Identifier: BSD-3-Clause
"""``ipvlan``: an ipvlan link in each node, on one lower link whose MAC address all of them share.

Frames are forwarded by IP addresses, in the natural mode ``l2`` and in ``l3``, which has no neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel import KernelPath
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.host.net import links, stacked
from pytest_icbench.model.endpoint import Endpoint

_LOWER, _FAR = "lower", "far"
_L3 = "l3"


class Ipvlan(KernelPath):
    """Forwards IPv4 packets between its links by their known IP addresses."""

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
