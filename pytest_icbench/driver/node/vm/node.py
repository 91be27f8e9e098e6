# SPDX-License-Identifier: BSD-3-Clause
"""Virtual machines of QEMU as nodes, by KVM or, where a host has none, by emulation.

A machine boots a kernel with the workload as its only program. QEMU runs in a network namespace with the machine's tap,
so that a switch takes its port from there. A process of a machine is a ``relay`` on the host, which passes on its
input, output, errors and signals by a virtio-serial port: no such byte crosses the switch.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.node.netns import NetnsNode
from pytest_icbench.driver.node.protocol import NodeFacts, NodeSpec
from pytest_icbench.driver.node.vm import initramfs, qemu
from pytest_icbench.driver.workload.eal import endpoint_mib
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.cleanup import remove_tree
from pytest_icbench.host.findings import Finding, note, success
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import Process, run, wait_until
from pytest_icbench.host.resource import hugepages
from pytest_icbench.host.resource.hugepages import memory_kib
from pytest_icbench.model.endpoint import Address, Endpoint, Pci, Veth, VhostUser
from pytest_icbench.model.traffic import carries_jumbo

#: Name of the kernel among the session's programs.
KERNEL = "vm-kernel"
#: Memory of a machine, and of QEMU itself, in MiB.
MACHINE_MIB, QEMU_MIB = 512, 96
#: Pages that DPDK takes in addition to those named to it, in MiB.
_SPARE_MIB = 16
_GUEST_PAGE_MIB = 2
#: Longest time until a machine answers, and of a step of its set-up, in seconds; emulation takes several times that.
BOOT_S, STEP_S, EMULATED = 60.0, 20.0, 4
_POLL_S = 0.005
_VERSION_S = 10.0
#: The workload's applications that read or write files, which a machine does not share with the host.
_WITH_FILES = ("replay", "capture")
_VHOST_NET = Path("/dev/vhost-net")
_NODES = "/sys/devices/system/node/node[0-9]*"


def untimed(reason: str) -> str:
    """Returns why times in an emulated machine are none, from why there is no KVM."""
    return (
        f"node vm is emulated, instruction by instruction, because {reason}: its times are those of no machine; use a"
        " host with KVM"
    )


class VmNode(NetnsNode):
    """A virtual machine, see ``node.protocol.Node``. It has a CPU for each of the node's, pinned to that."""

    kind: ClassVar[str] = "vm"
    machine: ClassVar[bool] = True

    @staticmethod
    def probe(session: HostSession) -> None:
        """Raises Unsupported without root, QEMU, a kernel with virtio, or memory for two machines."""
        NetnsNode.probe(session)
        if shutil.which(qemu.PROGRAM) is None:
            raise Unsupported(
                f"node vm needs the program {qemu.PROGRAM}, which is not installed: apt install qemu-system-x86"
            )
        initramfs.Kernel.find(session.binary(KERNEL), session.root).load_order(initramfs.MODULES)
        needed, memory = MACHINE_MIB + QEMU_MIB, memory_kib(session.root).get("MemAvailable")
        if memory is not None and memory // 1024 < 2 * needed:
            raise Unsupported(
                f"node vm takes {needed} MiB of memory for each machine, and the host has {memory // 1024} MiB: free"
                " some"
            )
        if session.node_memory_mib < needed:
            raise Unsupported(
                f"node vm takes {needed} MiB of memory, and a node may have {session.node_memory_mib} MiB: raise"
                " --icbench-node-memory"
            )

    @staticmethod
    def findings() -> Iterator[Finding]:
        """Yields whether QEMU, a kernel and KVM are there."""
        program = shutil.which(qemu.PROGRAM)
        if program is None:
            yield note("node vm", f"{qemu.PROGRAM} is not installed", "apt install qemu-system-x86")
        else:
            yield success("node vm", _version())
        try:
            kernel = initramfs.Kernel.find(None)
            kernel.load_order(initramfs.MODULES)
            yield success("node vm", f"machines boot {kernel.image}")
        except Unsupported as error:
            sentence, _, remedy = str(error).partition(": ")
            yield note("node vm", sentence, remedy or None)
        if (reason := qemu.explain_no_kvm()) is None:
            yield success("node vm", "/dev/kvm makes machines")
        else:
            yield note("node vm", f"machines are emulated, and have no times: {reason}", "load the module kvm")

    @staticmethod
    def treatment() -> dict[str, Any]:
        """Returns the version of QEMU, and what executes the machines."""
        return {"qemu": _version(), "accelerator": "tcg" if qemu.explain_no_kvm() else "kvm"}

    def __init__(self, session: HostSession, spec: NodeSpec) -> None:
        super().__init__(session, spec)
        self._qemu: Process | None = None
        self._channels: dict[int, Process] = {}
        self._slowness = 1
        self._claim: tuple[int, int] | None = None
        self._facts: NodeFacts | None = None
        self._directory = session.dir / f"{spec.name}.vm"

    def start(self) -> NodeFacts:
        """Makes the machine, which boots once it is plugged in. Raises ProvisionError with the end of its console."""
        reason = qemu.explain_no_kvm()
        facts = super().start()
        try:
            machine = self._prepare(kvm=reason is None)
            prepared_ns = time.perf_counter_ns()
            log = self._session.logs / f"{self.spec.name}.console.log"
            self._qemu = process = self._begin(machine.argv(), self._emulator_cpus, log, pipes=False)
            self._slowness = EMULATED if reason else 1
            self._await(machine.monitor.is_socket, "opened its monitor", STEP_S)
            self._machine = machine
            self._pin()
        except BaseException:
            self.stop()
            raise
        self._facts = replace(
            facts,
            init_pid=process.pid,
            prepared_ns=prepared_ns,
            link=qemu.TAP if machine.tap else None,
            plug=self.plug,
            untimed=untimed(reason) if reason else None,
        )
        return self._facts

    def _prepare(self, *, kvm: bool) -> qemu.Machine:
        """Makes the machine's files and reserves its memory. Raises ProvisionError."""
        session, spec = self._session, self.spec
        try:
            kernel = initramfs.Kernel.find(session.binary(KERNEL), session.root)
            archive = self._initramfs(kernel)
        except (Unsupported, OSError) as error:
            raise ProvisionError(str(error)) from None
        self._directory.mkdir(exist_ok=True)
        node = _numa_node(session, spec.cpus[0])
        if spec.hugepages:
            hugepages.reserve(session, node or 0, MACHINE_MIB)
            self._claim = node or 0, MACHINE_MIB
        return qemu.Machine(
            name=spec.name,
            kernel=kernel.image,
            initramfs=archive,
            init=workload_path(),
            directory=self._directory,
            cpus=len(spec.cpus),
            memory_mib=MACHINE_MIB,
            kvm=kvm,
            page_kib=session.hugepage_size_kib if spec.hugepages else None,
            numa_node=node,
            tap=not spec.hugepages,
            vhost=_VHOST_NET.exists(),
        )

    def _initramfs(self, kernel: initramfs.Kernel) -> Path:
        """Returns the initramfs of all machines of the session, made by the first one."""
        path = self._session.dir / "vm-initramfs"
        if not path.exists():
            modules = kernel.load_order(initramfs.MODULES)
            path.write_bytes(initramfs.build(initramfs.needed_files(workload_path()), modules))
        return path

    @property
    def _emulator_cpus(self) -> list[int]:
        """The CPUs of QEMU's other threads and of the relays: not those of the machine, unless there are no others."""
        mine = os.sched_getaffinity(0)
        return sorted(mine - set(self.spec.cpus)) or sorted(mine)

    def _pin(self) -> None:
        """Pins each virtual CPU to its CPU. Raises ProvisionError."""
        with qemu.Monitor(self._machine.monitor) as monitor:
            for thread, cpu in zip(qemu.threads(monitor.call("query-cpus-fast")), self.spec.cpus, strict=True):
                try:
                    os.sched_setaffinity(thread, {cpu})
                except OSError as error:
                    raise ProvisionError(f"a CPU of {self.spec.name} cannot run on {cpu}: {error.strerror}") from None

    def plug(self, endpoint: Endpoint, mtu: int, neighbours: Sequence[Address]) -> Endpoint:
        """Gives the machine its network device and boots it; see ``NodeFacts.plug``. Raises ProvisionError."""
        address = endpoint.address
        match endpoint:
            case Veth():
                self._boot(qemu.device_properties(address.mac, mtu=mtu))
                self._call("link", address.ip, str(address.prefix), str(mtu))
                for neighbour in neighbours:
                    self._call("neighbour", neighbour.mac, neighbour.ip)
                return replace(endpoint, interface="eth0")
            case VhostUser(role="front-end", serves=False):
                with qemu.Monitor(self._machine.monitor) as monitor:
                    path = {"type": "unix", "data": {"path": endpoint.socket}}
                    backend = {"type": "socket", "data": {"addr": path, "server": False}}
                    monitor.call("chardev-add", id="switch", backend=backend)
                    monitor.call("netdev_add", type="vhost-user", id="net", chardev="switch")
                properties = qemu.device_properties(address.mac, packed=endpoint.packed)
                # DPDK takes no interrupts, and an emulating QEMU 7.2 ends at those of a vhost-user device.
                self._boot({**properties, "vectors": 0})
                pages = (endpoint_mib(carries_jumbo(mtu)) + _SPARE_MIB) // _GUEST_PAGE_MIB
                self._call("pages", str(pages))
                self._call("driver", qemu.PCI_ADDRESS, initramfs.DPDK_DRIVER)
                return Pci(address=address, pci=qemu.PCI_ADDRESS)
        raise ProvisionError(f"node {self.spec.name} is a virtual machine, which has no port of kind {endpoint.kind}")

    def _boot(self, properties: dict[str, Any]) -> None:
        """Adds the network device, lets the machine boot, and waits until it answers."""
        with qemu.Monitor(self._machine.monitor) as monitor:
            monitor.call("device_add", **properties)
            monitor.call("cont")
        self._call("ready", timeout_s=BOOT_S)

    def _call(self, *words: str, timeout_s: float = STEP_S) -> None:
        """Has the machine set something up, and waits for that. Raises ProvisionError."""
        log = self._session.logs / f"{self.spec.name}.setup.log"
        process = self.spawn([str(workload_path()), "guest", *words], cpus=self.spec.cpus, log=log)
        try:
            self._await(lambda: process.poll() is not None, f"answered '{words[0]}'", timeout_s)
        finally:
            process.stop(term_s=0)
        if process.poll() != 0:
            raise ProvisionError(
                f"the virtual machine {self.spec.name} cannot be set up ({' '.join(words)}):\n{process.tail(3)}"
            )

    def _await(self, condition: Callable[[], object], what: str, timeout_s: float) -> None:
        """Waits for the machine. Raises ProvisionError with the end of its console if it ends, or takes longer."""
        process = self._qemu
        assert process is not None
        timeout_s *= self._slowness
        done = wait_until(lambda: condition() or process.poll() is not None, timeout_s, _POLL_S)
        if process.poll() is not None or not done:
            how = "has ended" if process.poll() is not None else f"has not {what} within {timeout_s:g} s"
            raise ProvisionError(
                f"the virtual machine {self.spec.name} {how}; the end of its console:\n{process.tail(8)}"
            )

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        """See ``Node.spawn``. The process returned is the relay. Raises ProvisionError if the node is not running.

        It has the workload as its only program.
        """
        if Path(argv[0]) != workload_path() or argv[1].removeprefix("dpdk-") in _WITH_FILES:
            raise ProvisionError(
                f"{' '.join(argv[:2])} needs files of this host, and node {self.spec.name} is a virtual machine, which"
                " has the workload alone"
            )
        channels = self._channels
        number = next((n for n in range(qemu.CHANNELS) if n not in channels or channels[n].poll() is not None), None)
        if number is None:
            raise ProvisionError(f"node {self.spec.name} runs {qemu.CHANNELS} processes, and no more at a time")
        cpu = list(self.spec.cpus).index(cpus[0])
        relay = [argv[0], "relay", str(self._directory / f"c{number}"), str(cpu), *guest_words(argv, cpu)]
        self._channels[number] = process = super().spawn(relay, cpus=self._emulator_cpus, log=log)
        return process

    def stop(self) -> None:
        """See ``Node.stop``."""
        super().stop()
        self._qemu = None
        self._channels.clear()
        if self._claim is not None:
            hugepages.release(self._session, *self._claim)
            self._claim = None
        remove_tree(self._directory)


def guest_words(argv: Sequence[str], cpu: int) -> list[str]:
    """Returns a command line with the machine's CPU for the host's: DPDK's ``--lcores`` names it."""
    words = list(argv)
    for place, word in enumerate(words[:-1]):
        if word == "--lcores":
            words[place + 1] = f"{words[place + 1].partition('@')[0]}@{cpu}"
    return words


def _numa_node(session: HostSession, cpu: int) -> int | None:
    """Returns a CPU's NUMA node; None on a host with one."""
    if len(session.root.glob(_NODES)) < 2:
        return None
    found = session.root.glob(f"/sys/devices/system/cpu/cpu{cpu}/node[0-9]*")
    return int(found[0].rpartition("node")[2]) if found else None


def _version() -> str:
    try:
        return run([qemu.PROGRAM, "--version"], timeout_s=_VERSION_S).stdout.splitlines()[0]
    except (ProvisionError, IndexError):
        return "unknown"
