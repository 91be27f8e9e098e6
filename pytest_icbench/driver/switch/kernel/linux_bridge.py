# SPDX-License-Identifier: BSD-3-Clause
"""``linux-bridge``: a learning bridge of the kernel in its own network namespace.

The host's packet filters and br_netfilter do not apply there. The bridge is removed with its namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.nic_uplink import UPLINK, NicUplink
from pytest_icbench.driver.switch.protocol import Attachment, PortCounters, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import links
from pytest_icbench.model.endpoint import Endpoint

_BRIDGE = "br0"


def _segment(attachment: Attachment) -> int:
    return attachment.segment or 0


class LinuxBridge(kernel.KernelSwitch):
    """A bridge that learns, without spanning tree, multicast snooping, IPv6 and ARP."""

    name = "linux-bridge"
    learns = True
    least_ageing_s = 1.0
    uplinks = ("kernel",)
    machine_ports = (kernel.VETH,)

    def __init__(self) -> None:
        self._uplink: NicUplink | None = None
        self._netns: str | None = None
        self._attached: list[Attachment] = []
        self._bridges: list[str] = []
        self._mtu = 0

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Raises Unsupported if the kernel does not make bridges and veth pairs."""
        return SwitchFacts(version=kernel.probe_links("veth", "bridge"))

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Creates a bridge for each segment, with a veth port ``pN`` per attachment. Raises ProvisionError."""
        self.session, self.cpus, self._mtu = session, spec.endpoint_cpus, spec.mtu
        self._netns = netns = links.create_netns(session, f"{spec.name}-br")
        links.bypass_bridge_filters(netns)
        self._bridges = [f"br{segment}" for segment in range(1 + max(map(_segment, attachments), default=0))]
        for bridge in self._bridges:
            links.create_bridge(session, bridge, netns, mtu=spec.mtu, grouped=True)
            links.set_up(bridge, netns)
        endpoints: list[Endpoint] = []
        for attachment in attachments:
            port = f"p{attachment.index}"
            self._attached.append(attachment)
            end = links.End(port, netns, grouped=True)
            kernel.connect(session, attachment, end, mtu=spec.mtu)
            with enter_netns(netns):
                links.enslave(port, self._bridges[_segment(attachment)])
            endpoints.append(kernel.veth_endpoint(attachment, port, spec.mtu))
        if spec.uplink is not None:
            self._uplink = NicUplink(session, spec.uplink, netns, mtu=spec.mtu)
            self._uplink.take()
            with enter_netns(netns):
                links.enslave(UPLINK, _BRIDGE)
            self._uplink.await_carrier()
        return endpoints

    def facts(self) -> SwitchFacts:
        """Returns the kernel's release and the bridge's settings."""
        settings = {"stp": False, "multicast_snooping": False, "learning": True, "netfilter": False}
        return SwitchFacts(version=kernel.kernel_release(), config=settings)

    def _states(self) -> dict[str, links.LinkState]:
        """Returns the links of the namespace, by name. Raises ProvisionError if it, the bridge or a port is gone."""
        try:
            states = links.read_states(self._netns)
        except ProvisionError:
            if self._netns is not None and Path(self._netns).exists():
                raise
            raise ProvisionError("the network namespace of linux-bridge is gone: it was removed") from None
        for name in self._bridges:
            if name not in states:
                raise ProvisionError(f"the bridge {name} of linux-bridge is gone: it was removed")
        for name in self._ports:
            if name not in states:
                raise ProvisionError(f"the port {name} of linux-bridge is gone: it or its other end was removed")
        return states

    @property
    def _ports(self) -> list[str]:
        return [f"p{attachment.index}" for attachment in self._attached]

    def check(self) -> None:
        """Raises ProvisionError if the bridge, a port or their namespace is gone."""
        self._states()

    def fault(self) -> str | None:
        """Returns a message if a port or the bridge is down or has a smaller MTU; None otherwise."""
        try:
            states = self._states()
        except ProvisionError as error:
            return str(error)
        # Ports first: the bridge's MTU follows theirs.
        for kind, names in (("port", self._ports), ("bridge", self._bridges)):
            for name in names:
                if not states[name].up:
                    return f"the {kind} {name} of linux-bridge was set down: set it up"
                if (mtu := states[name].mtu) < self._mtu:
                    return f"the {kind} {name} of linux-bridge has an MTU of {mtu}, not the {self._mtu} of its start"
        return None

    def set_ageing(self, seconds: float) -> None:
        for bridge in self._bridges:
            links.set_bridge_ageing(bridge, seconds, self._netns)

    def counters(self) -> list[PortCounters] | None:
        """Returns the counters of the bridge's ports."""
        return [
            kernel.port_counters(
                attachment.index, links.read_statistics(f"p{attachment.index}", self._netns), at_endpoint=False
            )
            for attachment in self._attached
        ]

    def stop(self) -> None:
        """Removes ports, bridge and namespace."""
        session = self.session
        if session is None:
            return
        if self._uplink is not None:
            self._uplink.give_back()
        if self._netns is not None:
            try:
                links.remove_grouped(self._netns)
            except ProvisionError:  # the namespace is gone
                kernel.remove_ends(self._attached)
            links.delete_netns(session, self._netns)
            self._netns = None
        self._attached.clear()
