# SPDX-License-Identifier: BSD-3-Clause
"""``ovs``: Open vSwitch's userspace datapath with DPDK, as a learning switch (the NORMAL action).

Its modes ``ip4`` and ``ip6`` route by OpenFlow flows.

Its ports are vhost-user sockets, or reach containers of the kernel by AF_PACKET, AF_XDP or tap. Those need neither
DPDK nor huge pages: a PMD thread polls ``afxdp``, the daemon's main thread serves the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from pytest_icbench.driver.switch.common import kernel, userspace_ports
from pytest_icbench.driver.switch.common.daemon import SAMPLE_S, DaemonSwitch, check_cores, share_queues
from pytest_icbench.driver.switch.common.kernel import port_name, probe_netdev_api
from pytest_icbench.driver.switch.common.nic_uplink import UPLINK, NicUplink
from pytest_icbench.driver.switch.common.routing import Router, RouterPort
from pytest_icbench.driver.switch.common.userspace_ports import (
    VHOST_USER,
    VHOST_USER_PACKED,
    check_socket_path,
    make_endpoint,
    socket_path,
)
from pytest_icbench.driver.switch.dpdk.dpdk_process import START_S, plugin_options
from pytest_icbench.driver.switch.ovs.daemons import (
    OvsDaemons,
    find_disabled_queue,
    find_installation,
    parse_cycles,
    parse_down,
    parse_drops,
    parse_flows,
    parse_polling_cores,
    parse_table,
)
from pytest_icbench.driver.switch.protocol import Attachment, Busy, Needs, PortCounters, SwitchFacts, SwitchSpec
from pytest_icbench.driver.workload.eal import netdev
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import ethtool
from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Endpoint, VhostUser
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.routes import ROUTER_MODES, Share, network
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.traffic import MTU_ETHERNET_FRAME_BYTES, carries_jumbo
from pytest_icbench.model.uplink import Uplink

#: The tables after the one that counts by port.
_ENTRANCE, _ROUTES = 1, 2
#: Above the flows of the table, whose addresses are others.
_HOST_PRIORITY, _ROUTE_PRIORITY = 20, 10
#: Bytes of the daemon's memory for a route by IP version, with its flow in the datapath.
ROUTE_BYTES = {4: 2600, 6: 2800}
#: Flows of the datapath without routes, by default.
_FLOW_LIMIT = 200_000


def port_flows(router: Router) -> list[str]:
    """Returns the flows to each endpoint, and those that let in what is for a port's MAC address."""
    ip, field = _words(router.version)
    lines = []
    for index, port in router.ports.items():
        entrance = f"table={_ENTRANCE},priority=1,in_port={index + 1},{ip},vlan_tci=0,dl_dst={port.mac}"
        lines.append(f"{entrance},actions=resubmit(,{_ROUTES})")
        lines.append(f"table={_ROUTES},priority={_HOST_PRIORITY},{ip},{field}={port.end},actions={_forward(port)}")
    return lines


def route_flows(version: int, port: RouterPort, part: Share) -> Iterator[str]:
    """Yields the flows of routes that lead to the endpoint of a port."""
    ip, field = _words(version)
    action = _forward(port)
    for number in range(part.first, part.first + part.count):
        target = network(version, number)
        yield f"table={_ROUTES},priority={_ROUTE_PRIORITY},{ip},{field}={target},actions={action}"


def flow_limit(routes: int) -> dict[str, str]:
    """Returns the daemon's option with which its datapath has a flow for each route."""
    return {"flow-limit": str(2 * routes)} if 2 * routes > _FLOW_LIMIT else {}


def _words(version: int) -> tuple[str, str]:
    return ("ip", "nw_dst") if version == 4 else ("ipv6", "ipv6_dst")


def _forward(port: RouterPort) -> str:
    return f"dec_ttl,mod_dl_src:{port.mac},mod_dl_dst:{port.end_mac},output:{port.attachment.index + 1}"


#: Huge pages in MiB: without ports, for a port's buffers (about 20,000), and for those of jumbo frames. OVS gets the
#: sum as its limit. Its default, one pool for all ports, takes up to 700 MiB, and a second at the first connection.
_BASE_MIB = 64
_PORT_MIB = 72
_JUMBO_PORT_MIB = 264
#: Each further queue pair takes a fifth of a port's memory: its rings have 2048 + 2048 buffers.
_QUEUE_PART = 5
_AFXDP, _TAP = "afxdp", "tap"
#: Open vSwitch's type of interface, by port kind.
_KERNEL_TYPES: Mapping[str, str] = MappingProxyType(
    {"afpacket": "system", _AFXDP: "afxdp", "afxdp-nonpmd": "afxdp-nonpmd", _TAP: "tap"}
)
_KERNEL_PORTS = tuple(_KERNEL_TYPES)
#: Largest frame in bytes with FCS. AF_XDP keeps a frame in one buffer of 2 KiB. The daemon does not know the MTU of a
#: moved tap, and truncates longer frames.
_FRAME_BYTES: Mapping[str, int] = MappingProxyType(
    dict.fromkeys((_AFXDP, "afxdp-nonpmd", _TAP), MTU_ETHERNET_FRAME_BYTES)
)
#: Ports that can leave checksums and segmentation to the other end.
_OFFLOADING = (_TAP, "afpacket")
_BRIDGE = "br0"
#: Port type with a socket served by OVS, which accepts endpoints without delay.
_SERVER = "dpdkvhostuser"
#: Port type with a socket served by the endpoint. OVS looks for it once a second.
_CLIENT = "dpdkvhostuserclient"
#: Port number of the uplink, larger than those of all attachments.
_UPLINK_PORT = 1000
#: Descriptors of the uplink, enough for a burst of all local endpoints.
_UPLINK_RING = 2048
#: Seconds for a part of the flows of a router.
_FLOWS_S = 60
_PACKETS = re.compile(r"n_packets=(\d+)")


def memory_mib(ports: int, jumbo: bool, queues: int = 1) -> int:
    """Returns the huge pages in MiB for a number of ports and queue pairs per port."""
    port_mib = _JUMBO_PORT_MIB if jumbo else _PORT_MIB
    return _BASE_MIB + ports * (port_mib + (queues - 1) * port_mib // _QUEUE_PART)


class OpenVSwitch(DaemonSwitch):
    """A bridge with a PMD thread on each worker core."""

    name = "ovs"
    ports = (VHOST_USER, VHOST_USER_PACKED, *_KERNEL_PORTS)
    queue_ports = machine_ports = (VHOST_USER, VHOST_USER_PACKED)
    ports_by_name = ports_without_hugepages = _KERNEL_PORTS
    apis = ("dpdk", *SOCKET_APIS, *NETDEV_APIS)
    scalable = True
    learns = True
    least_ageing_s = 15.0
    modes = tuple(ROUTER_MODES)
    route_bytes = ROUTE_BYTES
    port_frame_bytes = _FRAME_BYTES
    segments = True
    uplinks = ("kernel", "af_xdp", "vfio")
    config_keys: ClassVar[Mapping[str, Kind]] = {"other_config": "table", "flows": "texts", kernel.OFFLOADS: "table"}

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        """Returns DPDK for vhost-user, sockets and DPDK's drivers of interfaces for ports to the kernel."""
        return (*SOCKET_APIS, *NETDEV_APIS) if port in _KERNEL_PORTS else ("dpdk",)

    def __init__(self) -> None:
        self._daemons: OvsDaemons | None = None
        self._uplink: NicUplink | None = None
        self._ports: list[tuple[int, str]] = []
        self._cpus: dict[int, int] = {}
        self._has_user_flows = False
        self._queues = 1
        self._polls = self._shows_links = True

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the versions of the daemon and its DPDK. Raises Unsupported if a file or DPDK is missing."""
        installation = find_installation(session, spec_binary)
        config = {"dpdk": installation.dpdk}
        return SwitchFacts(version=installation.version, config=config, program=str(installation.vswitchd))

    def probe_api(self, session: HostSession, api: str) -> None:
        probe_netdev_api(api)

    def needs_with_queues(self, pairs: int, cores: int, queues: int, *, jumbo: bool = False) -> Needs:
        check_cores(self.name, cores, pairs, queues)
        return Needs(hugepages_mib=memory_mib(len(FramePath(pairs).endpoints), jumbo, queues), pollers=cores)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Starts database and daemon, then adds bridge and ports. Raises ProvisionError with the log's tail."""
        installation = find_installation(session, spec.binary)
        offloads = kernel.port_offloads(spec, self.name, _OFFLOADING)
        check_socket_path(spec.work_dir / "vswitchd.ctl")  # the longest of its paths
        to_kernel = spec.port in _KERNEL_PORTS
        self._polls = not to_kernel or spec.port == _AFXDP
        self._shows_links = spec.port != _TAP  # a tap's link is in its node
        self._queues = spec.queues
        for attachment in () if to_kernel else attachments:
            socket_path(attachment)
        self._daemons = daemons = OvsDaemons(session, spec, installation, len(attachments))
        daemons.start_database()
        ports = len(attachments) + (spec.uplink is not None)
        config = _other_config(session, spec, attachments, memory_mib(ports, carries_jumbo(spec.mtu), spec.queues))
        if to_kernel and spec.uplink is None:
            config = {"pmd-cpu-mask": config["pmd-cpu-mask"]}  # without DPDK
        table = self._router_of(spec, attachments)
        limit = {} if table is None else flow_limit(table.size)
        tso = {"userspace-tso-enable": "true"} if "true" in offloads.values() else {}
        config = {**config, **limit, **tso, **spec.config.get("other_config", {})}
        settings = [f"other_config:{key}={_quoted(value)}" for key, value in config.items()]
        if plugins := plugin_options(installation.vswitchd):
            settings.append(f"other_config:dpdk-extra={_quoted(' '.join([config.get('dpdk-extra', ''), *plugins]))}")
        daemons.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *settings)
        # Without PMD threads the main thread forwards, on the worker CPUs.
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
        if table is not None:
            self._route(session, table)
        return endpoints

    @staticmethod
    def _router_of(spec: SwitchSpec, attachments: Sequence[Attachment]) -> Router | None:
        version = ROUTER_MODES.get(spec.mode or "")
        return None if version is None else Router.of(version, spec, attachments)

    def _route(self, session: HostSession, table: Router) -> None:
        def add(flows: Iterable[str]) -> None:
            self.daemons.ofctl("add-flows", _BRIDGE, "-", text="\n".join(flows), timeout_s=_FLOWS_S)

        add(port_flows(table))
        spent = table.install(session, lambda port, part: add(route_flows(table.version, port, part)))
        config = {**self._facts.config, "router": table.facts()}
        self._facts = replace(self._facts, config=config, conditions=spent)

    @staticmethod
    def _wait_for_types(daemons: OvsDaemons, port: str, *, dpdk: bool) -> str:
        """Waits until the daemon, with DPDK if ``dpdk``, lists its port types; returns the type for a port kind."""
        types: list[str] = []

        def ready() -> bool:
            nonlocal types
            columns = "--columns=dpdk_initialized,iface_types"
            row = parse_table(daemons.vsctl("--format=json", columns, "list", "Open_vSwitch"))[0]
            types = row["iface_types"]
            return (row["dpdk_initialized"] is True or not dpdk) and bool(types)

        failure = "has not initialized DPDK" if dpdk else "has not listed its port types"
        daemons.switch.wait_until(ready, failure=failure, timeout_s=START_S)
        for port_type in (_KERNEL_TYPES[port],) if port in _KERNEL_TYPES else (_SERVER, _CLIENT):
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
        if port_type == _SERVER and spec.common_sockets is not None:
            attachments = [replace(attachment, socket_dir=spec.common_sockets) for attachment in attachments]
        commands = ["add-br", _BRIDGE, "--", "set", "Bridge", _BRIDGE, "datapath_type=netdev"]
        endpoints: list[Endpoint] = []
        cores = share_queues(attachments, len(spec.worker_cpus), spec.queues)
        to_kernel = spec.port in _KERNEL_PORTS
        if to_kernel and spec.port != _TAP:  # the daemon makes taps
            offloads = kernel.port_offloads(spec, self.name, _OFFLOADING)
            kernel.create_links(session, daemons.netns, attachments, mtu=spec.mtu, offloads=offloads)
        for attachment in attachments:
            name = port_name(attachment) if to_kernel else socket_path(attachment).name
            self._ports.append((attachment.index, name))
            commands += ["--", "add-port", _BRIDGE, name, "--", "set", "Interface", name, f"type={port_type}"]
            commands += [f"mtu_request={spec.mtu}", f"ofport_request={attachment.index + 1}"]
            places = (f"{queue}:{spec.worker_cpus[at]}" for queue, at in enumerate(cores[attachment.index]))
            commands.append(f'other_config:pmd-rxq-affinity="{",".join(places)}"')
            commands += _port_options(port_type, attachment)
            endpoints.append(
                kernel.veth_endpoint(attachment, name, spec.mtu)
                if to_kernel
                else _vhost_endpoint(spec.port, attachment, served=port_type == _CLIENT)
            )
        numbers = {name: index + 1 for index, name in self._ports}
        if spec.uplink is not None:
            numbers[UPLINK] = _UPLINK_PORT
            # The next worker in turn.
            cpu = spec.worker_cpus[len(attachments) % len(spec.worker_cpus)]
            commands += _uplink_port(spec.uplink, spec.mtu, cpu)
        daemons.vsctl(*commands, timeout_s=int(START_S))
        daemons.check_ports(numbers)
        if port_type == _SERVER:
            userspace_ports.wake(daemons.switch.process.pid)
        # They replace the one NORMAL flow of a bridge without a controller, to count by port: a vhost port served by
        # OVS has no counters. The datapath's flows match on the port anyway.
        routed = spec.mode in ROUTER_MODES
        flows = [
            f"priority=1,in_port={attachment.index + 1},actions="
            + (f"resubmit(,{_ENTRANCE})" if routed else _action(attachment, attachments))
            for attachment in attachments
        ]
        if spec.uplink is not None:
            flows.append(f"priority=1,in_port={_UPLINK_PORT},actions=NORMAL")
        user_flows: Sequence[str] = spec.config.get("flows", ())
        self._has_user_flows = bool(user_flows)
        daemons.ofctl("add-flows", _BRIDGE, "-", text="\n".join([*flows, *user_flows]))
        if spec.port == _TAP:
            kernel.move_ports(daemons.netns, attachments)
            ends = [(attachment.interface, attachment.node.netns) for attachment in attachments]
            ethtool.apply_settings(session, ends, spec.config.get(kernel.OFFLOADS, {}))
        return endpoints

    def add_flows(self, flows: Sequence[str]) -> None:
        """Adds flows of a network function, whose frames the port counters then miss. Raises ProvisionError."""
        self._has_user_flows = True
        self.daemons.ofctl("add-flows", _BRIDGE, "-", text="\n".join(flows))

    def ofctl(self, command: str, *arguments: str) -> str:
        """Returns the output of ``ovs-ofctl`` on the bridge. Raises ProvisionError."""
        return self.daemons.ofctl(command, _BRIDGE, *arguments)

    def packets_by_cookie(self, cookie: str) -> int:
        """Returns the current packet count of the flows with a cookie. Raises ProvisionError."""
        self.daemons.revalidate()
        return sum(map(int, _PACKETS.findall(self.ofctl("dump-flows", f"cookie={cookie}/-1"))))

    @property
    def daemons(self) -> OvsDaemons:
        """The running daemons. Raises ProvisionError if it was not started."""
        if self._daemons is None:
            raise ProvisionError("ovs was not started")
        return self._daemons

    def check(self) -> None:
        self.daemons.check()

    def set_ageing(self, seconds: float) -> None:
        self.daemons.vsctl("set", "Bridge", _BRIDGE, f"other-config:mac-aging-time={round(seconds)}")

    def prepare_traffic(self) -> None:
        """Waits until OVS uses all queues of every endpoint. Until then it drops frames.

        A port's link is up before its queues are. Raises ProvisionError with the log's tail.
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
            return not find_disabled_queue(shown, self._queues)

        daemons.switch.wait_until(up, failure="has not taken over every port's queues", timeout_s=patience_s)
        if not self._polls:
            return
        cores = parse_polling_cores(shown)
        if idle := [name for _, name in self._ports if name not in cores]:
            raise ProvisionError(
                f"Open vSwitch polls the port {idle[0]} on no core: leave other_config's pmd-cpu-mask out"
                f"{daemons.switch.evidence()}"
            )
        self._cpus = {index: cores[name] for index, name in self._ports}

    def counters(self) -> list[PortCounters] | None:
        """Returns the packets received from each port and those dropped at it. OVS does not count sent ones."""
        daemons = self.daemons
        daemons.revalidate()
        # The user's flows bypass the counting flows, and may count a frame more than once.
        taken = {} if self._has_user_flows else parse_flows(daemons.ofctl("dump-flows", _BRIDGE, "table=0"))
        dropped = parse_drops(daemons.ofctl("dump-ports", _BRIDGE))
        return [
            PortCounters(index, rx_packets=taken.get(index + 1), tx_packets=None, tx_dropped=dropped.get(index + 1))
            for index, _ in self._ports
        ]

    def busy(self) -> Busy | None:
        """Returns the cycles of the PMD threads; None without PMD threads, because the main thread sleeps when idle."""
        if not self._polls:
            return None
        return parse_cycles(self.daemons.appctl("dpif-netdev/pmd-stats-show", timeout_s=SAMPLE_S))

    def assignment(self) -> Mapping[int, int] | None:
        """Returns the CPU that polled each port at the beginning of the last launch."""
        return self._cpus or None

    def stop(self) -> None:
        """Ends the daemons, restores the uplink and removes their namespace."""
        if self._daemons is not None:
            self._daemons.end()
        if self._uplink is not None:
            self._uplink.give_back()  # if that fails, the namespace still holds it, for `icbench recover`
        if self._daemons is not None:
            self._daemons.stop()


def _action(attachment: Attachment, attachments: Sequence[Attachment]) -> str:
    """Returns the action of a port's flow: NORMAL, or output to the other ports of its segment."""
    if attachment.segment is None:
        return "NORMAL"
    others = (item for item in attachments if item.segment == attachment.segment and item.index != attachment.index)
    return ",".join(f"output:{item.index + 1}" for item in others)


def _port_options(port_type: str, attachment: Attachment) -> list[str]:
    """Returns words of ovs-vsctl for the options of a port."""
    if port_type == _CLIENT:
        return [f"options:vhost-server-path={_quoted(str(socket_path(attachment)))}"]
    return ["options:xdp-mode=generic"] if port_type.startswith(_AFXDP) else []


def _vhost_endpoint(port: str, attachment: Attachment, *, served: bool) -> Endpoint:
    """Returns the endpoint of a vhost-user port, which serves its socket if ``served``."""
    if served:
        path = str(socket_path(attachment))
        return VhostUser(attachment.address, path, serves=True, packed=port == VHOST_USER_PACKED)
    return make_endpoint(port, attachment)


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
    limit_mib = -(-hugepages_mib // page_mib) * page_mib  # a limit must be whole pages
    pci = f"-a {spec.uplink.nic}" if spec.uplink is not None and spec.uplink.via == "vfio" else "--no-pci"
    config = {
        "dpdk-init": "true",
        # The daemon's main lcore is on a service CPU, by its affinity.
        "dpdk-extra": f"{pci} --in-memory --single-file-segments --no-telemetry",
        "dpdk-socket-limit": ",".join([str(limit_mib)] * nodes),
        "per-port-memory": "true",
        "pmd-cpu-mask": hex(sum(1 << cpu for cpu in spec.worker_cpus)),
    }
    sockets = spec.common_sockets or attachments[0].socket_dir
    if sockets != spec.work_dir:
        if not sockets.is_relative_to(spec.work_dir):
            raise ProvisionError(f"ovs creates sockets only below {spec.work_dir}, and {sockets} is elsewhere")
        config["vhost-sock-dir"] = str(sockets.relative_to(spec.work_dir))
    return config


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
