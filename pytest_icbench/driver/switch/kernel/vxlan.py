# SPDX-License-Identifier: BSD-3-Clause
"""``vxlan``: two emulated hosts for the sides of the pairs, each a namespace with a bridge, and a VXLAN tunnel.

The tunnel runs over a veth pair, or over the kernel path that the mode names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_icbench.driver.node.protocol import NodeFacts
from pytest_icbench.driver.switch.common.kernel import KernelPath, port_name
from pytest_icbench.driver.switch.kernel.linux_bridge import LinuxBridge
from pytest_icbench.driver.switch.kernel.macvlan import Macvlan
from pytest_icbench.driver.switch.kernel.route import Route
from pytest_icbench.driver.switch.kernel.tc_redirect import TcRedirect
from pytest_icbench.driver.switch.kernel.veth import VethLink
from pytest_icbench.driver.switch.kernel.xdp import Xdp
from pytest_icbench.driver.switch.protocol import Attachment, Switch, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import links, stacked
from pytest_icbench.model.endpoint import Address, Endpoint
from pytest_icbench.model.path import Side

_BRIDGE, _TUNNEL = "br0", "vxlan0"
#: Bytes of IPv4, UDP, VXLAN and the inner Ethernet header in the underlay's MTU.
_OVERHEAD = 50
_NUMBER = 42
_HOSTS: tuple[tuple[Side, Address], ...] = (
    ("a", Address("198.19.0.1", "02:00:00:01:00:01")),
    ("b", Address("198.19.0.2", "02:00:00:01:00:02")),
)
_UNDERLAYS: dict[str, type[Switch]] = {cls.name: cls for cls in (LinuxBridge, Macvlan, TcRedirect, Xdp, Route)}


@dataclass(frozen=True, slots=True)
class _Host(NodeFacts):
    """A namespace that is a node for the underlay's driver."""

    path: str = ""

    @property
    def netns(self) -> str:
        return self.path


class Vxlan(KernelPath):
    """Two learning bridges with a tunnel between them."""

    name = "vxlan"
    learns = True
    least_ageing_s = 1.0
    modes = tuple(_UNDERLAYS)
    kinds = ("veth", "bridge", "vxlan")

    def __init__(self) -> None:
        super().__init__()
        self._hosts: dict[Side, str] = {}
        self._underlay: Switch | None = None

    def make_namespaces(self, session: HostSession, spec: SwitchSpec) -> None:
        """Makes the two hosts and the underlay between them. Raises ProvisionError."""
        attachments = []
        for index, (side, address) in enumerate(_HOSTS):
            self._hosts[side] = path = links.create_netns(session, f"{spec.name}-{side}")
            peer = _HOSTS[1 - index][1]
            host = _Host(f"host {side}", 0, path=path)
            attachments.append(Attachment(index, 1, side, address, host, spec.work_dir, peer))
        underlay_spec = replace(spec, name=f"{spec.name}u", mtu=spec.mtu + _OVERHEAD, mode=None, config={})
        self._underlay = VethLink() if spec.mode is None else _UNDERLAYS[spec.mode]()
        self._underlay.start(session, underlay_spec, attachments)

    def port_netns(self, attachment: Attachment) -> str:
        return self._hosts[attachment.side]

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes a bridge on each host, with the tunnel and the host's ports."""
        assert self.session is not None
        for index, (side, address) in enumerate(_HOSTS):
            netns, remote = self._hosts[side], _HOSTS[1 - index][1].ip
            links.bypass_bridge_filters(netns)
            links.create_bridge(self.session, _BRIDGE, netns, mtu=spec.mtu)
            links.set_up(_BRIDGE, netns)
            stacked.create_vxlan(_TUNNEL, netns, number=_NUMBER, local=address.ip, remote=remote, mtu=spec.mtu)
            links.set_up(_TUNNEL, netns)
            ports = [port_name(attachment) for attachment in attachments if attachment.side == side]
            with enter_netns(netns):
                for port in (_TUNNEL, *ports):
                    links.enslave(port, _BRIDGE)
        return self.endpoints(spec, attachments)

    def check(self) -> None:
        """Raises ProvisionError if a port, a tunnel's end or the underlay is gone."""
        super().check()
        for netns in self._hosts.values():
            if not links.exists(_TUNNEL, netns):
                raise ProvisionError(f"an end of the tunnel of {self.name} is gone: it was removed")
        if self._underlay is not None:
            self._underlay.check()

    def set_ageing(self, seconds: float) -> None:
        for netns in self._hosts.values():
            links.set_bridge_ageing(_BRIDGE, seconds, netns)

    def stop(self) -> None:
        """Removes the links of the nodes, the underlay and both hosts."""
        super().stop()
        if self._underlay is not None:
            self._underlay.stop()
            self._underlay = None
        if self.session is not None:
            for netns in self._hosts.values():
                links.delete_netns(self.session, netns)
        self._hosts.clear()
