# SPDX-License-Identifier: BSD-3-Clause
"""``direct``: two DPDK applications over shared memory without a switch, the reference link of DPDK switches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.nic_uplink import NicEndpoint, NicUplink, only_attachment
from pytest_icbench.driver.switch.common.userspace_ports import MEMIF, VHOST_USER, VHOST_USER_PACKED, socket_path
from pytest_icbench.driver.switch.protocol import Attachment, Needs, Switch, SwitchFacts, SwitchSpec
from pytest_icbench.driver.switch.sriov import vfio_devices
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import Address, Endpoint, Memif, Nic, Pci, VhostUser
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.traffic import MAX_FRAME_BYTES


class DirectLink(Switch):
    """A socket between the endpoints of each pair; no switch runs."""

    name = "direct"
    family = "dpdk"
    takes_binary = False
    ports = queue_ports = (VHOST_USER, VHOST_USER_PACKED, MEMIF)
    apis = ("dpdk",)
    default_apis = ("dpdk",)
    default_cores = 0
    scalable = False
    learns = False
    max_frame_bytes = MAX_FRAME_BYTES
    max_pairs = None
    segments = joins_nodes = True
    # Between two hosts each endpoint is a NIC, so there is one pair.
    uplinks = ("kernel", "af_xdp", "vfio")
    uplink_pairs = 1

    def __init__(self) -> None:
        self._nic: NicEndpoint | NicUplink | None = None

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns no version: there are no requirements."""
        return SwitchFacts()

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        return Needs()

    def devices(self, session: HostSession, spec: SwitchSpec, addresses: Sequence[Address]) -> Sequence[Sequence[Path]]:
        """Returns the devices of a NIC that is given to DPDK, for the node. Raises ProvisionError."""
        if spec.uplink is None or spec.uplink.via != "vfio":
            return ()
        self._nic = uplink = NicUplink(session, spec.uplink, None, mtu=spec.mtu)
        uplink.take()
        return [vfio_devices(session.root, spec.uplink.nic)] * len(addresses)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Connects each two ports by a socket, or gives the endpoint its NIC. Raises ProvisionError.

        With vhost-user the front-end serves the socket, with memif side b. A vhost back-end that connects to a waiting
        front-end is up in milliseconds; the other way round its library checks for events once a second. A port of a
        network function always serves, because endpoints come and go.
        """
        if spec.uplink is not None:
            attachment = only_attachment(self.name, attachments)
            if spec.uplink.via == "vfio":
                return [Pci(attachment.address, spec.uplink.nic)]
            self._nic = NicEndpoint(session, spec, attachment)
            self._nic.take()
            driver: Literal["af_packet", "af_xdp"] = "af_packet" if spec.uplink.via == "kernel" else "af_xdp"
            return [Nic(attachment.address, kernel.NODE_INTERFACE, driver)]
        endpoints: list[Endpoint] = []
        for a, b in FramePath.over(attachments).wires(attachments):
            endpoints += _joined(spec.port, a, b)
        return endpoints

    def facts(self) -> SwitchFacts:
        return SwitchFacts()

    def stop(self) -> None:
        """Restores the NIC."""
        if self._nic is not None:
            self._nic.give_back()


def _joined(port: str, a: Attachment, b: Attachment) -> list[Endpoint]:
    """Returns both ends of a socket. A network function's port serves it; in a chain the first one does."""
    path, packed = str(socket_path(a, "d")), port == VHOST_USER_PACKED
    to_function = a.between or b.between
    ends: list[Endpoint] = []
    for attachment, back in ((a, a.between), (b, not a.between)):
        if port == MEMIF:
            ends.append(Memif(attachment.address, path, role="server" if back else "client"))
        else:
            role: Literal["back-end", "front-end"] = "back-end" if back else "front-end"
            ends.append(VhostUser(attachment.address, path, role, serves=back == to_function, packed=packed))
    return ends
