# SPDX-License-Identifier: BSD-3-Clause
"""Ports that are links of the kernel, and the common part of its paths beside bridge and veth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.protocol import Attachment, PortCounters, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.namespaces import entered
from pytest_icbench.host.net import ethtool, links
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.switch_traits import Kind

#: A switch in user space reads a frame as it is in memory: nobody finishes what a socket leaves to the device.
UNFINISHED = {"checksum": "false", "gso": "false", "tso": "false"}
#: The key of a user's configuration with the offloads of ports and endpoints.
OFFLOADS = "offloads"


def port_of(attachment: Attachment) -> str:
    """Returns the name of an attachment's port in the path's namespace."""
    return f"p{attachment.index}"


def make_links(session: HostSession, netns: str, attachments: Sequence[Attachment], *, mtu: int) -> None:
    """Makes a veth link for each attachment, with its port in a userspace switch's namespace. Raises ProvisionError."""
    for attachment in attachments:
        end = kernel.node_end(attachment)
        links.create_pair(session, end, links.End(port_of(attachment), netns), mtu=mtu)
        ethtool.apply_settings(session, [(end.name, attachment.node.netns)], UNFINISHED)


def move_ports(netns: str, attachments: Sequence[Attachment]) -> None:
    """Moves ports that a userspace switch made in its namespace into the nodes. Raises ProvisionError."""
    for attachment in attachments:
        end = kernel.node_end(attachment)
        with entered(netns):
            links.move(port_of(attachment), end)


class KernelPath(kernel.KernelSwitch):
    """A path of the kernel in a network namespace of its own, with which everything of it ends.

    A driver says in ``kinds`` which links it needs, and makes the path in ``join``. With ``veth_ports`` each attachment
    has a veth link, whose far end is its port ``pN``; else ``join`` makes the links in the nodes.

    Attributes:
        preset: offloads that the path needs in another way than the kernel has them.
    """

    # The groups keep the switches that they had: the paths are compared with each other by their names.
    by_name_only = True
    learns = False
    segments = False
    config_keys: ClassVar[Mapping[str, Kind]] = {OFFLOADS: "table"}
    kinds: ClassVar[tuple[str, ...]] = ("veth",)
    veth_ports: ClassVar[bool] = True
    preset: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self._netns: str | None = None
        self._attached: list[Attachment] = []
        self._facts = SwitchFacts()

    @property
    def netns(self) -> str:
        """The path of its namespace. Raises ProvisionError if it was not started."""
        if self._netns is None:
            raise ProvisionError(f"{self.name} was not started")
        return self._netns

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Raises Unsupported with the kernel's option if the kernel does not make such links."""
        return SwitchFacts(version=kernel.probe_links(*self.kinds))

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes the namespace, the ports and the path. Raises ProvisionError."""
        settings = {**self.preset, **ethtool.check_settings(spec.config.get(OFFLOADS, {}))}
        self.session, self.cpus = session, spec.endpoint_cpus
        self.make_namespaces(session, spec)
        for attachment in attachments:
            self._attached.append(attachment)
            if self.veth_ports:
                port = links.End(port_of(attachment), self.netns_of(attachment))
                links.create_pair(session, self.node_end(attachment), port, mtu=spec.mtu)
        endpoints = self.join(spec, attachments)
        places = [(attachment.interface, attachment.node.netns) for attachment in attachments]
        if self.veth_ports:
            places += [(port_of(attachment), self.netns_of(attachment)) for attachment in attachments]
        ethtool.apply_settings(session, places, settings)
        self._facts = SwitchFacts(version=kernel.release(), config=self.told(spec, settings, attachments[0]))
        return endpoints

    def make_namespaces(self, session: HostSession, spec: SwitchSpec) -> None:
        """Makes the namespace of the path. Raises ProvisionError."""
        self._netns = links.create_netns(session, f"{spec.name}-path")

    def netns_of(self, attachment: Attachment) -> str:
        """Returns the path of the namespace in which an attachment's port is."""
        return self.netns

    def node_end(self, attachment: Attachment) -> links.End:
        """Returns the end of an attachment's link in its node."""
        return kernel.node_end(attachment)

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes the path between the ports; returns the endpoints in the attachments' order. Raises ProvisionError."""
        raise NotImplementedError

    def endpoints(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Returns the endpoints of ports ``pN``, or of links in the nodes whose far end has no name."""
        ports = [port_of(attachment) if self.veth_ports else None for attachment in attachments]
        return [
            kernel.endpoint(attachment, port, spec.mtu) for attachment, port in zip(attachments, ports, strict=True)
        ]

    def told(self, spec: SwitchSpec, settings: Mapping[str, str], first: Attachment) -> Mapping[str, Any]:
        """Returns the configuration for results: the mode, and the offloads in force."""
        in_force: dict[str, Any] = {"endpoint": ethtool.read_offloads(first.interface, first.node.netns)}
        if self.veth_ports:
            in_force["port"] = ethtool.read_offloads(port_of(first), self.netns_of(first))
        rest = {key: settings[key] for key in (ethtool.THREADED, ethtool.RPS) if key in settings}
        return {"mode": spec.mode or "default", OFFLOADS: {**in_force, **rest}}

    def facts(self) -> SwitchFacts:
        """Returns the kernel's release, the mode and the offloads in force."""
        return self._facts

    def check(self) -> None:
        """Raises ProvisionError if a port is gone."""
        for attachment in self._attached if self.veth_ports else ():
            if not links.exists(port_of(attachment), self.netns_of(attachment)):
                raise ProvisionError(f"the port {port_of(attachment)} of {self.name} is gone: it was removed")

    @property
    def counts_at_ports(self) -> bool:
        """Whether every frame is counted at its ports; else the endpoints' counters stand for them."""
        return self.veth_ports

    def counters(self) -> list[PortCounters] | None:
        """Returns the counters of the ports, or those of the endpoints as a port would count."""
        ports = self.counts_at_ports
        places = [
            (port_of(attachment), self.netns_of(attachment)) if ports else (attachment.interface, attachment.node.netns)
            for attachment in self._attached
        ]
        return [
            kernel.port_counters(attachment.index, links.statistics(*place), at_endpoint=not ports)
            for attachment, place in zip(self._attached, places, strict=True)
        ]

    def stop(self) -> None:
        """Removes the links of the nodes and the namespace with all that is in it."""
        session = self.session
        if session is None:
            return
        kernel.remove_ends(self._attached)
        self._attached.clear()
        if self._netns is not None:
            links.delete_netns(session, self._netns)
            self._netns = None
