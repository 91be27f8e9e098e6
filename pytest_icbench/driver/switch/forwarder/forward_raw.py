# SPDX-License-Identifier: BSD-3-Clause
"""``forward-raw``: the workload's forwarder over kernel interfaces, for endpoints with sockets. See ``forward``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.forwarder.forward import ForwarderSwitch
from pytest_icbench.driver.switch.protocol import Attachment, Needs, SwitchFacts, SwitchSpec
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.driver.workload.workload_version import workload_version
from pytest_icbench.errors import Unsupported, WorkloadError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links
from pytest_icbench.host.process import ProcessPlace
from pytest_icbench.model.case import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Endpoint


class ForwardRawSwitch(ForwarderSwitch):
    """A forwarder in its own network namespace, with raw sockets on the nodes' veth links. It polls on one core."""

    name = "forward-raw"
    family = "kernel"
    ports = (kernel.VETH,)
    # A raw socket would receive a train of datagrams in one piece, which no link carries.
    apis = (*(api for api in SOCKET_APIS if api != "udp-gso"), *NETDEV_APIS)
    default_apis = ("udp-mmsg",)

    def __init__(self) -> None:
        super().__init__()
        self._session: HostSession | None = None
        self._netns: str | None = None
        self._attached: list[Attachment] = []

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the workload's version. Raises Unsupported without it, or without veth links."""
        kernel.probe_links("veth")
        try:
            return SwitchFacts(version=workload_version().workload, program=str(spec_binary or workload_path()))
        except WorkloadError as error:
            raise Unsupported(str(error)) from None

    def probe_api(self, session: HostSession, api: str) -> None:
        kernel.probe_netdev_api(api)

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        return Needs(pollers=1)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes a veth port ``pN`` for each attachment and starts the forwarder on them. Raises ProvisionError."""
        options = self.options(spec)
        self._session = session
        self._netns = netns = links.create_netns(session, f"{spec.name}-fw")
        ports = [f"p{attachment.index}" for attachment in attachments]
        for attachment, port in zip(attachments, ports, strict=True):
            self._attached.append(attachment)
            links.create_pair(session, kernel.node_end(attachment), links.End(port, netns), mtu=spec.mtu)
        interfaces = [word for port in ports for word in ("-R", port)]
        process = session.spawner.start(
            [spec.binary or workload_path(), "forward", "--supervised", "--mmsg", *options, *interfaces],
            log=spec.work_dir / f"{self.name}.log",
            cpus=spec.worker_cpus[:1],
            place=ProcessPlace(netns, spec.work_dir),
            pipes=True,
        )
        self.run(Daemon(self.name, process), attachments)
        return [
            kernel.veth_endpoint(attachment, port, spec.mtu)
            for attachment, port in zip(attachments, ports, strict=True)
        ]

    def stop(self) -> None:
        """Ends the forwarder, then removes links and namespace."""
        super().stop()
        kernel.remove_ends(self._attached)
        self._attached.clear()
        if self._session is not None and self._netns is not None:
            links.delete_netns(self._session, self._netns)
            self._netns = None
