# SPDX-License-Identifier: BSD-3-Clause
"""Functions in user space by tables: DPDK's example ip_pipeline routes, translates, filters and polices."""

from __future__ import annotations

import ipaddress
import math
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pytest_icbench.driver.function.function_parts import (
    FIRST_PORT,
    OWN_PORT,
    SOURCES,
    Parts,
    RouterFunction,
    nat_address,
)
from pytest_icbench.driver.function.process_function import ROUTER_PORTS, DpdkFunction, check_ports
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec, RateLimit
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.answers import read_answer
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import links
from pytest_icbench.host.node_files import write_file
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.model import flows
from pytest_icbench.model.function_facts import FunctionCounters
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.traffic import FCS_BYTES

#: Most rules of an access list, and most translated flows: each flow has its own rule and its own port.
MOST_RULES, MOST_FLOWS = 4096, 50_000
#: The descriptors of a ring.
RING = 256
#: Name of its only pipeline.
NAME = "P"
#: Offsets in a buffer, after DPDK's 128 bytes, a headroom of 128 bytes and the Ethernet header.
_IP_AT, _KEY_AT, _TARGET_AT = 270, 278, 286
#: Masks of a flow's key, from the TTL on: protocol, source address and source port, or the same of the destination.
_BY_SOURCE, _BY_TARGET = "00FF0000FFFFFFFF00000000FFFF0000", "00FF000000000000FFFFFFFF0000FFFF"
_UDP, _ETHERNET = 17, 14
_FIRST_FLOW_PORT, _LAST_PORT = 1024, 65535
#: A policer's burst in seconds of its rate, and its smallest size in bytes, enough for a proof.
_BURST_S, _BURST_LEAST = 0.005, 16_000
#: Output ports: to side a, to side b, and once more to side a. Two routes to one port would share their counter.
_TO_A, _TO_B, _TO_FLOWS = 0, 1, 2
_TOLERANCE = 0.02
_PROMPT = b"pipeline> "
_HOST, _PORT = "127.0.0.1", 8086
_START_S, _ANSWER_S = 20.0, 10.0
_PACKETS = re.compile(r"Packets: (\d+)")
_ADDED = re.compile(r"Added (\d+) rules out of (\d+)\.")
#: Offset of the UDP source port in a frame.
_SOURCE_PORT_AT = 34


@dataclass(frozen=True, slots=True)
class Script:
    """The lines that make a function: for each side a row of tables, which both end in one routing table.

    The first table of a row counts or meters frames. An access list and a NAT follow, if there are any. ip_pipeline has
    counters of rules only, so the dropped frames are the received frames minus the routed ones.

    Attributes:
        lines: lines of ip_pipeline's command line, in order.
        files: texts by file name; the lines name them below ``{directory}``.
        taken: lines that read the first rule for frames of side a, and of side b.
        routed: lines that read their last rules.
    """

    lines: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    taken: tuple[str, str] = ("", "")
    routed: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def policed_bytes(pps: int, frame_bytes: float) -> tuple[int, int]:
    """Returns a policer's bytes per second and burst in bytes. It counts the length in the IPv4 header."""
    rate = pps * (frame_bytes - _ETHERNET - FCS_BYTES)
    return round(rate), max(_BURST_LEAST, math.ceil(rate * _BURST_S))


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a row.

    Attributes:
        match: what it matches, and the name of its action profile.
        actions: the actions of that profile.
        rules: rules that are lines; ``{forth}`` stands for the action that leads to the next table.
        file: rules of a file, likewise.
    """

    match: str
    actions: str
    rules: tuple[str, ...] = ()
    file: str = ""


def write_script(
    parts: Parts, ends: Ends, *, ports: Sequence[int], label: str | None, frame_bytes: float, node: int
) -> Script:
    """Returns the script.

    Args:
        ports: UDP source ports of side a that the NAT keeps.
        label: the case's flows.
        frame_bytes: bytes of a frame with FCS, for a policer.
        node: the NUMA node of its memory.
    """
    pool = nat_address(ends)
    mapped = list(_mappings(ends, label, ports)) if parts.nat else []
    listed = [_access_list(parts)] if parts.rules else []
    first = _meter(parts.police_pps, frame_bytes) if parts.police_pps else _COUNTER
    row_a = [first, *listed, *([_translation("src", pool.ip, mapped)] if parts.nat else [])]
    row_b = [_COUNTER, *listed, *([_translation("dst", pool.ip, mapped)] if parts.nat else [])]
    tables, second = [*row_a, *row_b], len(row_a)
    route = len(tables)
    nexts = [*range(1, second), route, *range(second + 1, route), route]
    profiles = {table.match.split()[-1]: table.actions for table in tables} | {"route": _ROUTED}
    files: dict[str, str] = {}
    filled: list[str] = []
    for place, (table, following) in enumerate(zip(tables, nexts, strict=True)):
        rules = [rule.format(forth=f"fwd table {following}") for rule in table.rules]
        if table.file:
            files[f"rules{place}"] = table.file.format(forth=f"fwd table {following}")
            rules.append(f"rule add bulk {{directory}}/rules{place}")
        filled += [f"pipeline {NAME} table {place} {rule}" for rule in rules]
    routes = _routes(ends)
    lines = [
        f"mempool BUFFERS buffer 2304 pool 8K cache 256 cpu {node}",
        *(
            f"link LINK{port} dev net_virtio_user{port} rxq 1 {RING} BUFFERS txq 1 {RING} promiscuous off"
            for port in (0, 1)
        ),
        *(
            f"table action profile {name} ipv4 offset {_IP_AT} fwd {actions}".rstrip()
            for name, actions in profiles.items()
        ),
        f"pipeline {NAME} period 1 offset_port_id 0 cpu {node}",
        *(f"pipeline {NAME} port in bsz 32 link LINK{port} rxq 0" for port in (0, 1)),
        *(f"pipeline {NAME} port out bsz 1 link LINK{port} txq 0" for port in (0, 1, 0)),
        *(f"pipeline {NAME} table match {table.match}" for table in tables),
        f"pipeline {NAME} table match lpm ipv4 offset {_TARGET_AT} size 16 action route",
        f"pipeline {NAME} port in 0 table 0",
        f"pipeline {NAME} port in 1 table {second}",
        *filled,
        *(
            f"pipeline {NAME} table {route} rule add match {target} action fwd port {port} encap ether {macs} ttl dec"
            " stats"
            for port, (target, macs) in routes.items()
        ),
        f"thread 1 pipeline {NAME} enable",
    ]
    to_a, to_b = (_TO_A, _TO_FLOWS), (_TO_B,)
    return Script(
        tuple(lines),
        files,
        (_reading(0, "array 0"), _reading(second, "array 0")),
        (
            tuple(_reading(route, routes[port][0]) for port in to_b),
            tuple(_reading(route, routes[port][0]) for port in to_a),
        ),
    )


_COUNTER = _Table(
    f"array offset {_IP_AT} size 1 action count", "stats pkts", ("rule add match array 0 action {forth} stats",)
)
_ROUTED = "encap ether ttl drop stats none stats pkts"


def _reading(table: int, match: str) -> str:
    """Returns the line that reads a rule's counter."""
    return f"pipeline {NAME} table {table} rule read stats match {match}"


def _routes(ends: Ends) -> dict[int, tuple[str, str]]:
    """Returns the routes by output port: what they match, and the MAC addresses of frames that leave."""
    inward = f"{ends.leader.mac} {ends.inner.mac}"
    return {
        _TO_A: (f"lpm ipv4 {ends.leader.ip} 32", inward),
        _TO_FLOWS: (f"lpm ipv4 {SOURCES.replace('/', ' ')}", inward),
        _TO_B: (f"lpm ipv4 {ends.follower.ip} 32", f"{ends.follower.mac} {ends.outer.mac}"),
    }


def _meter(pps: int, frame_bytes: float) -> _Table:
    """Returns a table that counts frames and drops those above a rate."""
    rate, burst = policed_bytes(pps, frame_bytes)
    return _Table(
        f"array offset {_IP_AT} size 1 action police",
        "meter trtcm tc 1 stats none stats pkts",
        (
            f"meter profile 0 add trtcm cir {rate} pir {rate} cbs {burst} pbs {burst}",
            "rule add match array 0 action {forth} meter tc0 meter 0 policer g g y drop r drop stats",
        ),
    )


def _access_list(parts: Parts) -> _Table:
    """Returns a table of rules for UDP ports."""
    anywhere = "match acl priority 0 ipv4 0.0.0.0 0 0.0.0.0 0 0 65535"
    rules = (
        f"{anywhere} {FIRST_PORT + place} {FIRST_PORT + place} {_UDP} action"
        f" {'fwd drop' if parts.denies(place) else '{forth}'}\n"
        for place in range(parts.rules)
    )
    return _Table(
        f"acl ipv4 offset {_IP_AT} size {MOST_RULES} action acl",
        "",
        ("rule add match default action {forth}",),
        "".join(rules),
    )


def _mappings(ends: Ends, label: str | None, ports: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    """Yields address and port of a flow and its port at the pool: the same port, or one per address."""
    own, count = {OWN_PORT, *ports}, flows.number(label)
    by_port = flows.differ_by_port(label)
    for port in sorted(own | set(range(_FIRST_FLOW_PORT, _FIRST_FLOW_PORT + count)) if by_port else own):
        yield ends.leader.ip, port, port
    if not (by_port or flows.differ_by_mac(label)):
        first = ipaddress.ip_network(SOURCES).network_address
        for number in range(1, count):
            yield str(first + number), OWN_PORT, _LAST_PORT + 1 - number


def _translation(way: str, pool: str, mapped: Sequence[tuple[str, int, int]]) -> _Table:
    """Returns the NAT table for frames of side a (``src``) or side b (``dst``)."""
    size = 1 << max(len(mapped) - 1, 1).bit_length()
    rules = []
    for address, port, own in mapped:
        key, new = f"{address} 0.0.0.0 {port} 0", f"{pool} {own}"
        if way == "dst":
            key, new = f"0.0.0.0 {pool} 0 {own}", f"{address} {port}"
        rules.append(f"match hash ipv4_5tuple {key} {_UDP} action {{forth}} nat ipv4 {new}\n")
    mask = _BY_SOURCE if way == "src" else _BY_TARGET
    return _Table(
        f"hash ext key 16 mask {mask} offset {_KEY_AT} buckets {size} size {size} action nat{way}",
        f"nat {way} proto udp",
        file="".join(rules),
    )


class Console:
    """The command line of a running ip_pipeline, at a TCP port of its node. One of its threads serves it.

    ``netns``: path of the node's network namespace. Raises ProvisionError if it does not answer.
    """

    def __init__(self, netns: str, daemon: Daemon) -> None:
        self._daemon = daemon
        self._socket = self._connect(netns)
        self._read_answer("its prompt", _START_S)

    def _connect(self, netns: str) -> socket.socket:
        connections: list[socket.socket] = []

        def connect() -> bool:
            with enter_netns(netns):
                connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            connection.settimeout(_ANSWER_S)  # what listens there may take no connection
            try:
                connection.connect((_HOST, _PORT))
            except OSError:
                connection.close()
                return False
            connections.append(connection)
            return True

        self._daemon.wait_until(connect, failure="has not opened its command line", timeout_s=_START_S)
        return connections[0]

    def _read_answer(self, what: str, timeout_s: float) -> str:
        """Returns the text before the prompt."""
        try:
            text = read_answer(self._socket, lambda came: came.endswith(_PROMPT), time.monotonic() + timeout_s)
        except TimeoutError:
            self._daemon.check()
            raise ProvisionError(self._daemon.late(f"has not sent {what}", timeout_s)) from None
        except OSError:
            text = b""
        if not text.endswith(_PROMPT):
            self._daemon.wait_until(lambda: False, failure="closed its command line and did not end", timeout_s=1.0)
        return text.removesuffix(_PROMPT).decode(errors="replace").strip()

    def ask(self, line: str) -> str:
        """Returns the answer to a line, empty for most lines. Raises ProvisionError if there is none."""
        self._daemon.check()
        try:
            self._socket.sendall(f"{line}\n".encode())
        except OSError:
            self._daemon.wait_until(lambda: False, failure="accepts no lines and did not end", timeout_s=1.0)
        return self._read_answer(f"the answer to '{line}'", _ANSWER_S)

    def read_packets(self, line: str) -> int:
        """Returns the frames counted by a rule. Raises ProvisionError."""
        answer = self.ask(line)
        match = _PACKETS.search(answer)
        if match is None:
            raise ProvisionError(f"{self._daemon.name} does not report its counters: {answer[:200]}")
        return int(match[1])

    def close(self) -> None:
        self._socket.close()


class IpPipelineFunction(RouterFunction, DpdkFunction):
    """A pipeline of tables."""

    name = "ip_pipeline"
    word = "pipeline"
    makes = ("nat", "rules", "deny_percent", "police_pps")
    ports = ROUTER_PORTS
    help = (
        f"parts joined by +, each once: route, nat, aclN (rules, to {MOST_RULES}) with denyP (percent), policeN"
        " (frames/s, 5k to 10M); with pipeline among them where l3fwd or ovs has the function, too"
    )
    hugepages_mib = 256  # a routing table of 64 MiB, access lists, NAT tables and its buffers
    takes_binary = True
    ring = RING
    main_apart = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"commands": "texts"}

    def __init__(self) -> None:
        super().__init__()
        self._console: Console | None = None
        self._script = Script(())

    @classmethod
    def can_make(cls, parts: Parts) -> bool:
        return super().can_make(parts) and parts.rules <= MOST_RULES

    @classmethod
    def most_flows(cls, function: str) -> int | None:
        return MOST_FLOWS if cls.parse_own(function).nat else None

    @classmethod
    def only_answers(cls, function: str) -> bool:  # noqa: ARG003 - as ``Function``
        return False  # its translations are rules, which exist before any flow

    @classmethod
    def rate_limit(cls, function: str, frame_bytes: float) -> RateLimit | None:
        pps = cls.parse_own(function).police_pps
        if not pps:
            return None
        rate, burst = policed_bytes(pps, frame_bytes)
        return RateLimit(pps, _TOLERANCE, int(burst * pps / rate))

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts ip_pipeline in the node and runs the script. Raises ProvisionError with ip_pipeline's message."""
        parts = self.parse_own(spec.function)
        check_ports(spec, self.name)
        _check_traffic(spec, parts)
        directory = spec.directory
        (probes, _) = self.proof(spec.function, spec.ends)
        self._script = made = write_script(
            parts,
            spec.ends,
            ports=sorted({int.from_bytes(probe.frame[_SOURCE_PORT_AT : _SOURCE_PORT_AT + 2]) for probe in probes}),
            label=spec.flows,
            frame_bytes=max(spec.sizes, default=0),
            node=Topology.read(session.root)[spec.cpu].node,
        )
        for name, text in made.files.items():
            write_file(directory, name, text)
        links.set_up("lo", spec.netns, arp=True)
        daemon = self.start_process(session, spec, ["-h", _HOST, "-p", str(_PORT)])
        self._console = console = Console(spec.netns, daemon)
        *lines, last = (line.format(directory=directory) for line in made.lines)
        lines += [*spec.config.get("commands", ()), last]
        for line in lines:
            _check_answer(spec, line, console.ask(line))
        self.record_facts(session, {"lines": [*made.lines], "files": dict(made.files)})

    def counters(self) -> FunctionCounters:
        """Returns the frames of both sides; those that were not routed are dropped ones."""
        spec, _ = self.live()
        console = self._console
        assert console is not None
        routed = [sum(map(console.read_packets, rules)) for rules in self._script.routed]
        taken = [console.read_packets(rule) for rule in self._script.taken]
        return FunctionCounters(
            spec.pair,
            taken=taken[0],
            given=routed[0],
            taken_back=taken[1],
            acl_drops=sum(taken) - sum(routed),
            hop=spec.hop,
        )

    def stop(self) -> None:
        if self._console is not None:
            self._console.close()
        super().stop()


def _check_traffic(spec: FunctionSpec, parts: Parts) -> None:
    """Raises Unsupported for traffic that it cannot handle."""
    if parts.police_pps and len(set(spec.sizes)) != 1:
        raise Unsupported("ip_pipeline's policer counts bytes: choose one packet size, not a mix")
    if parts.nat and spec.flows == flows.NEW:
        raise Unsupported(
            "ip_pipeline needs a rule for each translated flow, so flows cannot be new: choose a number of flows"
        )


def _check_answer(spec: FunctionSpec, line: str, answer: str) -> None:
    """Raises ProvisionError with the answer if a line was refused."""
    match = _ADDED.fullmatch(answer)
    if answer and (match is None or match[1] != match[2]):
        raise ProvisionError(f"{spec.label}: ip_pipeline refuses '{line}': {answer[:200]}")
