# SPDX-License-Identifier: BSD-3-Clause
"""The part of a rig on one host, and the only code that knows in which order it is built and removed."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_icbench.driver.function.registry import component_behind
from pytest_icbench.driver.guard import make_node, make_switch
from pytest_icbench.driver.node.protocol import Node, NodeFacts, NodeSpec
from pytest_icbench.driver.switch.common.nic_uplink import cable_fault
from pytest_icbench.driver.switch.protocol import Attachment, Switch, SwitchSpec
from pytest_icbench.driver.workload.eal import endpoint_mib
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import IcbenchError, ProvisionError
from pytest_icbench.host.cpu_usage import CpuWatch, OwnProcesses
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import NETNS_DIR
from pytest_icbench.host.net import sockets
from pytest_icbench.host.resource import hugepages
from pytest_icbench.host.resource.perf import HardwareEvents
from pytest_icbench.host.resource.sysctl import KernelOptions
from pytest_icbench.model.api_techniques import NETDEV_APIS
from pytest_icbench.model.endpoint import Endpoint, default_endpoint_specs
from pytest_icbench.model.function_facts import FunctionCounters, function_key
from pytest_icbench.model.interference import Interference
from pytest_icbench.model.placement import CpuState
from pytest_icbench.model.rig import LaunchPlan, Polled, Question, RigCalls, RigFacts, RigSpec, Usage
from pytest_icbench.model.switch_facts import Batches, Busy, PortCounters
from pytest_icbench.testbed.function_nodes import FunctionNodes, NodeDirectories, StartContext, prove
from pytest_icbench.testbed.launch_processes import LaunchSite, RunningLaunch, check_switch, fill_in_workload
from pytest_icbench.testbed.memory_budget import MemoryDemand, check_memory
from pytest_icbench.testbed.router_proof import prove_router
from pytest_icbench.testbed.switch_group import SwitchGroup

_DPDK_APPLICATION = "dpdk-"
_LOGS_EVERY_S = 1.0


def plug(attachment: Attachment, endpoint: Endpoint, spec: RigSpec) -> Endpoint:
    """Connects a node with its port; returns the endpoint as its processes see it. Raises ProvisionError."""
    plugs = attachment.node.plug
    neighbours = [attachment.peer or attachment.address.other_side]
    return endpoint if plugs is None else plugs(endpoint, spec.case.traffic.mtu, neighbours)


class HostPart(RigCalls, ABC):
    """The part that a rig drives: everything on one host, or on two as if they were one."""

    @property
    @abstractmethod
    def here(self) -> HostRig:
        """The part on this host."""

    @abstractmethod
    def prepare(self, spec: RigSpec) -> RigFacts:
        """Builds everything. Raises ProvisionError, after undoing what was done by then."""

    @abstractmethod
    def undo(self) -> None:
        """Removes everything. Idempotent. Raises ProvisionError with what remains."""


class HostRig(HostPart):
    """The nodes, the switch and their processes on one host.

    ``wake``: descriptor that ends a ``poll`` when it becomes readable.
    """

    def __init__(self, session: HostSession, switches: Mapping[str, type[Switch]], *, wake: int | None = None) -> None:
        self._session, self._switches, self._wake = session, switches, wake
        self._undo: list[Callable[[], None]] = []
        self._nodes: dict[int, Node] = {}
        #: The process that stays in each node, by endpoint index.
        self._inits: dict[int, int] = {}
        self._switch: Switch | None = None
        self._launches: dict[str, RunningLaunch] = {}
        self._count, self._paused = 0, False
        self._group: SwitchGroup | None = None
        self._logs_bounded_at = 0.0
        self._service: Sequence[int] = ()
        self._affinity: set[int] | None = None
        self._workers: Sequence[int] = ()
        self._hardware = HardwareEvents(session.root)
        self._functions: FunctionNodes | None = None
        self.endpoints: list[Endpoint] = []
        self._own = OwnProcesses(session.id)
        self._watch: tuple[str, CpuWatch] | None = None
        self._kernel: KernelOptions | None = None

    @property
    def here(self) -> HostRig:
        return self

    def prepare(self, spec: RigSpec) -> RigFacts:
        """Makes directories, huge pages, nodes, the switch and its endpoints, in this order.

        Raises ProvisionError, after undoing what was done by then.
        """
        try:
            return self._prepare(spec)
        except BaseException:
            with suppress(IcbenchError):  # the first error says more
                self.undo()
            raise

    def _prepare(self, spec: RigSpec) -> RigFacts:
        driver = self._switches[spec.case.switch]
        self._adopt(spec)
        self._directories = directories = NodeDirectories(self._session, self._name, driver.joins_nodes)
        self._set_kernel_options(spec)
        port = spec.case.resolved_port(driver)
        dpdk = "dpdk" in driver.port_apis(port)
        functions = self._make_functions(driver, port)
        self._reserve_memory(driver, dpdk=dpdk)
        self._undo.append(directories.remove)
        directories.make()
        self._switch = switch = make_switch(driver)
        switch_spec = self._switch_spec(spec, port)
        group = SwitchGroup(self._session, spec.case.switch, f"{self._name}.switch", bool(spec.case.cpu_allocations))
        self._group = group
        self._undo += [group.close, switch.stop]
        addresses = [self._endpoint_specs[index].address for index in self._indexes]
        with group.entered(), self._session.spawner.adding(spec.env):
            devices = switch.devices(self._session, switch_spec, addresses + (functions.addresses if functions else []))
        attachments = [
            self._attachment(index, spec, devices[place] if devices else (), dpdk=dpdk)
            for place, index in enumerate(self._indexes)
        ]
        nodes = tuple(attachment.node.name for attachment in attachments)
        if functions is not None:
            functions.start_nodes(spec.node, self._name, directories, devices[len(nodes) :], hugepages=dpdk)
            attachments = functions.around(attachments)
        self._undo.append(switch.stop)  # before the nodes, too
        with group.entered(), self._session.spawner.adding(spec.env):
            endpoints = switch.start(self._session, switch_spec, attachments)
        endpoints = [
            plug(attachment, endpoint, spec) for attachment, endpoint in zip(attachments, endpoints, strict=True)
        ]
        ports = {attachment.index: port for attachment, port in zip(attachments, endpoints, strict=True)}
        self.endpoints = [ports[index] for index in self._indexes]
        if functions is not None:
            config = self._session.configs.get(function_key(functions.component.name), {})
            functions.start(StartContext(switch, ports, directories.logs, spec.case.traffic.mtu, config))
        if self._kernel is not None:
            own = NETNS_DIR.glob(f"{self._session.name(self._name)}[nf-]*")
            self._kernel.set_within([*(attachment.node.netns for attachment in attachments), *map(str, own)])
        return RigFacts(
            endpoints=tuple(self.endpoints),
            nodes=nodes,
            switch=switch.facts().in_rig(str(directories.work)),
            files=str(self.files),
            peers=() if functions is None else functions.peers,
            functions=() if functions is None else functions.facts(),
            terms=() if functions is None else functions.terms,
            untimed=next(filter(None, (attachment.node.untimed for attachment in attachments)), None),
        )

    def _adopt(self, spec: RigSpec) -> None:
        """Takes over a specification; nothing is made yet."""
        self._name, self._case, self.placement = spec.name, spec.case, spec.placement
        self._cpus: Sequence[int] = spec.placement.endpoints
        self._workers, self._service, self._numa_node = (
            spec.placement.switch,
            spec.placement.service,
            spec.placement.numa_node,
        )
        self._endpoint_specs = spec.endpoint_specs or default_endpoint_specs(spec.case.pairs)
        self._indexes = spec.case.path.endpoints if spec.here is None else spec.here
        self._uplink = spec.uplink
        self._pages_for: set[int] = set()

    @property
    def files(self) -> Path:
        """The directory with a directory for each node."""
        return self._directories.work

    def _set_kernel_options(self, spec: RigSpec) -> None:
        if spec.sysctl:
            self._kernel = KernelOptions(self._session, spec.sysctl)
            self._undo.append(self._kernel.restore)
            self._kernel.set()

    def _reserve_memory(self, driver: type[Switch], *, dpdk: bool) -> None:
        """Checks that the host has the memory, and reserves the huge pages. Raises NoRoom, ProvisionError."""
        made = sum(self._endpoint_specs[index].attached is None for index in self._indexes)
        memory = MemoryDemand.of(
            self._case,
            driver,
            workers=len(self._workers),
            nodes=len(self._indexes),
            made=made,
            uplink=self._uplink is not None,
        )
        check_memory(self._session, self._numa_node, memory)
        self._reserve(memory.switch_mib + memory.functions_mib)
        self._reserve_endpoints(self._indexes if dpdk else ())

    def _switch_spec(self, spec: RigSpec, port: str) -> SwitchSpec:
        specs = [self._endpoint_specs[index] for index in self._indexes]
        return SwitchSpec(
            name=self._name,
            port=port,
            worker_cpus=self._workers,
            service_cpus=self._service,
            mtu=spec.case.traffic.mtu,
            work_dir=self._directories.work,
            binary=None if spec.binary is None else Path(spec.binary),
            endpoint_cpus=tuple(self._cpus[index] for index in self._indexes),
            mode=spec.case.mode,
            config=dict(spec.config),
            functions=[(endpoint.function, endpoint.device) for endpoint in specs],
            uplink=self._uplink,
            queues=spec.case.traffic.queues,
            ring=spec.ring,
            rx_mode=spec.case.rx_mode,
            common_sockets=self._directories.common,
            routes=[
                (spec.case.path.peer(index), part)
                for index in self._indexes
                if (part := spec.case.routes_of(index)) is not None
            ],
        )

    def _make_functions(self, driver: type[Switch], port: str) -> FunctionNodes | None:
        """Returns the network functions, not started yet; None for a case without any. Raises ProvisionError."""
        if self._case.function is None:
            return None
        addresses = [one.address for one in self._endpoint_specs]
        made_by = component_behind(driver, port, self._case.functions[0])
        self._functions = FunctionNodes(self._session, self._case, made_by, self.placement, addresses, self._undo)
        return self._functions

    def _attachment(self, index: int, spec: RigSpec, devices: Sequence[Path], *, dpdk: bool) -> Attachment:
        xdp = self._uplink is not None and self._uplink.via == "af_xdp"
        netdev = self._case.api in NETDEV_APIS or xdp
        endpoint_spec = self._endpoint_specs[index]
        label = index if endpoint_spec.name is None else f"-{endpoint_spec.name}"
        writable = self._directories.of_endpoint(index, self._case.path.pair(index))
        node_spec = NodeSpec(
            # The dash distinguishes the user's name from the switch's namespaces.
            name=self._session.name(f"{self._name}n{label}"),
            hostname=endpoint_spec.name,
            cpus=list(endpoint_spec.cpus) or [self._cpus[index]],
            sockets=writable,
            directories=[self._directories.common],
            devices=devices,
            hugepages=dpdk or netdev,
            # AF_XDP's libxdp finds the program that it has just attached by its number, which takes SYS_ADMIN.
            capabilities=["sys_admin"] if netdev else [],
            attached=endpoint_spec.attached,
            image=None if spec.image is None else Path(spec.image),
        )
        node = make_node(spec.node, self._session, node_spec, self._case.path.side(index))
        self._undo.append(node.stop)
        facts: NodeFacts = node.start()
        self._nodes[index], self._inits[index] = node, facts.init_pid
        return Attachment(
            index=index,
            pair=self._case.path.pair(index),
            side=self._case.path.side(index),
            address=endpoint_spec.address,
            node=facts,
            socket_dir=writable[-1],
            peer=self._endpoint_specs[self._case.path.peer(index)].address,
            socket=endpoint_spec.socket,
            attached=endpoint_spec.attached,
        )

    def _reserve(self, mib: int) -> None:
        """Reserves the huge pages of a process, in MiB. Raises ProvisionError."""
        if mib:
            hugepages.reserve(self._session, self._numa_node, mib)
            self._undo.append(lambda: hugepages.release(self._session, self._numa_node, mib))

    def _reserve_endpoints(self, indexes: Sequence[int]) -> None:
        for index in sorted(set(indexes) - self._pages_for):
            self._pages_for.add(index)
            self._reserve(endpoint_mib(self._case.traffic.jumbo, self._case.traffic.queues))

    def launch(self, plan: LaunchPlan) -> str:
        for old_id in [launch_id for launch_id, launch in self._launches.items() if not launch.live]:
            old = self._launches.pop(old_id)
            old.end()
            old.remove_logs()
        plan = replace(plan, processes=tuple(map(fill_in_workload, plan.processes)))
        dpdk = [process.index for process in plan.processes if process.argv[1].startswith(_DPDK_APPLICATION)]
        self._reserve_endpoints(dpdk)
        self._count += 1
        launch_id = f"l{self._count}"
        site = LaunchSite(self._nodes, self._cpus, self._directories.logs, self._inits, self.files, self._wake)
        launch = RunningLaunch(site, launch_id)
        self._launches[launch_id] = launch
        if self._functions is not None and self._case.new_flows:
            self._functions.forget()
        launch.begin(plan)
        self.switch.meet_endpoints()
        return launch_id

    def start(self, launch_id: str, delay_s: float = 0.02) -> int:
        """Makes all processes, which are connected, begin; returns that moment, CLOCK_MONOTONIC in ns.

        Until the launch ends, this thread keeps to the service CPUs. Elsewhere its wake-up for a line would make a
        receiver or a worker of the switch wait.
        """
        self._session.poll_idle(self._case.polls)
        self.switch.prepare_traffic()
        self._step_aside()
        pids = self.pids(launch_id)
        cpus = {*self._workers, *(self._cpus[index] for index in pids)}
        self._watch = launch_id, CpuWatch(self._own, cpus, pids, self._workers)
        return self._launches[launch_id].start(delay_s)

    def interference(self, launch_id: str) -> Interference | None:
        return self._watch[1].read() if self._watch is not None and self._watch[0] == launch_id else None

    def _step_aside(self) -> None:
        before = os.sched_getaffinity(0)
        if self._affinity is None and before & set(self._service):
            os.sched_setaffinity(0, before & set(self._service))
            self._affinity = before

    def _step_back(self) -> None:
        before, self._affinity = self._affinity, None
        if before is not None:
            os.sched_setaffinity(0, before)

    def tell(self, launch_id: str, text: str, index: int | None = None) -> None:
        self._launches[launch_id].tell(text, index)

    def poll(self, launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        self._bound_logs()
        return self._launches[launch_id].poll(timeout_s, quiet=quiet)

    def _bound_logs(self) -> None:
        """Cuts logs that have become huge, once a second: they are in memory (a tmpfs)."""
        now = time.monotonic()
        if now - self._logs_bounded_at > _LOGS_EVERY_S:
            self._logs_bounded_at = now
            self._session.spawner.bound_logs()

    def log_tail(self, launch_id: str, index: int) -> str:
        return self._launches[launch_id].log_tail(index)

    def pids(self, launch_id: str) -> dict[int, int]:
        return self._launches[launch_id].pids()

    def end(self, launch_id: str) -> None:
        self._step_back()
        if (launch := self._launches.get(launch_id)) is None:
            return
        self._hardware.end()
        launch.end()
        self._session.spawner.bound_logs()
        if self._group is not None:
            self._group.check()

    def usage(self, launch_id: str) -> dict[int, Usage]:
        return self._launches[launch_id].usage()

    def ask(self, index: int, address: str, question: Question) -> str:
        return sockets.ask(f"/proc/{self._inits[index]}/ns/net", address, question)

    def cpu_state(self) -> CpuState:
        return self._session.cpu_meter.read(workload_path(), self.placement.hand_overs)

    def counters(self) -> tuple[PortCounters, ...] | None:
        ports = self.switch.counters()
        return None if ports is None else tuple(ports)

    def busy(self) -> Busy | None:
        return self.switch.busy()

    def hardware(self, launch_id: str) -> dict[str, dict[str, int]] | None:
        return self._hardware.read(launch_id, self.pids(launch_id).values(), self._workers)

    def batches(self) -> Batches | None:
        return self.switch.batches()

    def assignment(self) -> dict[str, int] | None:
        cpu_by_port = self.switch.assignment()
        return None if cpu_by_port is None else {str(index): cpu for index, cpu in sorted(cpu_by_port.items())}

    @property
    def switch(self) -> Switch:
        """The driver that was started. Raises ProvisionError if there is none."""
        if self._switch is None:
            raise ProvisionError("the rig is not built")
        return self._switch

    def set_ageing(self, seconds: float) -> None:
        self.switch.set_ageing(seconds)

    def check(self) -> None:
        check_switch(self.switch, self._nodes, self._inits)
        if self._functions is not None:
            self._functions.check()

    def functions(self) -> tuple[FunctionCounters, ...]:
        return () if self._functions is None else self._functions.counters()

    def freeze(self, pairs: tuple[int, ...]) -> None:
        if self._functions is not None:
            self._functions.freeze(pairs)

    def prove(self) -> str | None:
        connected = self.switch.prepare_traffic
        if self._case.ip_version is not None:
            return prove_router(self, self._case, connected)
        return None if self._functions is None else prove(self, self._case, self._functions, connected)

    def path_fault(self) -> str | None:
        """Returns a known fault of the path. The cable is not examined if the kernel does not have the NIC."""
        cable = None if self._uplink is None else cable_fault(self._session, self._uplink)
        return cable or self.switch.fault()

    def pause(self) -> None:
        if self._paused:
            return
        if any(launch.live for launch in self._launches.values()):
            for node in self._nodes.values():
                node.pause()
        self.switch.pause()
        if self._functions is not None:
            self._functions.pause()
        if self._kernel is not None:
            self._kernel.restore()
        self._paused = True

    def resume(self) -> None:
        if not self._paused:
            return
        if self._kernel is not None:
            self._kernel.set()
        self.switch.resume()
        if self._functions is not None:
            self._functions.resume()
        if any(launch.live for launch in self._launches.values()):
            for node in self._nodes.values():
                node.resume()
        self._paused = False

    def undo(self) -> None:
        """Removes everything in reverse order and goes on after an error. Idempotent.

        Raises ProvisionError with a sentence for each thing that remains; the session's journal has them, too.
        """
        self._step_back()
        self._hardware.end()
        failures: list[str] = []
        for launch_id in list(self._launches):
            self._attempt(self._launches.pop(launch_id).end, failures)
        while self._undo:
            self._attempt(self._undo.pop(), failures)
        self._nodes.clear()
        self._switch = self._functions = None
        self._paused = False
        if failures:
            raise ProvisionError("parts of the rig could not be removed:\n" + "\n".join(failures))

    @staticmethod
    def _attempt(action: Callable[[], None], failures: list[str]) -> None:
        try:
            action()
        except (IcbenchError, OSError) as error:
            failures.append(str(error))
