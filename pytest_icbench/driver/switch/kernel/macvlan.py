# SPDX-License-Identifier: BSD-3-Clause
"""``macvlan``: a macvlan link in each node, on one lower link.

In the natural mode ``bridge`` a frame goes from link to link. In ``vepa`` it leaves by the lower link, and a bridge at
the far end sends it back (hairpin), as an external switch would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel import KernelPath
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import links, stacked
from pytest_icbench.model.api_techniques import SOCKET_APIS
from pytest_icbench.model.endpoint import Endpoint

LOWER, FAR = "lower", "far"
_BRIDGE = "br0"
_VEPA = "vepa"


class Macvlan(KernelPath):
    """Knows the addresses of its links, so it neither learns nor floods."""

    name = "macvlan"
    # DPDK's net_af_xdp gets no socket on such a link.
    apis: ClassVar[tuple[str, ...]] = (*SOCKET_APIS, "af_packet")
    broadcast = "all"
    unknown_unicast = "none"
    modes = (_VEPA,)
    kinds = ("veth", "bridge", "macvlan")
    veth_ports = False

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes the lower link, in ``vepa`` the bridge at its far end, and a macvlan link in each node."""
        self.join_lower(spec)
        for attachment in attachments:
            end = kernel.node_end(attachment)
            stacked.create_macvlan(LOWER, self.netns, end, mode=spec.mode or "bridge", mtu=spec.mtu)
        return self.endpoints(spec, attachments)

    def join_lower(self, spec: SwitchSpec) -> None:
        """Makes the lower link, and in ``vepa`` the bridge at its far end."""
        assert self.session is not None
        links.create_pair(self.session, links.End(LOWER, self.netns), links.End(FAR, self.netns), mtu=spec.mtu)
        if spec.mode == _VEPA:
            links.bypass_bridge_filters(self.netns)
            links.create_bridge(self.session, _BRIDGE, self.netns, mtu=spec.mtu)
            links.set_up(_BRIDGE, self.netns)
            with enter_netns(self.netns):
                links.enslave(FAR, _BRIDGE)
            stacked.reflect(FAR, self.netns)
