# SPDX-License-Identifier: BSD-3-Clause
"""A NIC as an interface of VPP, by its plugin for AF_PACKET or AF_XDP."""

from __future__ import annotations

from pytest_icbench.driver.switch.common.nic_uplink import UPLINK, NicUplink
from pytest_icbench.driver.switch.protocol import SwitchSpec
from pytest_icbench.driver.switch.vpp.client import VppClient
from pytest_icbench.driver.switch.vpp.interfaces import PLUGINS, kernel_interface
from pytest_icbench.host.session import HostSession


class VppUplink:
    """The NIC in VPP's network namespace.

    Args:
        netns: the namespace's path.

    Attributes:
        plugin: VPP's plugin that drives it.
    """

    def __init__(self, session: HostSession, spec: SwitchSpec, netns: str) -> None:
        assert spec.uplink is not None
        self._xdp = spec.uplink.via == "af_xdp"
        self.plugin = PLUGINS["afxdp" if self._xdp else "afpacket"]
        self._nic = NicUplink(session, spec.uplink, netns, mtu=spec.mtu)

    def take(self) -> None:
        """Takes the NIC. Raises ProvisionError."""
        self._nic.take(promiscuous=True)

    def create(self, client: VppClient) -> int:
        """Makes the interface; returns its index. Raises ProvisionError, also if this VPP has no such plugin."""
        other = "without +af_xdp" if self._xdp else "for AF_XDP (NIC+af_xdp)"
        remedy = f"build it with the plugin, or name the NIC {other}"
        index = kernel_interface(client, UPLINK, self.plugin, f"the uplink takes: {remedy}")
        self._nic.await_carrier()
        return index

    def give_back(self) -> None:
        """Gives the NIC back after VPP has ended. Idempotent. Raises ProvisionError with what is not as before."""
        self._nic.give_back()
