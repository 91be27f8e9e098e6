# SPDX-License-Identifier: BSD-3-Clause
"""The switches of this package. The import starts nothing and needs neither root nor any switch."""

from __future__ import annotations

from pytest_icbench.driver.switch.attach import AttachedPath
from pytest_icbench.driver.switch.dpdk.basicfwd import BasicFwd
from pytest_icbench.driver.switch.dpdk.direct import DirectLink
from pytest_icbench.driver.switch.dpdk.testpmd import TestPmd
from pytest_icbench.driver.switch.forward import ForwardRawSwitch, ForwardSwitch
from pytest_icbench.driver.switch.kernel.ipvlan import Ipvlan
from pytest_icbench.driver.switch.kernel.linux_bridge import LinuxBridge
from pytest_icbench.driver.switch.kernel.macvlan import Macvlan
from pytest_icbench.driver.switch.kernel.macvtap import Macvtap
from pytest_icbench.driver.switch.kernel.route import Route
from pytest_icbench.driver.switch.kernel.tc_redirect import TcRedirect
from pytest_icbench.driver.switch.kernel.veth import Netkit, VethLink
from pytest_icbench.driver.switch.kernel.vxlan import Vxlan
from pytest_icbench.driver.switch.kernel.xdp import Xdp
from pytest_icbench.driver.switch.ovs.kernel_datapath import OvsKernel
from pytest_icbench.driver.switch.ovs.userspace_datapath import OpenVSwitch
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.switch.snabb import Snabb
from pytest_icbench.driver.switch.sriov import Sriov
from pytest_icbench.driver.switch.vpp.vpp_switch import Vpp


def builtin_switches() -> dict[str, type[Switch]]:
    """Returns the package's own drivers by name, in the order in which they are shown."""
    drivers: tuple[type[Switch], ...] = (
        VethLink,
        LinuxBridge,
        DirectLink,
        BasicFwd,
        TestPmd,
        OpenVSwitch,
        Vpp,
        Snabb,
        Sriov,
        ForwardSwitch,
        ForwardRawSwitch,
        Macvlan,
        Macvtap,
        Ipvlan,
        Netkit,
        Xdp,
        TcRedirect,
        Route,
        Vxlan,
        OvsKernel,
        AttachedPath,
    )
    return {driver.name: driver for driver in drivers}
