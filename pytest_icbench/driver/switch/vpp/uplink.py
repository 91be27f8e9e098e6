# SPDX-License-Identifier: BSD-3-Clause
"""A NIC as an interface of VPP, by its plugin for AF_PACKET or AF_XDP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_icbench.driver.switch.common.nic_uplink import UPLINK, NicUplink
from pytest_icbench.driver.switch.protocol import SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.net import links
from pytest_icbench.host.session import HostSession

if TYPE_CHECKING:
    from pytest_icbench.driver.switch.vpp.client import VppClient

_ETHERNET = 1
_QDISC_BYPASS = 1
_XDP_RING = 2048


class VppUplink:
    """The NIC in a network namespace, in which VPP runs.

    Attributes:
        plugin: VPP's plugin that drives it.
        netns: the namespace's path.
    """

    def __init__(self, session: HostSession, spec: SwitchSpec) -> None:
        assert spec.uplink is not None
        self._session = session
        self._xdp = spec.uplink.via == "af_xdp"
        self.plugin = "af_xdp_plugin.so" if self._xdp else "af_packet_plugin.so"
        self.netns = links.create_netns(session, f"{spec.name}-vpp")
        self._nic = NicUplink(session, spec.uplink, self.netns, mtu=spec.mtu)

    def take(self) -> None:
        """Takes the NIC. Raises ProvisionError."""
        self._nic.take(promiscuous=True)

    def create(self, client: VppClient) -> int:
        """Makes the interface; returns its index. Raises ProvisionError, also if this VPP has no such plugin."""
        message = "af_xdp_create_v3" if self._xdp else "af_packet_create_v3"
        if not client.knows(message):
            raise ProvisionError(
                f"this vpp has no plugin {self.plugin}, which the uplink takes: build it with the plugin, or name the"
                f" NIC {'without +af_xdp' if self._xdp else 'for AF_XDP (NIC+af_xdp)'}"
            )
        if self._xdp:
            reply = client.call(
                message, host_if=UPLINK, name=UPLINK, rxq_num=1, rxq_size=_XDP_RING, txq_size=_XDP_RING, mode=0, flags=0
            )
        else:
            reply = client.call(
                message,
                mode=_ETHERNET,
                use_random_hw_addr=True,
                host_if_name=UPLINK,
                num_rx_queues=1,
                num_tx_queues=1,
                flags=_QDISC_BYPASS,
            )
        self._nic.await_carrier()
        return int(reply.sw_if_index)

    def give_back(self) -> None:
        """Gives the NIC back after VPP has ended. Idempotent. Raises ProvisionError with what is not as before."""
        self._nic.give_back()
        links.delete_netns(self._session, self.netns)
