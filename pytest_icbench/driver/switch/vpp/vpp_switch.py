# SPDX-License-Identifier: BSD-3-Clause
"""``vpp``: a private FD.io VPP as a learning bridge, as cross-connects, or as a router of IPv4 or IPv6."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_icbench.driver.switch.common.routing import Router, RouterPort
from pytest_icbench.driver.switch.vpp.program import Memory
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.routes import Share, network

if TYPE_CHECKING:
    from pytest_icbench.driver.switch.vpp.client import VppClient
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.daemon import SAMPLE_S, DaemonSwitch, check_cores, share_queues
from pytest_icbench.driver.switch.common.userspace_ports import (
    MEMIF,
    VHOST_USER,
    VHOST_USER_PACKED,
    socket_path,
    wait_for_sockets,
)
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.protocol import Attachment, Needs, SwitchSpec
from pytest_icbench.driver.switch.vpp import client as vpp_client
from pytest_icbench.driver.switch.vpp import interfaces, program
from pytest_icbench.driver.switch.vpp.interfaces import VppUplink
from pytest_icbench.driver.switch.vpp.program import VppFiles, hugepages_mib, startup_config
from pytest_icbench.driver.switch.vpp.worker_load import (
    Load,
    Sample,
    parse_batches,
    parse_frames,
    parse_rounds,
    read_run_times,
    read_wakeups,
)
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links
from pytest_icbench.model.case import POLLING, RX_MODES
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.routes import ROUTER_MODES
from pytest_icbench.model.switch_facts import Batches, Busy, PortCounters, SwitchFacts
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.wording import counted

#: Seconds for the routes of one command.
_PART_S = 60.0
#: Prefixes in a command that names them.
_NAMED = 500
#: Seconds for the update of a million routes after a link has changed; the walks that wait, as VPP shows them.
_WALKS_S = 120.0
_WAITING = re.compile(r"Occupancy:(\d+)")
#: Bytes of the heap for a route by IP version, and of the statistics for each thread, which count a route's frames.
HEAP_BYTES = {4: 600, 6: 900}
_STATISTICS_BYTES = 96


def with_routes(memory: Memory, version: int, routes: int, threads: int) -> Memory:
    """Returns the memory of a VPP with that many routes."""
    heap, statistics = routes * HEAP_BYTES[version] >> 20, routes * _STATISTICS_BYTES * threads >> 20
    return memory._replace(heap_mib=memory.heap_mib + heap, statistics_mib=memory.statistics_mib + statistics)


def port_commands(port: RouterPort, version: int, name: str) -> list[str]:
    """Returns the lines that make an interface the port of a router. Pure."""
    bits = 32 if version == 4 else 128
    return [
        f"set interface mac address {name} {port.mac}",
        *([f"enable ip6 interface {name}", f"ip6 nd {name} ra-suppress"] if version == 6 else []),
        f"set interface ip address {name} {port.ip}/{bits}",
        f"set ip neighbor static {name} {port.end} {port.end_mac}",
        f"ip route add {port.end}/{bits} via {port.end} {name}",
    ]


def route_commands(version: int, port: RouterPort, name: str, part: Share) -> Iterator[str]:
    """Yields the lines that add routes which lead to the endpoint of a port. Pure.

    A count steps over IPv4 prefixes; over those of IPv6 it does not step by a defined width, so they are all named.
    """
    way = f"via {port.end} {name}"
    if version == 4:
        yield f"ip route add count {part.count} {network(version, part.first)} {way}"
        return
    numbers = range(part.first, part.first + part.count)
    for begin in range(0, part.count, _NAMED):
        prefixes = " ".join(network(version, number) for number in numbers[begin : begin + _NAMED])
        yield f"ip route add {prefixes} {way}"


def join_router(client: VppClient, router: Router, interfaces: dict[int, int], mtu: int) -> list[str]:
    """Makes the interfaces ports of a router; returns the lines. Raises ProvisionError with VPP's reason."""
    names = _names(client)
    lines: list[str] = []
    for index, port in router.ports.items():
        client.call("sw_interface_set_mtu", sw_if_index=interfaces[index], mtu=[mtu, 0, 0, 0])
        lines += port_commands(port, router.version, names[interfaces[index]])
    for line in lines:
        client.command(line)
    return lines


def add_to_router(client: VppClient, router: Router, interfaces: dict[int, int], port: RouterPort, part: Share) -> None:
    """Adds routes. Raises ProvisionError with VPP's reason."""
    name = _names(client)[interfaces[port.attachment.index]]
    for line in route_commands(router.version, port, name, part):
        client.command(line, _PART_S)


def await_walks(client: VppClient) -> None:
    """Waits until all routes follow their ports' links, which come and go with the endpoints' processes.

    VPP updates the routes of a link one by one, and drops their frames until then. Raises ProvisionError.
    """
    deadline = time.monotonic() + _WALKS_S
    while any(map(int, _WAITING.findall(client.command("show fib walk")))):
        if time.monotonic() > deadline:
            raise ProvisionError(
                f"vpp has not updated the routes of its ports within {_WALKS_S:.0f} s: take fewer routes"
            )
        time.sleep(0.02)


def _names(client: VppClient) -> dict[int, str]:
    return {item.sw_if_index: item.interface_name for item in client.call("sw_interface_dump")}


_START_S = 20.0
_CONNECT_S = 2.0
#: Seconds after which the end of a killed process is known.
_DEATH_S = 0.2
_BRIDGE_DOMAIN = 1
_XCONNECT = "xconnect"
#: The node that every frame passes, in the batch in which it was received.
_ENTRANCE = "ethernet-input"
#: A port has only stray frames if it has less than this share of the busiest port's frames.
_STRAY_SHARE = 0.01
_RUNTIME = "show runtime"
#: Name of a worker's thread.
_WORKER = "vpp_wk_{}"
#: Seconds for which its workers are observed without frames.
_IDLE_S = 0.02
_ADMIN_UP = 1
#: Seconds after a change for which workers do not sleep: VPP has 0.5 after each time that it stops them.
_AWAKE_S = 0.6
#: Gives it a private /dev/shm for its API's shared memory, which VPP leaves when it is killed.
_NAMESPACE = 'set -e; mount -t tmpfs none /dev/shm; exec "$@"'


class Vpp(DaemonSwitch):
    """A bridge domain over all ports.

    The mode ``xconnect`` connects the two ports of each pair; ``ip4`` and ``ip6`` route packets between all ports.
    """

    name = "vpp"
    ports = (VHOST_USER, VHOST_USER_PACKED, MEMIF, interfaces.MEMIF_CLIENT, *interfaces.KERNEL_PORTS)
    queue_ports = (VHOST_USER, VHOST_USER_PACKED, MEMIF, interfaces.MEMIF_CLIENT)
    machine_ports = (VHOST_USER, VHOST_USER_PACKED)
    ports_by_name = ports_without_hugepages = interfaces.KERNEL_PORTS
    port_frame_bytes = interfaces.FRAME_BYTES
    apis = ("dpdk", *SOCKET_APIS, *NETDEV_APIS)
    scalable = True
    learns = True
    least_ageing_s = 60.0
    modes = (_XCONNECT, *ROUTER_MODES)
    route_bytes = HEAP_BYTES
    config_keys: ClassVar[Mapping[str, Kind]] = {
        "startup": "text",
        "commands": "texts",
        interfaces.MEMIF_KEY: "table",
        kernel.OFFLOADS: "table",
    }
    wire_modes = (_XCONNECT,)
    segments = True
    uplinks = ("kernel", "af_xdp")

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        """Returns sockets and DPDK's drivers of interfaces for ports to the kernel, DPDK for all others."""
        return (*SOCKET_APIS, *NETDEV_APIS) if port in interfaces.KERNEL_PORTS else ("dpdk",)

    @classmethod
    def rx_modes(cls, port: str) -> tuple[str, ...]:
        """Returns all modes for ports in memory; AF_PACKET has no adaptive one."""
        if port in cls.queue_ports:
            return RX_MODES
        return RX_MODES[:2] if port == interfaces.AF_PACKET else ()

    def __init__(self) -> None:
        self._session: HostSession | None = None
        self._netns: str | None = None
        self._links: Sequence[Attachment] = ()
        self._domains: Sequence[int] = ()
        self._uplink: VppUplink | None = None
        self._uplink_interface: int | None = None
        self._client: vpp_client.VppClient | None = None
        self._worker_cpus: Sequence[int] = ()
        self._interfaces: dict[int, int] = {}
        self._workers_by_queue: dict[int, tuple[int, ...]] = {}
        self._assigned: dict[int, int] = {}
        self._load = Load()
        self._routes = False
        self._runtime = ""
        self._received: dict[int, int] = {}
        self._rx_mode = POLLING
        self._bell: int | None = None

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        binary = program.find_program(session, spec_binary)
        return SwitchFacts(version=program.read_version(binary), program=str(binary))

    def probe_api(self, session: HostSession, api: str) -> None:
        kernel.probe_netdev_api(api)

    def probe_port(self, session: HostSession, port: str) -> None:
        """Raises Unsupported if the kernel lacks a device for ``port``."""
        if port == interfaces.TAP:
            interfaces.probe_taps()

    def needs_with_queues(self, pairs: int, cores: int, queues: int, *, jumbo: bool = False) -> Needs:
        check_cores(self.name, cores, pairs, queues)
        return Needs(hugepages_mib=hugepages_mib(), pollers=cores)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Starts it, creates the ports and connects them. Raises ProvisionError with the log's tail."""
        interfaces.check_config(spec)
        self._rx_mode = spec.rx_mode or POLLING
        binary = program.find_program(session, spec.binary)
        main_cpu, version = _main_cpu(spec), ROUTER_MODES.get(spec.mode or "")
        to_kernel = spec.port in interfaces.KERNEL_PORTS
        serves = not to_kernel and spec.port != interfaces.MEMIF_CLIENT
        paths = [socket_path(attachment) for attachment in attachments if not to_kernel]
        files = VppFiles(spec.work_dir / "vpp")
        self._session = session
        self._prepare_network(session, spec, attachments)
        memory = Memory(hugepages=not to_kernel or self._uplink is not None)
        table = None if version is None else Router.of(version, spec, attachments)
        if table is not None:
            memory = with_routes(memory, table.version, table.size, 1 + len(spec.worker_cpus))
        config = startup_config(
            files,
            main_cpu=main_cpu,
            worker_cpus=spec.worker_cpus,
            plugins={interfaces.PLUGINS[spec.port], *(() if self._uplink is None else (self._uplink.plugin,))},
            memory=memory,
            fragment=spec.config.get("startup", ""),
        )
        self._worker_cpus = spec.worker_cpus
        self._workers_by_queue = share_queues(attachments, len(spec.worker_cpus), spec.queues)
        argv = ["sh", "-c", _NAMESPACE, "sh", str(binary), "-c", files.write_config(config)]
        options = dpdk_process.DaemonOptions(netns=self._netns, mount_ns=True)
        self.daemon = dpdk_process.start_daemon(session, spec, self.name, argv, options)
        wait_for_sockets([files.api, files.stats], self.daemon, timeout_s=_START_S)
        with self._naming_death():
            self._client = client = vpp_client.VppClient(files.api, files.stats)
            self._facts = SwitchFacts(
                version=str(client.call("show_version").version), config={"startup": config, "mode": spec.mode}
            )
            self._create_ports(client, spec, attachments)
            if table is None:
                self._join(client, attachments, spec.mode)
            for interface in self._all_interfaces():
                client.call("sw_interface_set_flags", sw_if_index=interface, flags=_ADMIN_UP)
            if table is not None:
                self._route(client, session, table, spec.mtu)
            for command in spec.config.get("commands", ()):
                client.command(command)
        wait_for_sockets(paths if serves else [], self.daemon, timeout_s=_START_S)
        return [interfaces.port_endpoint(spec.port, attachment, spec.mtu) for attachment in attachments]

    def _prepare_network(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> None:
        """Creates VPP's network namespace, if it needs one, with the uplink and the veth links in it."""
        to_kernel = spec.port in interfaces.KERNEL_PORTS
        if not to_kernel and spec.uplink is None:
            return
        self._netns = netns = links.create_netns(session, f"{spec.name}-vpp")
        if spec.uplink is not None:
            self._uplink = VppUplink(session, spec, netns)
            self._uplink.take()
        if to_kernel:
            self._links = attachments
            if spec.port != interfaces.TAP:
                offloads = interfaces.read_offloads(spec)
                kernel.create_links(session, netns, attachments, mtu=spec.mtu, offloads=offloads)

    def _create_ports(self, client: vpp_client.VppClient, spec: SwitchSpec, attachments: Sequence[Attachment]) -> None:
        """Creates VPP's interfaces for all attachments and the uplink."""
        assert self._session is not None
        for attachment in attachments:
            self._interfaces[attachment.index] = interfaces.create_port(client, spec, attachment)
        if spec.port == interfaces.MEMIF_CLIENT:
            nobody = str(spec.work_dir / "vpp" / "none")
            self._bell = interfaces.create_memif(client, nobody, 2 + max(self._interfaces), serves=False)
        if spec.port == interfaces.TAP and self._netns is not None:
            interfaces.move_taps(self._session, self.live().process.pid, spec, self._netns, attachments)
        if self._uplink is not None:
            self._uplink_interface = self._uplink.create(client)

    def _join(self, client: vpp_client.VppClient, attachments: Sequence[Attachment], mode: str | None) -> None:
        if mode == _XCONNECT:
            uplink = self._uplink_interface
            if uplink is not None and len(attachments) != 1:
                raise ProvisionError("vpp:xconnect joins one port with an uplink: take one pair, or vpp without it")
            joined = [self._interfaces[attachment.index] for attachment in attachments]
            wires = [(joined[0], uplink)] if uplink is not None else FramePath.over(joined).wires(joined)
            for a, b in wires:
                for rx, tx in ((a, b), (b, a)):
                    client.call("sw_interface_set_l2_xconnect", rx_sw_if_index=rx, tx_sw_if_index=tx, enable=True)
            return
        domains = {self._interfaces[item.index]: _BRIDGE_DOMAIN + (item.segment or 0) for item in attachments}
        if self._uplink_interface is not None:
            domains[self._uplink_interface] = _BRIDGE_DOMAIN
        self._domains = sorted(set(domains.values()))
        for domain in self._domains:
            client.call(
                "bridge_domain_add_del_v2",
                bd_id=domain,
                flood=True,
                uu_flood=True,
                forward=True,
                learn=True,
                arp_term=False,
                arp_ufwd=False,
                mac_age=0,
                bd_tag="icbench",
                is_add=True,
            )
        for interface, domain in domains.items():
            client.call("sw_interface_set_l2_bridge", rx_sw_if_index=interface, bd_id=domain, enable=True)

    def _route(self, client: vpp_client.VppClient, session: HostSession, table: Router, mtu: int) -> None:
        lines = join_router(client, table, self._interfaces, mtu)
        spent = table.install(session, lambda port, part: add_to_router(client, table, self._interfaces, port, part))
        config = {**self._facts.config, "router": table.facts(), "router_commands": lines}
        self._facts = replace(self._facts, config=config, conditions=spent)
        self._routes = True

    def set_ageing(self, seconds: float) -> None:
        """Sets the bridge domains' ageing time, in whole minutes. Raises ProvisionError."""
        with self._naming_death():
            for domain in self._domains:
                self._live().call("bridge_domain_set_mac_age", bd_id=domain, mac_age=max(1, round(seconds / 60)))

    def _all_interfaces(self) -> list[int]:
        uplink = self._uplink_interface
        return [*self._interfaces.values(), *([] if uplink is None else [uplink])]

    def meet_endpoints(self) -> None:
        """Connects to endpoints that serve memifs, which VPP would do within three seconds. Raises ProvisionError."""
        if self._bell is not None:
            with self._naming_death():
                ports, deadline = tuple(self._interfaces.values()), time.monotonic() + _CONNECT_S
                interfaces.find_servers(self._live(), ports, self._bell, deadline)

    def prepare_traffic(self) -> None:
        """Assigns the endpoints' queues to workers and measures an idle round. Raises ProvisionError.

        Workers that sleep have no idle rounds; it waits until they do.
        """
        self.meet_endpoints()
        with self._naming_death():
            client = self._live()
            self._place_queues(client)
            if self._routes:
                await_walks(client)
            if self._rx_mode != POLLING:
                time.sleep(_AWAKE_S)
                return
            before = self._sample(client)
            time.sleep(_IDLE_S)
            self._load.calibrate(before, self._sample(client))

    @contextmanager
    def _naming_death(self) -> Iterator[None]:
        """Reports VPP's end instead of a lost connection, or adds the end of its log to an error."""
        try:
            yield
        except ProvisionError as error:
            if self.daemon is None:
                raise
            with suppress(ProvisionError):
                self.daemon.process.wait(_DEATH_S)
            self.daemon.check()
            raise ProvisionError(f"{error}{self.daemon.evidence()}") from None

    def _place_queues(self, client: vpp_client.VppClient) -> None:
        deadline = time.monotonic() + _CONNECT_S
        for index, interface in self._interfaces.items():
            workers = self._workers_by_queue[index]
            asked = interfaces.Polling(workers, self._rx_mode, deadline, f"the port of endpoint {index}")
            interfaces.place_queues(client, interface, asked)
            self._assigned[index] = self._worker_cpus[workers[0]]
        if self._uplink_interface is not None:
            worker = len(self._interfaces) % len(self._worker_cpus)
            asked = interfaces.Polling((worker,), POLLING, deadline, "the uplink")
            interfaces.place_queues(client, self._uplink_interface, asked)

    def assignment(self) -> Mapping[int, int] | None:
        """Returns the CPU that polled each port in the last launch, by index."""
        return self._assigned or None

    def _live(self) -> vpp_client.VppClient:
        self.live()
        if self._client is None:
            raise ProvisionError("vpp was not started")
        return self._client

    def counters(self) -> list[PortCounters] | None:
        """Returns its interfaces' counters from its shared statistics.

        ``/if/tx`` counts frames for a port, the port's node those that did not fit into the ring. ``/if/drops`` also
        counts frames from the port without a destination.
        """
        with self._naming_death(), (client := self._live()).statistics() as stats:
            names = _names(client)
            received, given = stats["/if/rx"], stats["/if/tx"]
            counted = []
            for index, interface in self._interfaces.items():
                dropped = sum(stats[error].sum() for error in stats.ls(f"^/err/{re.escape(names[interface])}-tx/"))
                counted.append(
                    PortCounters(
                        index=index,
                        rx_packets=received[:, interface].sum_packets(),
                        tx_packets=given[:, interface].sum_packets() - dropped,
                        tx_dropped=dropped,
                    )
                )
            return counted

    def busy(self) -> Busy | None:
        """Returns the time of its workers without empty rounds: see ``vpp.worker_load``.

        Workers that sleep between interrupts are busy whenever they have a CPU. Nothing is asked that wakes them.
        """
        names = [_WORKER.format(worker) for worker in range(len(self._worker_cpus))]
        if self._rx_mode != POLLING:
            pid = self.live().process.pid
            ran, wakeups = read_run_times(pid), read_wakeups(pid, names)
            return Busy(busy_ns=sum(ran.get(name, 0) for name in names), workers=len(names), wakeups=wakeups)
        with self._naming_death():
            busy_ns = self._load.busy_ns(self._sample(self._live()))
        handled = parse_frames(self._runtime, _ENTRANCE)
        frames = {str(cpu): handled.get(name, 0) for name, cpu in zip(names, self._worker_cpus, strict=True)}
        return None if busy_ns is None else Busy(busy_ns=busy_ns, workers=len(names), frames=frames)

    def _sample(self, client: vpp_client.VppClient) -> Sample:
        assert self.daemon is not None
        # Kept for `batches`, which follows, because VPP stops its workers while it answers.
        self._runtime = client.command(_RUNTIME, SAMPLE_S)
        rounds = parse_rounds(self._runtime, _ENTRANCE)
        return Sample(
            time.monotonic_ns(), rounds, read_run_times(self.daemon.process.pid), self._ports_with_frames(client)
        )

    def _ports_with_frames(self, client: vpp_client.VppClient) -> dict[str, int]:
        """Returns the number of each worker's queues of ports with more than stray frames since the last call."""
        with client.statistics() as stats:
            counted = stats["/if/rx"]
            counts = {index: counted[:, interface].sum_packets() for index, interface in self._interfaces.items()}
        fresh = {index: count - self._received.get(index, 0) for index, count in counts.items()}
        self._received = counts
        least = max(fresh.values(), default=0) * _STRAY_SHARE
        ports_by_worker: dict[str, int] = {}
        for index, count in fresh.items():
            for worker in self._workers_by_queue[index] if count > least else ():
                name = _WORKER.format(worker)
                ports_by_worker[name] = ports_by_worker.get(name, 0) + 1
        return ports_by_worker

    def batches(self) -> Batches | None:
        """Returns frames and calls of its entrance node, whose quotient is the vector size; None if workers sleep."""
        if self._rx_mode != POLLING:
            return None
        with self._naming_death():
            text, self._runtime = self._runtime or self._live().command(_RUNTIME, SAMPLE_S), ""
        return parse_batches(text, _ENTRANCE)

    def pause(self) -> None:
        """Waits until no worker is held back, then takes every thread off the CPU. Raises ProvisionError.

        VPP answers a message before it releases its workers, and aborts if the release takes a second. So a further
        message is sent, which VPP answers only after the release.
        """
        if self._client is not None and self.fault() is None:
            with self._naming_death():
                self._client.call("control_ping")
        super().pause()

    def stop(self) -> None:
        """Ends VPP, restores the uplink and removes the links and their namespace."""
        client, self._client = self._client, None
        super().stop()
        if client is not None:
            client.close()
        if self._links:
            kernel.remove_ends(self._links)
            self._links = ()
        if self._uplink is not None:
            self._uplink.give_back()
        if self._netns is not None and self._session is not None:
            links.delete_netns(self._session, self._netns)
            self._netns = None


def _main_cpu(spec: SwitchSpec) -> int:
    """Returns the CPU of the main thread. Raises Unsupported if workers have all service CPUs."""
    for cpu in spec.service_cpus:
        if cpu not in spec.worker_cpus:
            return cpu
    workers = len(spec.worker_cpus)
    raise Unsupported(
        f"vpp's main thread needs a CPU without a worker: {counted(workers, 'worker')} need {workers + 1} CPUs; choose"
        " fewer switch cores"
    )
