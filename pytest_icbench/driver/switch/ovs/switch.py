# SPDX-License-Identifier: BSD-3-Clause
"""``ovs``: Open vSwitch's userspace datapath with DPDK, as a learning switch (the NORMAL action) over vhost-user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.switch.common import vhost_events
from pytest_icbench.driver.switch.common.cores import check_cores, share_queues
from pytest_icbench.driver.switch.common.daemon import SAMPLE_S, DaemonSwitch
from pytest_icbench.driver.switch.common.kernel import probe_netdev_api
from pytest_icbench.driver.switch.common.kernel_ports import port_of
from pytest_icbench.driver.switch.common.nic_uplink import UPLINK, NicUplink
from pytest_icbench.driver.switch.common.ports import (
    VHOST_USER,
    VHOST_USER_PACKED,
    check_socket_path,
    endpoint_of,
    socket_path,
)
from pytest_icbench.driver.switch.dpdk.dpdk_process import START_S
from pytest_icbench.driver.switch.ovs import kernel_ports
from pytest_icbench.driver.switch.ovs.daemons import OvsDaemons, find_installation
from pytest_icbench.driver.switch.ovs.memory import memory_mib
from pytest_icbench.driver.switch.ovs.output import (
    any_queue_disabled,
    parse_cycles,
    parse_down,
    parse_drops,
    parse_flows,
    parse_table,
    polling_cores,
)
from pytest_icbench.driver.switch.protocol import Attachment, Busy, Needs, PortCounters, SwitchFacts, SwitchSpec
from pytest_icbench.driver.workload.eal import netdev
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.case import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Endpoint, VhostUser
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.traffic import MAX_FRAME_BYTES, carries_jumbo
from pytest_icbench.model.uplink import Uplink

_BRIDGE = "br0"
#: OVS serves the socket: an endpoint that comes is accepted at once.
_SERVER = "dpdkvhostuser"
#: The endpoint serves the socket: OVS looks for it once a second.
_CLIENT = "dpdkvhostuserclient"
#: Number of the uplink's port, beyond all attachments'.
_UPLINK_PORT = 1000
#: Descriptors of the uplink: a burst of all local endpoints has room.
_UPLINK_RING = 2048
_PACKETS = re.compile(r"n_packets=(\d+)")


class OpenVSwitch(DaemonSwitch):
    """A bridge with a PMD thread on each worker core."""

    name = "ovs"
    family = "dpdk"
    ports = (VHOST_USER, VHOST_USER_PACKED, *kernel_ports.PORTS)
    queue_ports = (VHOST_USER, VHOST_USER_PACKED)
    ports_by_name = ports_without_hugepages = kernel_ports.PORTS
    apis = ("dpdk", *SOCKET_APIS, *NETDEV_APIS)
    default_apis = ("dpdk",)
    default_cores = 1
    scalable = True
    learns = True
    least_ageing_s = 15.0
    max_frame_bytes = MAX_FRAME_BYTES
    port_frame_bytes = kernel_ports.FRAME_BYTES
    max_pairs = None
    segments = True
    uplinks = ("kernel", "af_xdp", "vfio")
    config_keys: ClassVar[Mapping[str, Kind]] = {"other_config": "table", "flows": "texts"}

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        """Returns DPDK for vhost-user, sockets and DPDK's drivers of interfaces for ports to the kernel."""
        return (*SOCKET_APIS, *NETDEV_APIS) if port in kernel_ports.PORTS else ("dpdk",)

    def __init__(self) -> None:
        self._daemons: OvsDaemons | None = None
        self._uplink: NicUplink | None = None
        self._ports: list[tuple[int, str]] = []
        self._cpus: dict[int, int] = {}
        self._has_user_flows = False
        self._queues = 1
        self._polls = self._shows_links = True
        self._facts = SwitchFacts()

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the versions of the daemon and its DPDK. Raises Unsupported if a file or DPDK is missing."""
        installation = find_installation(session, spec_binary)
        config = {"dpdk": installation.dpdk}
        return SwitchFacts(version=installation.version, config=config, program=str(installation.vswitchd))

    def probe_api(self, session: HostSession, api: str) -> None:
        """Raises Unsupported if ``api`` lacks its DPDK driver or kernel socket."""
        probe_netdev_api(api)

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        """Returns its resources. Raises Unsupported for more cores than receive queues: a queue belongs to one core."""
        return self.needs_of_queues(pairs, cores, 1, jumbo=jumbo)

    def needs_of_queues(self, pairs: int, cores: int, queues: int, *, jumbo: bool = False) -> Needs:
        """Returns ``needs`` with so many queue pairs a port."""
        check_cores(self.name, cores, pairs, queues)
        return Needs(hugepages_mib=memory_mib(len(FramePath(pairs).endpoints), jumbo, queues), pollers=cores)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Starts database and daemon, then adds bridge and ports. Raises ProvisionError with the log's tail."""
        installation = find_installation(session, spec.binary)
        check_socket_path(spec.work_dir / "vswitchd.ctl")  # the longest name of those that it makes
        to_kernel = spec.port in kernel_ports.PORTS
        self._polls = not to_kernel or kernel_ports.polls(spec.port)
        self._shows_links = kernel_ports.shows_link(spec.port)
        self._queues = spec.queues
        for attachment in () if to_kernel else attachments:
            socket_path(attachment)
        self._daemons = daemons = OvsDaemons(session, spec, installation, len(attachments))
        daemons.start_database()
        ports = len(attachments) + (spec.uplink is not None)
        config = _other_config(session, spec, attachments, memory_mib(ports, carries_jumbo(spec.mtu), spec.queues))
        if to_kernel and spec.uplink is None:
            config = {"pmd-cpu-mask": config["pmd-cpu-mask"]}  # without DPDK
        config = {**config, **spec.config.get("other_config", {})}
        settings = [f"other_config:{key}={_quoted(value)}" for key, value in config.items()]
        daemons.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *settings)
        # The main thread forwards what no PMD thread polls: as a worker.
        daemons.start_switch(None if self._polls else spec.worker_cpus)
        self.daemon = daemons.switch
        port_type = self._wait_for_types(daemons, spec.port, dpdk="dpdk-init" in config)
        if spec.uplink is not None:
            self._uplink = NicUplink(session, spec.uplink, daemons.netns, mtu=spec.mtu)
            self._uplink.take(promiscuous=True)
        endpoints = self._add_ports(session, daemons, spec, attachments, port_type)
        self._facts = SwitchFacts(
            version=installation.version,
            config={"dpdk": installation.dpdk, "other_config": config, "port_type": port_type},
        )
        return endpoints

    @staticmethod
    def _wait_for_types(daemons: OvsDaemons, port: str, *, dpdk: bool) -> str:
        """Waits until the daemon, with DPDK if ``dpdk``, knows its types of port; returns the type for a port kind."""
        types: list[str] = []

        def ready() -> bool:
            nonlocal types
            columns = "--columns=dpdk_initialized,iface_types"
            row = parse_table(daemons.vsctl("--format=json", columns, "list", "Open_vSwitch"))[0]
            types = row["iface_types"]
            return (row["dpdk_initialized"] is True or not dpdk) and bool(types)

        failure = "has not initialized DPDK" if dpdk else "has not told its types of port"
        daemons.switch.wait_until(ready, failure=failure, timeout_s=START_S)
        for port_type in (kernel_ports.TYPES[port],) if port in kernel_ports.TYPES else (_SERVER, _CLIENT):
            if port_type in types:
                return port_type
        raise ProvisionError(f"this Open vSwitch has no {port} ports (it offers {', '.join(types)})")

    def _add_ports(
        self,
        session: HostSession,
        daemons: OvsDaemons,
        spec: SwitchSpec,
        attachments: Sequence[Attachment],
        port_type: str,
    ) -> list[Endpoint]:
        commands = ["add-br", _BRIDGE, "--", "set", "Bridge", _BRIDGE, "datapath_type=netdev"]
        endpoints: list[Endpoint] = []
        cores = share_queues(attachments, len(spec.worker_cpus), spec.queues)
        to_kernel = spec.port in kernel_ports.PORTS
        if to_kernel:
            kernel_ports.make_links(session, spec, daemons.netns, attachments)
        for attachment in attachments:
            name = port_of(attachment) if to_kernel else socket_path(attachment).name
            self._ports.append((attachment.index, name))
            commands += ["--", "add-port", _BRIDGE, name, "--", "set", "Interface", name, f"type={port_type}"]
            commands += [f"mtu_request={spec.mtu}", f"ofport_request={attachment.index + 1}"]
            places = (f"{queue}:{spec.worker_cpus[at]}" for queue, at in enumerate(cores[attachment.index]))
            commands.append(f'other_config:pmd-rxq-affinity="{",".join(places)}"')
            if to_kernel:
                commands += kernel_ports.options(spec.port)
            else:
                endpoints.append(_vhost_endpoint(spec.port, attachment, served=port_type == _CLIENT))
                if port_type == _CLIENT:
                    commands.append(f"options:vhost-server-path={_quoted(str(socket_path(attachment)))}")
        numbers = {name: index + 1 for index, name in self._ports}
        if spec.uplink is not None:
            numbers[UPLINK] = _UPLINK_PORT
            # The next worker in turn. A single worker has all ports.
            cpu = spec.worker_cpus[len(attachments) % len(spec.worker_cpus)]
            commands += _uplink_port(spec.uplink, spec.mtu, cpu)
        daemons.vsctl(*commands, timeout_s=int(START_S))
        daemons.check_ports(numbers)
        if port_type == _SERVER:
            vhost_events.wake(daemons.switch.process.pid)
        # They do the same as the one NORMAL flow of a bridge without a controller, but count by port: a vhost port that
        # OVS serves has no counters. The datapath's flows match on the port anyway.
        flows = [
            f"priority=1,in_port={attachment.index + 1},actions={_action(attachment, attachments)}"
            for attachment in attachments
        ]
        if spec.uplink is not None:
            flows.append(f"priority=1,in_port={_UPLINK_PORT},actions=NORMAL")
        user_flows: Sequence[str] = spec.config.get("flows", ())
        self._has_user_flows = bool(user_flows)
        daemons.ofctl("add-flows", _BRIDGE, "-", text="\n".join([*flows, *user_flows]))
        return kernel_ports.endpoints(spec, daemons.netns, attachments) if to_kernel else endpoints

    def add_flows(self, flows: Sequence[str]) -> None:
        """Adds flows of a network function, which take frames from the flows that count by port.

        Raises ProvisionError with the words of ovs-ofctl.
        """
        self._has_user_flows = True
        self.daemons.ofctl("add-flows", _BRIDGE, "-", text="\n".join(flows))

    def ofctl(self, command: str, *arguments: str) -> str:
        """Returns the output of ``ovs-ofctl`` on the bridge. Raises ProvisionError."""
        return self.daemons.ofctl(command, _BRIDGE, *arguments)

    def packets_by_cookie(self, cookie: str) -> int:
        """Returns the packets of the flows with a cookie, up to date. Raises ProvisionError."""
        self.daemons.revalidate()
        return sum(map(int, _PACKETS.findall(self.ofctl("dump-flows", f"cookie={cookie}/-1"))))

    def facts(self) -> SwitchFacts:
        """Returns the versions of Open vSwitch and DPDK, ``other_config``, and the type of the ports."""
        return self._facts

    @property
    def daemons(self) -> OvsDaemons:
        """The running daemons. Raises ProvisionError if it was not started."""
        if self._daemons is None:
            raise ProvisionError("ovs was not started")
        return self._daemons

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if a daemon has died."""
        self.daemons.check()

    def set_ageing(self, seconds: float) -> None:
        """Sets the bridge's ageing time. Raises ProvisionError."""
        self.daemons.vsctl("set", "Bridge", _BRIDGE, f"other-config:mac-aging-time={round(seconds)}")

    def connected(self) -> None:
        """Waits until OVS has taken over the queues of every endpoint: it drops frames for a port before that.

        A port's link is up before its queues are. A link that it does not see is not waited for.

        Raises ProvisionError with the log's tail.
        """
        if not self._shows_links:
            return
        daemons, ports = self.daemons, {index + 1 for index, _ in self._ports}
        if self._uplink is not None:
            ports.add(_UPLINK_PORT)

        shown, patience_s = "", max(START_S, daemons.patience_s)

        def up() -> bool:
            nonlocal shown
            if parse_down(daemons.ofctl("dump-ports-desc", _BRIDGE)) & ports:
                return False
            shown = daemons.appctl("dpif-netdev/pmd-rxq-show")
            return not any_queue_disabled(shown, self._queues)

        daemons.switch.wait_until(up, failure="has not taken over every port's queues", timeout_s=patience_s)
        if not self._polls:
            return
        cores = polling_cores(shown)
        if idle := [name for _, name in self._ports if name not in cores]:
            raise ProvisionError(
                f"Open vSwitch polls the port {idle[0]} on no core: leave other_config's pmd-cpu-mask out"
                f"{daemons.switch.evidence()}"
            )
        self._cpus = {index: cores[name] for index, name in self._ports}

    def counters(self) -> list[PortCounters] | None:
        """Returns the packets that OVS took from each port and those that it could not give to it, up to date.

        OVS has no counter of what it gave to a port. That is what came for the port less what was dropped.
        """
        daemons = self.daemons
        daemons.revalidate()
        # The user's flows take frames from the counting flows, and may count them more than once.
        taken = {} if self._has_user_flows else parse_flows(daemons.ofctl("dump-flows", _BRIDGE))
        dropped = parse_drops(daemons.ofctl("dump-ports", _BRIDGE))
        return [
            PortCounters(index, rx_packets=taken.get(index + 1), tx_packets=None, tx_dropped=dropped.get(index + 1))
            for index, _ in self._ports
        ]

    def busy(self) -> Busy | None:
        """Returns the cycles of the PMD threads; None without any, since the main thread sleeps when nothing comes."""
        if not self._polls:
            return None
        return parse_cycles(self.daemons.appctl("dpif-netdev/pmd-stats-show", timeout_s=SAMPLE_S))

    def assignment(self) -> Mapping[int, int] | None:
        """Returns the CPU that polls each port, as OVS showed it when the last launch was connected."""
        return self._cpus or None

    def stop(self) -> None:
        """Ends the daemons, gives the uplink back and removes their namespace."""
        if self._daemons is not None:
            self._daemons.end()
        if self._uplink is not None:
            self._uplink.give_back()  # if that fails, the namespace still holds it, for `icbench recover`
        if self._daemons is not None:
            self._daemons.stop()


def _action(attachment: Attachment, attachments: Sequence[Attachment]) -> str:
    """Returns what a port's frames are to do: the bridge's own action, or to leave by the others of its segment."""
    if attachment.segment is None:
        return "NORMAL"
    others = (item for item in attachments if item.segment == attachment.segment and item.index != attachment.index)
    return ",".join(f"output:{item.index + 1}" for item in others)


def _vhost_endpoint(port: str, attachment: Attachment, *, served: bool) -> Endpoint:
    """Returns the endpoint of a vhost-user port, which serves its socket if ``served``."""
    if served:
        path = str(socket_path(attachment))
        return VhostUser(attachment.address, path, serves=True, packed=port == VHOST_USER_PACKED)
    return endpoint_of(port, attachment)


def _uplink_port(uplink: Uplink, mtu: int, cpu: int) -> list[str]:
    """Returns words of ovs-vsctl that add the uplink: a DPDK port by the NIC's driver, AF_PACKET or AF_XDP."""
    device = uplink.nic
    if uplink.via != "vfio":
        api = "af_packet" if uplink.via == "kernel" else "af_xdp"
        device = netdev(UPLINK, api, ring=_UPLINK_RING, jumbo=carries_jumbo(mtu))
    words = ["--", "add-port", _BRIDGE, UPLINK, "--", "set", "Interface", UPLINK, "type=dpdk"]
    words += [f"options:dpdk-devargs={_quoted(device)}", f"mtu_request={mtu}", f"ofport_request={_UPLINK_PORT}"]
    return [*words, f'other_config:pmd-rxq-affinity="0:{cpu}"']


def _other_config(
    session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment], hugepages_mib: int
) -> Mapping[str, str]:
    entries = session.root.list("/sys/devices/system/node")
    nodes = max(1, sum(entry.startswith("node") and entry[4:].isdigit() for entry in entries))
    page_mib = session.hugepage_size_kib // 1024
    limit_mib = -(-hugepages_mib // page_mib) * page_mib  # a limit within a page would let none be taken
    pci = f"-a {spec.uplink.nic}" if spec.uplink is not None and spec.uplink.via == "vfio" else "--no-pci"
    config = {
        "dpdk-init": "true",
        # The daemon's main lcore is on a CPU of its affinity: a service CPU.
        "dpdk-extra": f"{pci} --in-memory --single-file-segments --no-telemetry",
        "dpdk-socket-limit": ",".join([str(limit_mib)] * nodes),
        "per-port-memory": "true",
        "pmd-cpu-mask": hex(sum(1 << cpu for cpu in spec.worker_cpus)),
    }
    sockets = attachments[0].socket_dir
    if sockets != spec.work_dir:
        if not sockets.is_relative_to(spec.work_dir):
            raise ProvisionError(f"ovs makes its sockets below {spec.work_dir} only, and {sockets} is elsewhere")
        config["vhost-sock-dir"] = str(sockets.relative_to(spec.work_dir))
    return config


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
