# SPDX-License-Identifier: BSD-3-Clause
"""Functions in user space by tables: DPDK's example ip_pipeline routes, translates, denies and polices.

One thread of it polls, another one waits for lines of its command line at a TCP port of the node.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from pytest_icbench.driver.function.dpdk_function import ROUTER_PORTS, DpdkFunction, check_ports
from pytest_icbench.driver.function.linux import pool_of
from pytest_icbench.driver.function.linux_parts import Parts
from pytest_icbench.driver.function.pipeline_script import MOST_FLOWS, MOST_RULES, RING, Script, policed_bytes, script
from pytest_icbench.driver.function.protocol import FunctionSpec, SetRate
from pytest_icbench.driver.function.word_function import WordFunction
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.namespaces import entered
from pytest_icbench.host.net import links
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.session import HostSession
from pytest_icbench.model import flows
from pytest_icbench.model.function_facts import FunctionCounters
from pytest_icbench.model.switch_traits import Kind

_TOLERANCE = 0.02
_PROMPT = b"pipeline> "
_HOST, _PORT = "127.0.0.1", 8086
_START_S, _ANSWER_S, _RETRY_S = 20.0, 10.0, 0.02
_PACKETS = re.compile(r"Packets: (\d+)")
_ADDED = re.compile(r"Added (\d+) rules out of (\d+)\.")
#: Where a frame has its UDP source port.
_SOURCE_PORT_AT = 34


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


class IpPipelineFunction(WordFunction, DpdkFunction):
    """A pipeline of tables."""

    name = "ip_pipeline"
    word = "pipeline"
    ports = ROUTER_PORTS
    help = (
        f"parts joined by +, each once: route, nat, aclN (rules, to {MOST_RULES}) with denyP (percent), policeN"
        " (frames/s, 5k to 10M); with pipeline among them where l3fwd or ovs has the function, too"
    )
    hugepages_mib = 256  # a table of routes of 64 MiB, access lists, translations, and its buffers
    takes_binary = True
    ring = RING
    main_apart = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"commands": "texts"}

    def __init__(self) -> None:
        super().__init__()
        self._console: Console | None = None
        self._script = Script(())

    @classmethod
    def able(cls, parts: Parts) -> bool:
        if parts.firewall or parts.elements or parts.shape_bits or parts.sessions:
            return False
        return parts.rules <= MOST_RULES

    @classmethod
    def most_flows(cls, function: str) -> int | None:
        return MOST_FLOWS if cls.parts_of(function).nat else None

    @classmethod
    def set_rate(cls, function: str, frame_bytes: float) -> SetRate | None:
        pps = cls.parts_of(function).police_pps
        if not pps:
            return None
        rate, burst = policed_bytes(pps, frame_bytes)
        return SetRate(pps, _TOLERANCE, int(burst * pps / rate))

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts it in the node and gives it its lines. Raises ProvisionError with its own words."""
        parts = self.parts_of(spec.function)
        check_ports(spec, self.name)
        _refuse(spec, parts)
        assert spec.node_facts is not None
        directory = spec.directory
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
        links.set_up("lo", spec.node_facts.netns, arp=True)
        daemon = self.start_process(session, spec, ["-h", _HOST, "-p", str(_PORT)])
        self._console = console = Console(spec.node_facts.netns, daemon)
        *lines, last = (line.format(directory=directory) for line in made.lines)
        lines += [*spec.config.get("commands", ()), last]
        for line in lines:
            _take(spec, line, console.ask(line))
        self.started(session, {"lines": [*made.lines], "files": dict(made.files)})

    def counters(self) -> FunctionCounters:
        """Returns what came in from both sides, and as denied what was not routed of it."""
        spec, _ = self.live()
        console = self._console
        assert console is not None
        routed = [sum(map(console.packets, rules)) for rules in self._script.routed]
        taken = [console.packets(rule) for rule in self._script.taken]
        counts: dict[str, Any] = {"taken": taken[0], "taken_back": taken[1], "given": routed[0]}
        return FunctionCounters(spec.pair, denied=sum(taken) - sum(routed), hop=spec.hop, **counts)

    def stop(self) -> None:
        if self._console is not None:
            self._console.close()
        super().stop()


def _refuse(spec: FunctionSpec, parts: Parts) -> None:
    """Raises Unsupported for traffic with which it cannot do its work."""
    if parts.police_pps and len(set(spec.sizes)) != 1:
        raise Unsupported("ip_pipeline's policer counts bytes: take one packet size with it, not a mix")
    if parts.nat and spec.flows == flows.NEW:
        raise Unsupported("ip_pipeline has a rule for each flow that it translates, so none can be new: take a number")


def _take(spec: FunctionSpec, line: str, answer: str) -> None:
    """Raises ProvisionError with the words with which a line was refused."""
    match = _ADDED.fullmatch(answer)
    if answer and (match is None or match[1] != match[2]):
        raise ProvisionError(f"{spec.label}: ip_pipeline refuses '{line}': {answer[:200]}")
