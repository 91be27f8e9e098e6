# SPDX-License-Identifier: BSD-3-Clause
"""NICs that are the uplink of a switch, or the endpoint itself without a switch: they are taken and given back."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.protocol import Attachment, PortCounters, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.net import links, nic
from pytest_icbench.host.net.links import pin_netns
from pytest_icbench.host.resource import modules, pci
from pytest_icbench.model.uplink import Uplink

#: Seconds for which a card may lose its carrier when an AF_XDP application ends.
FLAP_S = 3.0
#: Name of the NIC in a switch's namespace.
UPLINK = "uplink0"


class NicUplink:
    """A NIC that the kernel drives, or one given to DPDK (``via`` is ``vfio``).

    Args:
        netns: path of the switch's network namespace, which outlives its processes; None for ``vfio``.
        mtu: layer 3 MTU in bytes.
        new_name: name of the interface there.
    """

    def __init__(
        self, session: HostSession, uplink: Uplink, netns: str | None, *, mtu: int, new_name: str = UPLINK
    ) -> None:
        self.uplink = uplink
        self._session = session
        self._netns = netns
        self._mtu = mtu
        self._name = new_name
        self._changes = Changes(session)

    def take(self, *, promiscuous: bool = False, up: bool = True) -> None:
        """Takes the NIC; ``give_back`` undoes it, also after a failure. Raises ProvisionError."""
        if self.uplink.via == "vfio":
            self._bind()
            return
        assert self._netns is not None
        self._session.nics[self.uplink.nic] = (self._netns, self._name)
        stay = nic.Stay(self._netns, self._name, self._mtu, promiscuous, up, self.uplink.via == "af_xdp")
        nic.take(self._changes, self.uplink.nic, stay)

    def _bind(self) -> None:
        root, name = self._session.root, self.uplink.nic
        if pci.find(root, name) is None:
            raise ProvisionError(f"--icbench-uplink: there is no PCI function {name}: name another one")
        for interface in pci.interfaces(root, name):
            nic.remember(self._changes, interface, name)
        modules.load(self._changes, ["vfio_iommu_type1", "vfio-pci"])
        pci.bind(self._changes, name, "vfio-pci")

    def await_carrier(self) -> None:
        """Waits for the carrier of a kernel NIC; DPDK waits for its own. Raises ProvisionError."""
        if self._netns is not None:
            nic.await_carrier(self._name, self._netns, nic=self.uplink.nic)

    def give_back(self) -> None:
        """Restores the NIC to the host. Idempotent. Raises ProvisionError with whatever could not be restored."""
        self._session.nics.pop(self.uplink.nic, None)
        self._changes.undo(f"the uplink {self.uplink.nic}")


def cable_fault(session: HostSession, uplink: Uplink) -> str | None:
    """Returns the fault of a taken NIC's cable; None without a fault, or if DPDK has the NIC."""
    if uplink.nic not in session.nics:
        return None
    netns, name = session.nics[uplink.nic]
    try:
        nic.await_carrier(name, netns, nic=uplink.nic, timeout_s=FLAP_S)
    except ProvisionError as error:
        return str(error)
    return None


class NicEndpoint:
    """A NIC with the endpoint's MAC address in a node: the reference link between two hosts, for one pair."""

    def __init__(self, session: HostSession, spec: SwitchSpec, attachment: Attachment) -> None:
        assert spec.uplink is not None
        self._session = session
        self._attachment = attachment
        # The name keeps the namespace, which would otherwise end with its processes.
        self._pin = pin_netns(session, attachment.node.netns, f"{spec.name}-up{attachment.index}")
        name = kernel.NODE_INTERFACE
        self._uplink = NicUplink(session, spec.uplink, self._pin, mtu=spec.mtu, new_name=name)

    def take(self) -> None:
        """Takes the NIC, gives it the endpoint's addresses and sets it up. Raises ProvisionError."""
        self._uplink.take(up=False)
        links.configure(kernel.node_end(self._attachment))
        self._uplink.await_carrier()

    def counters(self) -> PortCounters:
        """Returns the NIC's counters as those of a switch's port at its other end."""
        statistics = links.read_statistics(kernel.NODE_INTERFACE, self._attachment.node.netns)
        return kernel.port_counters(self._attachment.index, statistics, at_endpoint=True)

    def give_back(self) -> None:
        """Restores the NIC as ``NicUplink.give_back`` does. Raises ProvisionError."""
        self._uplink.give_back()  # if that fails, the namespace still holds it, for `icbench recover`
        links.delete_netns(self._session, self._pin)


def only_attachment(name: str, attachments: Sequence[Attachment]) -> Attachment:
    """Returns the only attachment, because a NIC is one endpoint. Raises ProvisionError if there are several."""
    if len(attachments) != 1:
        raise ProvisionError(f"{name} over a NIC joins one pair, not {len(attachments)}: lower --icbench-pairs")
    return attachments[0]
