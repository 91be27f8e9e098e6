# SPDX-License-Identifier: BSD-3-Clause
"""Functions in user space by tables: DPDK's example ip_pipeline routes, translates, denies and polices.

One thread of it polls, another one waits for lines of its command line at a TCP port of the node.
"""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.function.linux import LinuxFunction, pool_of
from pytest_icbench.driver.function.linux_parts import Parts
from pytest_icbench.driver.function.pipeline_script import MOST_FLOWS, MOST_RULES, RING, Script, policed_bytes, script
from pytest_icbench.driver.function.protocol import Ends, Function, FunctionSpec, Probe, SetRate
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.common.ports import VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.workload.eal import eal_arguments, virtual_device
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.namespaces import entered
from pytest_icbench.host.net import links
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.session import HostSession
from pytest_icbench.model import flows
from pytest_icbench.model.denial import Denial
from pytest_icbench.model.endpoint import Address, VhostUser
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.traffic import carries_jumbo

#: The part of a name that asks for it, where another component has the function, too.
_WORD = "pipeline"
_REMEDY = "run `make`, which builds it from the source in Debian's package dpdk-doc"
#: Its table of routes of 64 MiB, its access lists and translations, and its buffers.
_HUGEPAGES_MIB = 256
_TOLERANCE = 0.02
_PROMPT = b"pipeline> "
_HOST, _PORT = "127.0.0.1", 8086
_START_S, _ANSWER_S, _RETRY_S = 20.0, 10.0, 0.02
_PACKETS = re.compile(r"Packets: (\d+)")
_ADDED = re.compile(r"Added (\d+) rules out of (\d+)\.")
#: Where a frame has its UDP source port.
_SOURCE_PORT_AT = 34


def _parts(function: str) -> Parts | None:
    """Returns the parts of a function; None for another component's."""
    words = function.split("+")
    rest = [word for word in words if word != _WORD]
    if len(words) - len(rest) > 1:
        return None
    parts = Parts.of("+".join(rest))
    if parts is None or parts.firewall or parts.elements or parts.shape_bits or parts.sessions:
        return None
    return parts if parts.rules <= MOST_RULES else None


def _plain(function: str) -> str:
    """Returns a function's name without the part that asks for ip_pipeline."""
    return "+".join(word for word in function.split("+") if word != _WORD)


def find(session: HostSession) -> Path:
    """Returns the program. Raises Unsupported with the remedy."""
    installed = Path(sys.executable).parent / "icbench-ip_pipeline"
    names: list[str | Path] = [installed, installed.name]
    return dpdk_process.find_binary(session, IpPipelineFunction.name, None, names, _REMEDY)


class Console:
    """The command line of a running ip_pipeline.

    Args:
        netns: path of the network namespace in which it listens.
        daemon: its process.

    Raises ProvisionError if it does not answer.
    """

    def __init__(self, netns: str, daemon: Daemon) -> None:
        self._daemon = daemon
        self._socket = self._connected(netns)
        self._answer("its prompt", _START_S)

    def _connected(self, netns: str) -> socket.socket:
        deadline = time.monotonic() + _START_S
        while True:
            with entered(netns):
                connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                connection.connect((_HOST, _PORT))
            except OSError:
                connection.close()
                self._daemon.check()
                if time.monotonic() > deadline:
                    raise ProvisionError(self._daemon.late("has not opened its command line", _START_S)) from None
                time.sleep(_RETRY_S)
            else:
                return connection

    def _answer(self, what: str, timeout_s: float) -> str:
        """Returns what comes before the prompt."""
        text = b""
        deadline = time.monotonic() + timeout_s
        while not text.endswith(_PROMPT):
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                came = self._socket.recv(65536)
            except TimeoutError:
                self._daemon.check()
                raise ProvisionError(self._daemon.late(f"has not told {what}", timeout_s)) from None
            except OSError:
                came = b""
            if not came:
                self._daemon.wait_until(lambda: False, failure="closed its command line and did not end", timeout_s=1.0)
            text += came
        return text.removesuffix(_PROMPT).decode(errors="replace").strip()

    def ask(self, line: str) -> str:
        """Returns the answer to a line; most have none. Raises ProvisionError if it does not answer."""
        self._daemon.check()
        try:
            self._socket.sendall(f"{line}\n".encode())
        except OSError:
            self._daemon.wait_until(lambda: False, failure="takes no lines and did not end", timeout_s=1.0)
        return self._answer(f"the answer to '{line}'", _ANSWER_S)

    def packets(self, line: str) -> int:
        """Returns the frames that a rule has counted. Raises ProvisionError."""
        answer = self.ask(line)
        match = _PACKETS.search(answer)
        if match is None:
            raise ProvisionError(f"{self._daemon.name} does not tell its counters: {answer[:200]}")
        return int(match[1])

    def close(self) -> None:
        self._socket.close()


class IpPipelineFunction(Function):
    """A pipeline of tables between two virtio-user ports. It polls, and never gives its CPU away."""

    name = "ip_pipeline"
    ports = (VHOST_USER, VHOST_USER_PACKED)
    polls = True
    help = (
        f"parts joined by +, each once: route, nat, aclN (rules, to {MOST_RULES}) with denyP (percent), policeN"
        " (frames/s, 5k to 10M); with pipeline among them where l3fwd or ovs has the function, too"
    )
    hugepages_mib = _HUGEPAGES_MIB
    memory_mib = 32
    takes_binary = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"commands": "texts"}

    def __init__(self) -> None:
        self._spec: FunctionSpec | None = None
        self._daemon: Daemon | None = None
        self._console: Console | None = None
        self._script = Script(())
        self._facts = FunctionFacts(self.name)

    @classmethod
    def _parts_of(cls, function: str) -> Parts:
        parts = _parts(function)
        if parts is None:
            raise ProvisionError(f"{cls.name} has no function '{function}'; it has {cls.help}")
        return parts

    @classmethod
    def has(cls, function: str) -> bool:
        return _parts(function) is not None

    @classmethod
    def most_flows(cls, function: str) -> int | None:
        return MOST_FLOWS if cls._parts_of(function).nat else None

    @classmethod
    def denial(cls, function: str) -> Denial | None:
        return cls._parts_of(function).denial

    @classmethod
    def seen(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns the sides' IP addresses, or the pool's, behind the function's own MAC addresses."""
        return LinuxFunction.seen(_plain(function), ends)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns the frames that prove such a function of any component."""
        return LinuxFunction.proof(_plain(function), ends)

    @classmethod
    def set_rate(cls, function: str, frame_bytes: float) -> SetRate | None:
        pps = cls._parts_of(function).police_pps
        if not pps:
            return None
        rate, burst = policed_bytes(pps, frame_bytes)
        return SetRate(pps, _TOLERANCE, int(burst * pps / rate))

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:
        directory = find(session).resolve().parent
        return () if directory.is_relative_to("/usr") else (directory,)

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002 - as ``Function``
        """Returns the version of DPDK. Raises Unsupported with the remedy."""
        return FunctionFacts(self.name, f"DPDK {dpdk_process.eal_version(session, find(session), self.name)}")

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts it in the node and gives it its lines. Raises ProvisionError with its own words."""
        node, inner, outer = spec.with_ports()
        parts = self._parts_of(spec.function)
        _refuse(spec, parts)
        assert spec.node_facts is not None
        self._spec = spec
        directory = Path(node.spec.sockets[0]) / f"function{spec.pair}-{spec.hop}"
        directory.mkdir()
        (probes, _) = self.proof(spec.function, spec.ends)
        self._script = made = script(
            parts,
            spec.ends,
            pool_of(spec.ends),
            ports=sorted({int.from_bytes(probe.frame[_SOURCE_PORT_AT : _SOURCE_PORT_AT + 2]) for probe in probes}),
            label=spec.flows,
            frame_bytes=max(spec.sizes, default=0),
            node=Topology.read(session.root)[spec.cpu].node,
        )
        for name, text in made.files.items():
            (directory / name).write_text(text, encoding="ascii")
        eal = eal_arguments(inner, "dpdk", cpu=spec.cpu, ring=RING, jumbo=False)[:-1]
        eal[eal.index("--lcores") + 1] = f"0@{spec.cpu},1@{spec.cpu}"
        eal[eal.index("-m") + 1] = str(_HUGEPAGES_MIB)
        for number, port in enumerate((inner, outer)):
            assert isinstance(port, VhostUser)
            eal.append(f"--vdev={virtual_device(port, 'dpdk', ring=RING, jumbo=False, number=number)}")
        links.set_up("lo", spec.node_facts.netns, arp=True)
        argv = [str(find(session).resolve()), *eal, "--", "-h", _HOST, "-p", str(_PORT)]
        log = spec.work_dir / f"function{spec.pair}-{spec.hop}.log"
        self._daemon = daemon = Daemon(spec.label, node.spawn(argv, cpus=[spec.cpu], log=log))
        self._console = console = Console(spec.node_facts.netns, daemon)
        *lines, last = (line.format(directory=directory) for line in made.lines)
        lines += [*spec.config.get("commands", ()), last]
        for line in lines:
            _take(spec, line, console.ask(line))
        version = self.probe(session, spec.function).version
        self._facts = FunctionFacts(self.name, version, {"lines": [*made.lines], "files": dict(made.files)})

    def facts(self) -> FunctionFacts:
        return self._facts

    def _live(self) -> tuple[FunctionSpec, Console]:
        if self._spec is None or self._daemon is None or self._console is None:
            raise ProvisionError("the function was not started")
        self._daemon.check()
        return self._spec, self._console

    def check(self) -> None:
        self._live()

    def counters(self) -> FunctionCounters:
        """Returns what came in from both sides, and as denied what was not routed of it."""
        spec, console = self._live()
        routed = [sum(map(console.packets, rules)) for rules in self._script.routed]
        taken = [console.packets(rule) for rule in self._script.taken]
        counts: dict[str, Any] = {"taken": taken[0], "taken_back": taken[1], "given": routed[0]}
        return FunctionCounters(spec.pair, denied=sum(taken) - sum(routed), hop=spec.hop, **counts)

    def stop(self) -> None:
        if self._console is not None:
            self._console.close()
        if self._daemon is not None:
            self._daemon.stop()


def _refuse(spec: FunctionSpec, parts: Parts) -> None:
    """Raises Unsupported for what it cannot do."""
    if not all(isinstance(port, VhostUser) and port.role == "front-end" for port in (spec.inner, spec.outer)):
        raise Unsupported(
            "ip_pipeline needs virtio-user ports, which have MAC addresses of their own: measure over a switch"
        )
    if carries_jumbo(spec.mtu):
        raise Unsupported("ip_pipeline takes frames up to 1518 bytes: leave larger ones out")
    if parts.police_pps and len(set(spec.sizes)) != 1:
        raise Unsupported("ip_pipeline's policer counts bytes: take one packet size with it, not a mix")
    if parts.nat and spec.flows == flows.NEW:
        raise Unsupported("ip_pipeline has a rule for each flow that it translates, so none can be new: take a number")


def _take(spec: FunctionSpec, line: str, answer: str) -> None:
    """Raises ProvisionError with the words with which a line was refused."""
    match = _ADDED.fullmatch(answer)
    if answer and (match is None or match[1] != match[2]):
        raise ProvisionError(f"{spec.label}: ip_pipeline refuses '{line}': {answer[:200]}")
