# SPDX-License-Identifier: BSD-3-Clause
"""``veth`` and ``netkit``: one pair of interfaces for each pair of nodes, without a switch.

``veth`` is the reference link of kernel switches.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel import KernelPath
from pytest_icbench.driver.switch.common.nic_uplink import NicEndpoint, only_attachment
from pytest_icbench.driver.switch.protocol import Attachment, PortCounters, SwitchFacts, SwitchSpec
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links, stacked
from pytest_icbench.model.endpoint import Endpoint, Veth
from pytest_icbench.model.path import FramePath


class VethLink(kernel.KernelSwitch):
    """A cable of the kernel between the two nodes of each pair."""

    name = "veth"
    learns = False
    # Between two hosts the nodes have the NICs, so there is one pair.
    uplinks = ("kernel",)
    uplink_pairs = 1

    def __init__(self) -> None:
        self._nic: NicEndpoint | None = None
        self._attached: list[Attachment] = []

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Raises Unsupported if the kernel does not make veth pairs."""
        return SwitchFacts(version=kernel.probe_links("veth"))

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes one veth pair between the sides of each pair, both ends in the nodes. Raises ProvisionError."""
        self.session, self.cpus = session, spec.endpoint_cpus
        if spec.uplink is not None:
            attachment = only_attachment(self.name, attachments)
            self._nic = NicEndpoint(session, spec, attachment)
            self._nic.take()
            return [Veth(attachment.address, kernel.NODE_INTERFACE, None, spec.mtu)]
        for a, b in FramePath.over(attachments).wires(attachments):
            self._attached += [a, b]
            links.create_pair(session, kernel.node_end(a), kernel.node_end(b), mtu=spec.mtu)
        return [kernel.veth_endpoint(attachment, kernel.NODE_INTERFACE, spec.mtu) for attachment in attachments]

    def facts(self) -> SwitchFacts:
        return SwitchFacts(version=kernel.kernel_release())

    def counters(self) -> list[PortCounters] | None:
        """Returns the counters of the nodes' interfaces as those of ports at their other ends."""
        if self._nic is not None:
            return [self._nic.counters()]
        return kernel.endpoint_counters(self._attached)

    def stop(self) -> None:
        """Removes the links, or restores the NIC."""
        if self._nic is not None:
            self._nic.give_back()
        kernel.remove_ends(self._attached)
        self._attached.clear()


class Netkit(KernelPath):
    """A cable of the kernel between the two nodes of each pair, without a queue."""

    name = "netkit"
    segments = True
    kinds = ("netkit",)
    veth_ports = False

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes a netkit pair between the sides of each pair, both ends in the nodes."""
        for a, b in FramePath.over(attachments).wires(attachments):
            stacked.create_netkit(kernel.node_end(a), kernel.node_end(b), mtu=spec.mtu)
        return self.endpoints(spec, attachments)
