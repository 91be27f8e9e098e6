# SPDX-License-Identifier: BSD-3-Clause
"""Functions that are one process between two ports, of DPDK or not: its start, its state, its end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.function.protocol import Function, FunctionSpec
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.common.userspace_ports import VFIO, VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.dpdk.dpdk_process import query, telemetry_socket
from pytest_icbench.driver.workload.eal import eal_arguments, virtual_device
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import Pci, VhostUser
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_tree import unpacked_tree
from pytest_icbench.model.traffic import MTU_ETHERNET_FRAME_BYTES, carries_jumbo

_REMEDY = "run `make`, which builds it from the source in Debian's package dpdk-doc"


def find_example(session: HostSession, name: str) -> Path:
    """Returns a program that is one of DPDK's examples. Raises Unsupported with the remedy."""
    installed = Path(sys.executable).parent / f"icbench-{name}"
    return dpdk_process.find_binary(session, name, None, [installed, installed.name], _REMEDY)


def check_ports(spec: FunctionSpec, name: str) -> None:
    """Raises Unsupported for ports without a MAC address and for frames that do not fit into a buffer."""
    if not all(
        isinstance(port, Pci) or (isinstance(port, VhostUser) and port.role == "front-end")
        for port in (spec.inner, spec.outer)
    ):
        raise Unsupported(f"{name} needs virtio-user ports with separate MAC addresses: measure over a switch")
    if carries_jumbo(spec.mtu):
        raise Unsupported(f"{name} takes frames up to {MTU_ETHERNET_FRAME_BYTES} bytes: leave larger ones out")


def eal_of_both(spec: FunctionSpec, ring: int) -> list[str]:
    """Returns EAL's arguments for the inner and the outer port, which ``check_ports`` has accepted."""
    _, inner, outer = spec.require_ports()
    eal = eal_arguments(inner, "dpdk", cpu=spec.cpu, ring=ring, jumbo=False)
    if isinstance(outer, Pci):
        return [*eal, "-a", outer.pci]
    return [*eal[:-1], *(f"--vdev={device}" for device in virtio_user_devices(spec, ring))]


def virtio_user_devices(spec: FunctionSpec, ring: int) -> list[str]:
    """Returns the values of ``--vdev`` for the inner and the outer port, which ``check_ports`` has accepted."""
    devices = []
    for number, port in enumerate((spec.inner, spec.outer)):
        assert isinstance(port, VhostUser)
        devices.append(virtual_device(port, "dpdk", ring=ring, jumbo=False, number=number))
    return devices


def port_statistics(runtime: Path, ports: int) -> list[Any]:
    """Returns the counters of the first ``ports`` ports. Raises ProvisionError if the process does not report them."""
    path = telemetry_socket(runtime)
    if path is None:
        raise ProvisionError("the function reports no counters: its telemetry socket is gone")
    return query(path, *(f"/ethdev/stats,{port}" for port in range(ports)))


#: Port kinds of functions whose ports receive frames at their MAC addresses.
ROUTER_PORTS = (VHOST_USER, VHOST_USER_PACKED, VFIO)


class ProcessFunction(Function):
    """A driver whose function is one process. Its ``start`` sets ``_spec`` and ``_daemon``."""

    def __init__(self) -> None:
        self._daemon: Daemon | None = None

    def live(self) -> tuple[FunctionSpec, Daemon]:
        """Returns the request and the running process. Raises ProvisionError if it has died or was not started."""
        spec = self.started_spec()
        if self._daemon is None:
            raise ProvisionError(f"{spec.label} was not started")
        self._daemon.check()
        return spec, self._daemon

    def check(self) -> None:
        self.live()

    def counters(self) -> FunctionCounters:
        """Returns only pair and hop: the process has no counters."""
        spec, _ = self.live()
        return FunctionCounters(spec.pair, hop=spec.hop)

    def leave(self) -> None:
        if self._daemon is not None:
            self._daemon.leave()

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()


class DpdkFunction(ProcessFunction):
    """A driver whose function is one DPDK process. It polls and never yields its CPU.

    Attributes:
        ring: descriptors of its rings.
        main_apart: whether the main thread does not poll, so that a second thread polls on the same CPU.
        telemetry: whether EAL's telemetry socket is open.
    """

    ports: ClassVar[tuple[str, ...]] = (VHOST_USER, VHOST_USER_PACKED)
    polls = True
    yields = False
    memory_mib = 32
    ring: ClassVar[int] = 256
    main_apart: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False

    @classmethod
    def program(cls, session: HostSession) -> Path:
        """Returns its program. Raises Unsupported with the remedy."""
        return find_example(session, cls.name)

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:
        program = cls.program(session).resolve()
        return (unpacked_tree(program) or program.parent,)

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002 - as ``Function``
        """Returns the version of DPDK. Raises Unsupported with the remedy."""
        return FunctionFacts(self.name, f"DPDK {dpdk_process.eal_version(session, self.program(session), self.name)}")

    def start_process(self, session: HostSession, spec: FunctionSpec, options: Sequence[str]) -> Daemon:
        """Starts the program in the node: EAL's arguments for both ports, then its own options."""
        node, _, _ = spec.require_ports()
        eal = eal_of_both(spec, self.ring)
        eal[eal.index("-m") + 1] = str(self.hugepages_mib)
        if self.main_apart:
            eal[eal.index("--lcores") + 1] = f"0@{spec.cpu},1@{spec.cpu}"
        if self.telemetry:
            eal.remove("--no-telemetry")
        program = self.program(session).resolve()
        argv = [
            "env",
            f"RUNTIME_DIRECTORY={spec.directory}",
            str(program),
            *eal,
            *dpdk_process.plugin_options(program),
            "--",
            *options,
        ]
        self._spec = spec
        self._daemon = daemon = Daemon(spec.label, node.spawn(argv, cpus=[spec.cpu], log=spec.log))
        return daemon

    def record_facts(self, session: HostSession, config: dict[str, Any]) -> None:
        """Records the facts of the running function, with the configuration with which it was started."""
        spec, _ = self.live()
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, config)
