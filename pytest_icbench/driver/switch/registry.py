# SPDX-License-Identifier: BSD-3-Clause
"""Which switches there are. Importing this starts nothing and needs neither root nor any switch."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_icbench.driver.switch.dpdk.basicfwd import BasicFwd
from pytest_icbench.driver.switch.dpdk.direct import Direct
from pytest_icbench.driver.switch.dpdk.testpmd import TestPmd
from pytest_icbench.driver.switch.forwarder.raw_switch import ForwardRaw
from pytest_icbench.driver.switch.forwarder.switch import Forward
from pytest_icbench.driver.switch.kernel.linux_bridge import LinuxBridge
from pytest_icbench.driver.switch.kernel.veth import VethLink
from pytest_icbench.driver.switch.ovs.switch import OpenVSwitch
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.switch.snabb.switch import Snabb
from pytest_icbench.driver.switch.sriov.switch import Sriov
from pytest_icbench.driver.switch.vpp.switch import Vpp
from pytest_icbench.model.case import Family

#: Words that stand for several switches.
GROUPS = ("all", "kernel", "dpdk")
#: Switch of the reference link, by family.
REFERENCE: Mapping[Family, str] = {"kernel": "veth", "dpdk": "direct"}


def builtin_switches() -> dict[str, type[Switch]]:
    """The package's own drivers by name, in the order in which they are shown."""
    drivers: tuple[type[Switch], ...] = (
        VethLink,
        LinuxBridge,
        Direct,
        BasicFwd,
        TestPmd,
        OpenVSwitch,
        Vpp,
        Snabb,
        Sriov,
        Forward,
        ForwardRaw,
    )
    return {driver.name: driver for driver in drivers}


def expand_group(group: str, switches: Mapping[str, type[Switch]]) -> list[str]:
    """Names that ``all``, ``kernel`` or ``dpdk`` stands for, in the mapping's order.

    A driver that is ``by_name_only`` is in none.

    Raises KeyError if ``group`` is none of ``GROUPS``.
    """
    if group not in GROUPS:
        raise KeyError(group)
    return [name for name, driver in switches.items() if group in ("all", driver.family) and not driver.by_name_only]
