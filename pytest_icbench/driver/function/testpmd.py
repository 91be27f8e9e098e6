# SPDX-License-Identifier: BSD-3-Clause
"""Functions of DPDK's testpmd, by its forwarding modes: ``io``, ``macswap``, ``tupleswap`` and ``noisyN``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.function.frames import frame, swapped, turned
from pytest_icbench.driver.function.protocol import Ends, Function, FunctionSpec, Probe
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.common.ports import VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.dpdk.telemetry import query, telemetry_socket
from pytest_icbench.driver.workload.eal import eal_arguments, virtual_device
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.session import HostSession
from pytest_icbench.model import flows
from pytest_icbench.model.endpoint import VhostUser
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.traffic import carries_jumbo

_PART = re.compile(r"io|macswap|tupleswap|noisy(?P<lookups>[1-9]\d{0,3})", re.ASCII)
#: Its names for modes, where they are other ones.
_MODES = {"tupleswap": "5tswap"}
_RING, _BUFFERS = 256, 4096
#: Huge pages of its buffers and, if noisy, of the memory that it looks up, in MiB.
_HUGEPAGES_MIB, _NOISY_MIB = 160, 64
_FRAMES, _FIRST_PORT = 20, 1024
_UP = "UP"


class TestpmdFunction(Function):
    """A testpmd with two virtio-user ports. It polls, and never gives its CPU away."""

    __test__ = False  # no class of tests
    name = "testpmd"
    ports = (VHOST_USER, VHOST_USER_PACKED)
    polls = True
    help = "io, macswap, tupleswap (MAC, IP and UDP ports), noisyN (N random reads and writes a frame, to 9999)"
    hugepages_mib = _HUGEPAGES_MIB
    memory_mib = 32
    any_frame = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"arguments": "texts"}

    def __init__(self) -> None:
        self._daemon: Daemon | None = None
        self._facts = FunctionFacts(self.name)
        self._runtime = Path()
        self._place = (0, 1)

    @classmethod
    def has(cls, function: str) -> bool:
        return _PART.fullmatch(function) is not None

    @classmethod
    def readdresses(cls, function: str, hops: int) -> bool:  # noqa: ARG003 - as ``Function``
        return function in ("macswap", "tupleswap")

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames in both directions, which pass as they are or turned round."""
        change = {"macswap": swapped, "tupleswap": turned}.get(function, bytes)
        words = {"macswap": "with its MAC addresses swapped", "tupleswap": "with its addresses and ports swapped"}

        def probes(forth: bool) -> list[Probe]:
            source, target = (ends.leader, ends.follower) if forth else (ends.follower, ends.leader)
            frames = [frame(source, target, _FIRST_PORT + number) for number in range(_FRAMES)]
            says = f"has to pass {words.get(function, 'unchanged')}"
            return [Probe(forth, data, change(data), says) for data in frames]

        return probes(True), probes(False)

    def _binary(self, session: HostSession) -> Path:
        remedy = "install it (Debian's package dpdk)"
        return dpdk_process.find_binary(session, self.name, None, ["dpdk-testpmd"], remedy)

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002 - as ``Function``
        """Returns the version of DPDK. Raises Unsupported with the remedy."""
        return FunctionFacts(self.name, f"DPDK {dpdk_process.eal_version(session, self._binary(session), self.name)}")

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts it in the node and waits until both ports are up. Raises ProvisionError with the log's tail."""
        node, inner, outer = spec.with_ports()
        if not all(isinstance(port, VhostUser) and port.role == "front-end" for port in (inner, outer)):
            raise Unsupported("testpmd as a function needs virtio-user ports: measure over a switch")
        if carries_jumbo(spec.mtu):
            raise Unsupported("testpmd as a function takes frames up to 1518 bytes: leave larger ones out")
        if spec.function == "tupleswap" and flows.differ_by_port(spec.flows):
            raise Unsupported(
                "tupleswap leads flows that differ by port to as many ports, of which a receiver hears one: let their"
                " addresses differ"
            )
        self._place = spec.pair, spec.hop
        self._runtime = directory = Path(node.spec.sockets[0]) / f"function{spec.pair}-{spec.hop}"
        directory.mkdir()
        eal = eal_arguments(inner, "dpdk", cpu=spec.cpu, ring=_RING, jumbo=False)[:-1]
        eal.remove("--no-telemetry")
        eal[eal.index("--lcores") + 1] = f"0@{spec.cpu},1@{spec.cpu}"
        eal[eal.index("-m") + 1] = str(_HUGEPAGES_MIB)
        for number, port in enumerate((inner, outer)):
            assert isinstance(port, VhostUser)
            eal.append(f"--vdev={virtual_device(port, 'dpdk', ring=_RING, jumbo=False, number=number)}")
        own = [*_options(spec.function), *spec.config.get("arguments", ())]
        # Its telemetry has the counters. It ends at the end of its input, so it does not outlive a killed harness.
        argv = ["env", f"RUNTIME_DIRECTORY={directory}", str(self._binary(session).resolve()), *eal, "--", *own]
        log = spec.work_dir / f"function{spec.pair}-{spec.hop}.log"
        self._daemon = daemon = Daemon(spec.label, node.spawn(argv, cpus=[spec.cpu], log=log))
        daemon.wait_until(self._ready, failure="does not see its ports up", timeout_s=2 * dpdk_process.START_S)
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, {"arguments": own})

    def _ready(self) -> bool:
        path = telemetry_socket(self._runtime)
        if path is None:
            return False
        links = query(path, *(f"/ethdev/link_status,{port}" for port in (0, 1)))
        return all(link is not None and link.get("status") == _UP for link in links)

    def facts(self) -> FunctionFacts:
        return self._facts

    def check(self) -> None:
        if self._daemon is None:
            raise ProvisionError("the function was not started")
        self._daemon.check()

    def counters(self) -> FunctionCounters:
        """Returns what its ports counted; nothing is denied."""
        self.check()
        path = telemetry_socket(self._runtime)
        if path is None:
            raise ProvisionError("the function tells no counters: its telemetry socket is gone")
        inner, outer = query(path, *(f"/ethdev/stats,{port}" for port in (0, 1)))
        pair, hop = self._place
        taken, back = inner["ipackets"], outer["ipackets"]
        return FunctionCounters(pair, taken=taken, given=outer["opackets"], taken_back=back, denied=0, hop=hop)

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()


def _options(function: str) -> list[str]:
    """Returns testpmd's own options for a function. Pure."""
    match = _PART.fullmatch(function)
    lookups = match["lookups"] if match else None
    mode = _MODES.get(function, function) if lookups is None else "noisy"
    options = [f"--forward-mode={mode}", "--port-topology=paired", "--nb-cores=1", f"--total-num-mbufs={_BUFFERS}"]
    if lookups is not None:
        options += [f"--noisy-lkup-memory={_NOISY_MIB}", f"--noisy-lkup-num-reads-writes={lookups}"]
    return options
