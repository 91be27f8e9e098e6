# SPDX-License-Identifier: BSD-3-Clause
"""``macvtap``: as ``macvlan``, but each node has the character device of its link, as a virtual machine has.

Programs read and write whole frames there. The links stay in the path's namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.kernel.macvlan import LOWER, Macvlan
from pytest_icbench.driver.switch.protocol import Attachment, PortCounters, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links, stacked
from pytest_icbench.model.api_techniques import TAP_API
from pytest_icbench.model.endpoint import Address, Endpoint, Tap
from pytest_icbench.model.switch_traits import Kind


class Macvtap(Macvlan):
    """Knows the addresses of its links, so it neither learns nor floods."""

    name = "macvtap"
    ports = ("tap",)
    apis = (TAP_API,)
    default_apis = (TAP_API,)
    config_keys: ClassVar[Mapping[str, Kind]] = {}
    kinds = ("veth", "bridge", "macvtap")

    def __init__(self) -> None:
        super().__init__()
        self._devices: list[Path] = []
        self._ports: list[Attachment] = []

    def devices(self, session: HostSession, spec: SwitchSpec, addresses: Sequence[Address]) -> Sequence[Sequence[Path]]:
        """Makes the path; returns the character device of each link."""
        self.session = session
        self.make_namespaces(session, spec)
        self.join_lower(spec)
        for number, address in enumerate(addresses):
            end = links.End(f"t{number}", self.netns)
            self._devices.append(
                stacked.create_macvtap(
                    LOWER, self.netns, end, mac=address.mac, mode=spec.mode or "bridge", mtu=spec.mtu
                )
            )
        return [[device] for device in self._devices]

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Returns the endpoints of the devices, which are in the nodes by now."""
        self.cpus, self._ports = spec.endpoint_cpus, list(attachments)
        self._facts = SwitchFacts(version=kernel.kernel_release(), config={"mode": spec.mode or "default"})
        return [
            Tap(attachment.address, str(device)) for attachment, device in zip(attachments, self._devices, strict=True)
        ]

    def check(self) -> None:
        """Raises ProvisionError if a device is gone."""
        for device in self._devices:
            if not device.exists():
                raise ProvisionError(f"{device} of {self.name} is gone: its link was removed")

    def counters(self) -> list[PortCounters] | None:
        """Returns the counters of the links. A link counts a frame before its device has room for it, or has not."""
        counters = []
        for number, port in enumerate(self._ports):
            statistics = links.read_statistics(f"t{number}", self.netns)
            statistics["rx_packets"] -= statistics["rx_dropped"]
            counters.append(kernel.port_counters(port.index, statistics, at_endpoint=True))
        return counters

    def stop(self) -> None:
        """Removes the namespace with all that is in it."""
        self._devices.clear()
        super().stop()
