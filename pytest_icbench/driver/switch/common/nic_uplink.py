# SPDX-License-Identifier: BSD-3-Clause
"""A NIC as the uplink of a switch, or as the endpoint itself where there is no switch. It is taken and given back."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.protocol import Attachment, PortCounters, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.changes import Changes
from pytest_icbench.host.net import links, nic
from pytest_icbench.host.net.links import pin_netns
from pytest_icbench.host.resource import modules, pci
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.uplink import Uplink

#: A card may lose its carrier for a moment when an AF_XDP application ends.
FLAP_S = 3.0
#: Name of the NIC where a switch has it, whatever the host calls it.
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
        """Takes the NIC. ``give_back`` undoes it, also after a failure in the middle. Raises ProvisionError."""
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
        """Waits until frames pass. DPDK itself waits for a NIC that it has. Raises ProvisionError."""
        if self._netns is not None:
            nic.await_carrier(self._name, self._netns, nic=self.uplink.nic)

    def give_back(self) -> None:
        """Gives the NIC back to the host as it was. Idempotent. Raises ProvisionError with what is not as before."""
        self._session.nics.pop(self.uplink.nic, None)
        self._changes.undo(f"the uplink {self.uplink.nic}")


def cable_fault(session: HostSession, uplink: Uplink) -> str | None:
    """Returns the fault of a taken NIC's cable in one sentence; None without one, or if the kernel lacks the NIC."""
    if uplink.nic not in session.nics:
        return None
    netns, name = session.nics[uplink.nic]
    try:
        nic.await_carrier(name, netns, nic=uplink.nic, timeout_s=FLAP_S)
    except ProvisionError as error:
        return str(error)
    return None


class NicEndpoint:
    """A NIC in a node, for the reference link between two hosts: no switch, one pair.

    Its MAC address becomes the endpoint's.
    """

    def __init__(self, session: HostSession, spec: SwitchSpec, attachment: Attachment) -> None:
        assert spec.uplink is not None
        self._session = session
        self._attachment = attachment
        # A name keeps the namespace: otherwise it ends with its processes, and a veth with the namespace.
        self._pin = pin_netns(session, attachment.node.netns, f"{spec.name}-up{attachment.index}")
        name = kernel.NODE_INTERFACE
        self._uplink = NicUplink(session, spec.uplink, self._pin, mtu=spec.mtu, new_name=name)

    def take(self) -> None:
        """Takes the NIC, gives it the endpoint's addresses and sets it up. Raises ProvisionError."""
        self._uplink.take(up=False)
        links.configure(kernel.node_end(self._attachment))
        self._uplink.await_carrier()

    def counters(self) -> PortCounters:
        """Returns what the NIC counted, as a switch's port at its other end would count it."""
        statistics = links.statistics(kernel.NODE_INTERFACE, self._attachment.node.netns)
        return kernel.port_counters(self._attachment.index, statistics, at_endpoint=True)

    def give_back(self) -> None:
        """Gives the NIC back, as ``NicUplink.give_back`` does. Raises ProvisionError."""
        self._uplink.give_back()  # if that fails, the namespace still holds it, for `icbench recover`
        links.delete_netns(self._session, self._pin)


def only_attachment(name: str, attachments: Sequence[Attachment]) -> Attachment:
    """Returns the only attachment: a NIC is one endpoint. Raises ProvisionError if there are several."""
    if len(attachments) != 1:
        raise ProvisionError(f"{name} over a NIC joins one pair, not {len(attachments)}: lower --icbench-pairs")
    return attachments[0]
