# SPDX-License-Identifier: BSD-3-Clause
"""``route`` in user space: DPDK's example l3fwd, which looks routes up by longest prefix match (LPM)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.linux_parts import SOURCES
from pytest_icbench.driver.function.protocol import Ends, Function, FunctionSpec, Probe
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.common.ports import VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.workload.eal import eal_arguments, virtual_device
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.endpoint import Address, VhostUser
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.traffic import carries_jumbo

_FUNCTION = "route"
_REMEDY = "run `make`, which builds it from the source in Debian's package dpdk-doc"
#: Two tables of routes of 64 MiB each, and its buffers.
_HUGEPAGES_MIB = 256
_RING = 256
_STARTED = "entering main loop"
#: It reads routes of IPv4 only beside some of IPv6: those of documentation (RFC 3849).
_ROUTES_IPV6 = "R2001:db8::/32 0\n"


def routes(ends: Ends) -> str:
    """Returns the routes of IPv4: port 0 leads to side a and to the addresses of its flows, port 1 to side b. Pure."""
    return f"R{ends.leader.ip}/32 0\nR{SOURCES} 0\nR{ends.follower.ip}/32 1\n"


def find(session: HostSession) -> Path:
    """Returns the program. Raises Unsupported with the remedy."""
    installed = Path(sys.executable).parent / "icbench-l3fwd"
    return dpdk_process.find_binary(session, L3fwdFunction.name, None, [installed, "icbench-l3fwd"], _REMEDY)


class L3fwdFunction(Function):
    """A router with two virtio-user ports. It polls, and never gives its CPU away."""

    name = "l3fwd"
    ports = (VHOST_USER, VHOST_USER_PACKED)
    polls = True
    help = "route"
    hugepages_mib = _HUGEPAGES_MIB
    memory_mib = 32
    takes_binary = True

    def __init__(self) -> None:
        self._daemon: Daemon | None = None
        self._facts = FunctionFacts(self.name)
        self._place = (0, 1)

    @classmethod
    def has(cls, function: str) -> bool:
        return function == _FUNCTION

    @classmethod
    def seen(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns the sides' IP addresses behind the router's own MAC addresses."""
        return LinuxFunction.seen(function, ends)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns the frames that prove any router."""
        return LinuxFunction.proof(function, ends)

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:
        directory = find(session).resolve().parent
        return () if directory.is_relative_to("/usr") else (directory,)

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002 - as ``Function``
        """Returns the version of DPDK. Raises Unsupported with the remedy."""
        return FunctionFacts(self.name, f"DPDK {dpdk_process.eal_version(session, find(session), self.name)}")

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts it in the node and waits until it polls. Raises ProvisionError with the log's tail."""
        node, inner, outer = spec.with_ports()
        if not all(isinstance(port, VhostUser) and port.role == "front-end" for port in (inner, outer)):
            raise Unsupported(
                "l3fwd needs virtio-user ports, which have MAC addresses of their own: measure over a switch"
            )
        if carries_jumbo(spec.mtu):
            raise Unsupported("l3fwd takes frames up to 1518 bytes: leave larger ones out")
        self._place = spec.pair, spec.hop
        directory = Path(node.spec.sockets[0]) / f"function{spec.pair}-{spec.hop}"
        directory.mkdir()
        texts = {"ipv4": routes(spec.ends), "ipv6": _ROUTES_IPV6}
        for family, text in texts.items():
            (directory / family).write_text(text, encoding="ascii")
        eal = eal_arguments(inner, "dpdk", cpu=spec.cpu, ring=_RING, jumbo=False)[:-1]
        eal[eal.index("-m") + 1] = str(_HUGEPAGES_MIB)
        for number, port in enumerate((inner, outer)):
            assert isinstance(port, VhostUser)
            eal.append(f"--vdev={virtual_device(port, 'dpdk', ring=_RING, jumbo=False, number=number)}")
        own = ["-p", "3", "--parse-ptype", "--lookup", "lpm", "--config", "(0,0,0),(1,0,0)"]
        own += ["--rx-queue-size", str(_RING), "--tx-queue-size", str(_RING)]
        for number, side in enumerate((spec.ends.leader, spec.ends.follower)):
            own += ["--eth-dest", f"{number},{side.mac}"]
        files = [f"--rule_{family}={directory / family}" for family in texts]
        log = spec.work_dir / f"function{spec.pair}-{spec.hop}.log"
        process = node.spawn([str(find(session).resolve()), *eal, "--", *own, *files], cpus=[spec.cpu], log=log)
        self._daemon = daemon = Daemon(spec.label, process)
        daemon.wait_until(
            lambda: _STARTED in log.read_text(encoding="utf-8", errors="replace"),
            failure="has not begun to poll",
            timeout_s=2 * dpdk_process.START_S,  # it waits for links up to 9 s
        )
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, {"arguments": own, **texts})

    def facts(self) -> FunctionFacts:
        return self._facts

    def check(self) -> None:
        if self._daemon is None:
            raise ProvisionError("the function was not started")
        self._daemon.check()

    def counters(self) -> FunctionCounters:
        """Returns nothing but its place: it has no counters."""
        self.check()
        pair, hop = self._place
        return FunctionCounters(pair, hop=hop)

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()
