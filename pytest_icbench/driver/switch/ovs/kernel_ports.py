# SPDX-License-Identifier: BSD-3-Clause
"""Ports by which Open vSwitch's userspace datapath reaches containers of the kernel: AF_PACKET, AF_XDP, tap.

With ``afxdp`` a PMD thread polls a port. Of the others the daemon's main thread is told when there are frames. They
need neither DPDK nor huge pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pytest_icbench.driver.switch.common import kernel, kernel_ports
from pytest_icbench.driver.switch.common.kernel_ports import port_of
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.traffic import MTU_ETHERNET_FRAME_BYTES

_AFXDP, _TAP = "afxdp", "tap"
#: Open vSwitch's type of interface, by port kind.
TYPES: Mapping[str, str] = MappingProxyType(
    {"afpacket": "system", _AFXDP: "afxdp", "afxdp-nonpmd": "afxdp-nonpmd", _TAP: "tap"}
)
PORTS = tuple(TYPES)
#: Greatest frame in bytes with FCS: AF_XDP keeps a frame in one buffer of 2 KiB, and the MTU of a tap that has moved is
#: unknown to the daemon, which cuts what is longer.
FRAME_BYTES: Mapping[str, int] = MappingProxyType(
    dict.fromkeys((_AFXDP, "afxdp-nonpmd", _TAP), MTU_ETHERNET_FRAME_BYTES)
)


def polls(port: str) -> bool:
    """Whether PMD threads poll ports of this kind."""
    return port == _AFXDP


def shows_link(port: str) -> bool:
    """Whether the daemon sees the links of ports of this kind: a tap's is in its node."""
    return port != _TAP


def make_links(session: HostSession, spec: SwitchSpec, netns: str, attachments: Sequence[Attachment]) -> None:
    """Makes a veth link for each attachment, with its far end in the daemon's namespace. Raises ProvisionError.

    Taps are made by the daemon.
    """
    if spec.port != _TAP:
        kernel_ports.make_links(session, netns, attachments, mtu=spec.mtu)


def options(port: str) -> list[str]:
    """Returns the words of ovs-vsctl that an interface of a port kind has beside its type."""
    return ["options:xdp-mode=generic"] if port.startswith(_AFXDP) else []


def endpoints(spec: SwitchSpec, netns: str, attachments: Sequence[Attachment]) -> list[Endpoint]:
    """Gives each node its tap, if there are taps; returns the endpoints. Raises ProvisionError."""
    if spec.port == _TAP:
        kernel_ports.move_ports(netns, attachments)
    return [kernel.endpoint(attachment, port_of(attachment), spec.mtu) for attachment in attachments]
