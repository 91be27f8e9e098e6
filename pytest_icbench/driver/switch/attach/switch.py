# SPDX-License-Identifier: BSD-3-Clause
"""``attach``: the path between containers that run already. Nothing is made, and nothing of theirs is changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.switch.attach.places import INTERFACE, VFIO, Place, find_places
from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.ports import MEMIF, VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.protocol import Attachment, PortCounters, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.net import attached_links
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.endpoint import Endpoint, Memif, Pci, Veth, VhostUser
from pytest_icbench.model.existing import ATTACH
from pytest_icbench.model.path import FramePath

#: Sockets that leave an interface as it is; AF_XDP would give it a program.
_INTERFACE_APIS = ("udp", "udp-mmsg", "udp-gso", "raw", "raw-mmsg")


class Attach(kernel.KernelSwitch):
    """What is between containers that run already: bridges, routers, a virtual switch with its sockets, a card."""

    name = ATTACH
    by_name_only = True
    learns = False
    ports: ClassVar[tuple[str, ...]] = (INTERFACE, VHOST_USER, VHOST_USER_PACKED, MEMIF, VFIO)
    apis: ClassVar[tuple[str, ...]] = (*_INTERFACE_APIS, "dpdk")
    segments = False

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._strangers: list[tuple[Place, tuple[str, ...]]] = []

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        """Sockets over interfaces, DPDK over everything else."""
        return _INTERFACE_APIS if port == INTERFACE else ("dpdk",)

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the kernel's release: what is there is looked at with the topology."""
        return SwitchFacts(version=kernel.release())

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Returns the endpoints as they are. Raises ProvisionError if one is not there, or not as it has to be."""
        self.session, self.cpus = session, spec.endpoint_cpus
        ends = [(attachment.existing, attachment.address) for attachment in attachments if attachment.existing]
        if len(ends) < len(attachments):
            raise ProvisionError(f"{ATTACH} has an endpoint without a container that runs already")
        self._places = find_places(ends, port=spec.port, raw=False, mtu=spec.mtu, root=session.root)
        if spec.port == INTERFACE:
            self._mark_neighbours(session)
        return [self._endpoint(place, spec) for place in self._places]

    def _mark_neighbours(self, session: HostSession) -> None:
        """Records which addresses are no neighbours yet that frames between the endpoints will make neighbours."""
        path = FramePath.over(self._places)
        for index, place in enumerate(self._places):
            assert place.interface is not None
            assert place.way is not None
            peer, target = self._places[path.peer(index)], place.target
            known = attached_links.neighbours(place.interface.name, target.netns)
            strangers = tuple({place.way.gateway or peer.address.ip, peer.address.ip} - known)
            if strangers:
                attached_links.keep_neighbours(session, place.interface.name, target.netns, target.inode, strangers)
                self._strangers.append((place, strangers))

    @staticmethod
    def _endpoint(place: Place, spec: SwitchSpec) -> Endpoint:
        if place.interface is not None:
            return Veth(place.address, place.interface.name, None, spec.mtu)
        if place.socket is None:
            assert place.existing.pci is not None
            return Pci(place.address, place.existing.pci)
        if spec.port == MEMIF:
            return Memif(place.address, str(place.socket), role="client")
        return VhostUser(place.address, str(place.socket), packed=spec.port == VHOST_USER_PACKED)

    def facts(self) -> SwitchFacts:
        """Returns the kernel's release, and the interface of each endpoint."""
        interfaces = {
            place.existing.container: place.interface.name for place in self._places if place.interface is not None
        }
        return SwitchFacts(version=kernel.release(), config=interfaces)

    def check(self) -> None:
        """Raises ProvisionError if a container has ended."""
        for place in self._places:
            if place.target.has_ended:
                raise ProvisionError(f"{place.existing.container} has ended during the run: start it, and run again")

    def counters(self) -> list[PortCounters] | None:
        """Returns None: the interfaces also count what is not the measurement's."""
        return None

    def stop(self) -> None:
        """Takes back the neighbours that the kernel has learned. Everything else is as it was."""
        assert self.session is not None or not self._strangers
        while self._strangers and self.session is not None:
            place, strangers = self._strangers.pop()
            assert place.interface is not None
            attached_links.forget_neighbours(
                self.session, place.interface.name, place.target.netns, place.target.inode, strangers
            )
        self._places.clear()
