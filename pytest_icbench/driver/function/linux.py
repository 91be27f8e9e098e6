# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the kernel in a node's network namespace: routing, NAT, access lists, a policer, a shaper."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.function.frames import TTL, frame, routed
from pytest_icbench.driver.function.linux_parts import (
    FCS_BYTES,
    FIRST_PORT,
    POOL_PORTS,
    SOURCES,
    UNASKED_PORT,
    Parts,
    accounts,
    ruleset,
    shaper,
)
from pytest_icbench.driver.function.parts_function import PartsFunction
from pytest_icbench.driver.function.protocol import VETH, Ends, FunctionSpec, Probe, SetRate
from pytest_icbench.errors import NotStarted, ProvisionError, Unsupported
from pytest_icbench.host.changes import Changes
from pytest_icbench.host.namespaces import entered
from pytest_icbench.host.net import conntrack, links
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.endpoint import Address, Veth
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind

_TOOL_S = 20.0
#: RT_SCOPE_LINK of rtnetlink(7).
_SCOPE_LINK = 253
#: RTNH_F_ONLINK of rtnetlink(7): the gateway needs no route of its own.
_ONLINK = 4
#: Packages of the programs.
_PACKAGES = {"nft": "nftables", "tc": "iproute2"}
#: Frames of a proof that are in no access list, and at most so many of those at the beginning of it, beside its last.
_FREE_FRAMES, _LISTED_FRAMES = 20, 100
_FREE_PORT = 1024
#: How far the accepted rate may lie from the one that is set.
_TOLERANCE = 0.02
_POOL_AT = 16
_DROPPED = re.compile(r"dropped (\d+)")


def pool_of(ends: Ends) -> Address:
    """Returns the address that a NAT shows to side b: of the network of the pair, behind the function's outer port."""
    network, _, _ = ends.leader.ip.rpartition(".")
    return Address(ip=f"{network}.{_POOL_AT}", mac=ends.outer.mac, prefix=ends.leader.prefix)


def make_router(netns: str, ends: Ends, inner: str, outer: str) -> None:
    """Makes a network namespace a router between two links, without rules. Raises ProvisionError.

    Args:
        netns: its path.
        inner, outer: names of its links towards side a and side b.
    """
    with entered(netns):
        for name in ("ip_forward", "conf/all/forwarding"):
            Path("/proc/sys/net/ipv4", name).write_text("1", encoding="ascii")
        for name in ("all", inner, outer):
            Path(f"/proc/sys/net/ipv4/conf/{name}/rp_filter").write_text("0", encoding="ascii")
    with links.netlink(netns, doing="the routes of a function") as route:
        inward, outward = links.link_index(route, inner), links.link_index(route, outer)
        route.route("add", dst=f"{ends.leader.ip}/32", oif=inward, scope=_SCOPE_LINK)
        route.route("add", dst=f"{ends.follower.ip}/32", oif=outward, scope=_SCOPE_LINK)
        # A receiver's announcement to a pool that nothing left yet goes nowhere, and is not answered by ICMP.
        route.route("add", dst=SOURCES, gateway=ends.leader.ip, oif=inward, flags=_ONLINK)
        route.route("add", dst="0.0.0.0/0", type="blackhole")


class LinuxFunction(PartsFunction):
    """A router of the kernel between two veth links, with nftables' rules and a shaper of HTB."""

    name = "linux"
    ports = (VETH,)
    help = (
        "parts joined by +, each once: route, nat, firewall (stateful), tableN with these two (sessions, 1k to 2M),"
        " aclN or setN (rules or a set, N ports) with denyP (percent of them, at least one; also with firewall),"
        " policeN (frames/s, 5k to 10M), shapeNMbit (2Mbit to 40000Mbit)"
    )
    chains = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"nft": "text"}

    def __init__(self) -> None:
        self._session: HostSession | None = None
        self._netns = ""
        self._spec: FunctionSpec | None = None
        self._parts = Parts()
        self._facts = FunctionFacts(self.name)
        self._rules = ""
        self._host: Changes | None = None

    @classmethod
    def parts(cls, function: str) -> Parts | None:
        return Parts.of(function)

    @classmethod
    def seen(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns the sides' IP addresses, or the pool's, behind the function's own MAC addresses."""
        leader = pool_of(ends).ip if cls.parts_of(function).nat else ends.leader.ip
        prefix = ends.leader.prefix
        return Address(ends.follower.ip, ends.inner.mac, prefix), Address(leader, ends.outer.mac, prefix)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames of side a to ports within and without the access list, then side b's answers to them."""
        parts = cls.parts_of(function)
        pool = pool_of(ends).ip if parts.nat else None
        seen_by_leader, seen_by_follower = cls.seen(function, ends)
        ttl = f"with TTL {TTL - ends.hops} and new MAC addresses"
        to_b = f"has to leave from {pool or ends.leader.ip} {ttl}"
        forth: list[Probe] = []
        back: list[Probe] = []
        listed = sorted({*range(min(parts.listed, _LISTED_FRAMES)), *([parts.listed - 1] if parts.listed else [])})
        ports = [(_FREE_PORT + number, False) for number in range(_FREE_FRAMES)]
        ports += [(FIRST_PORT + place, parts.denies(place)) for place in listed]
        for port, denied in ports:
            sent = frame(ends.leader, seen_by_leader, port)
            out = routed(sent, ends.outer.mac, ends.follower.mac, source_ip=pool, hops=ends.hops)
            forth.append(Probe(True, sent, None if denied else out, "has to be denied" if denied else to_b))
        for number in range(_FREE_FRAMES if parts.firewall else 0):
            sent = frame(ends.follower, seen_by_follower, UNASKED_PORT + number)
            back.append(Probe(False, sent, None, "has to be denied: nobody asked"))
        for number in range(_FREE_FRAMES):
            sent = frame(ends.follower, seen_by_follower, _FREE_PORT + number)
            target = ends.leader.ip if pool else None
            out = routed(sent, ends.inner.mac, ends.leader.mac, target_ip=target, hops=ends.hops)
            back.append(Probe(False, sent, out, f"has to reach {ends.leader.ip} {ttl}"))
        return forth, back

    @classmethod
    def set_rate(cls, function: str, frame_bytes: float) -> SetRate | None:
        """Returns the policer's rate, or the shaper's at frames of that size, whose FCS the kernel does not count."""
        parts = cls.parts_of(function)
        if parts.police_pps:
            return SetRate(parts.police_pps, _TOLERANCE, parts.police_burst)
        if parts.shape_bits:
            return SetRate(parts.shape_bits / 8 / (frame_bytes - FCS_BYTES), _TOLERANCE)
        return None

    @classmethod
    def most_flows(cls, function: str) -> int | None:
        return POOL_PORTS if cls.parts_of(function).nat else None

    @classmethod
    def only_answers(cls, function: str) -> bool:
        return cls.parts_of(function).stateful

    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        """Returns the versions of the kernel and of nft. Raises Unsupported with the package that is missing."""
        parts = self.parts_of(function)
        versions = [f"Linux {session.root.read('/proc/sys/kernel/osrelease') or ''}".strip()]
        needed = ["nft"] if parts.stateful or parts.listed or parts.police_pps else []
        if parts.sessions and (misfit := conntrack.explain_misfit(session.root, parts.sessions)) is not None:
            raise Unsupported(f"the function '{function}' cannot have a table of {parts.sessions} sessions: {misfit}")
        for program in (*needed, *(["tc"] if parts.shape_bits else [])):
            try:
                shown = session.spawner.run([program, "-V"], timeout_s=_TOOL_S, check=False).stdout
            except NotStarted:
                raise Unsupported(
                    f"the function '{function}' needs {program}: install it (Debian's package {_PACKAGES[program]})"
                ) from None
            versions.append((shown.splitlines() or [program])[0].strip())
        return FunctionFacts(self.name, ", ".join(versions))

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Makes a router of the node: routes, rules, shaper. Raises ProvisionError with the program's own words."""
        _, inner, outer = spec.with_ports()
        if not isinstance(inner, Veth) or not isinstance(outer, Veth) or spec.node_facts is None:
            raise ProvisionError(f"function {spec.function} needs kernel interfaces")
        self._session, self._spec, self._netns = session, spec, spec.node_facts.netns
        self._parts = parts = self.parts_of(spec.function)
        self._rules = ruleset(parts, pool_of(spec.ends), inner.interface, outer.interface)
        own = str(spec.config.get("nft", "")).rstrip("\n")
        rules = self._rules + (f"{own}\n" if own else "")  # nft wants a line to end
        make_router(self._netns, spec.ends, inner.interface, outer.interface)
        counting = accounts(inner.interface, outer.interface) if spec.counts_control else ""
        if rules or counting:
            self._tool(["nft", "-f", "-"], rules + counting)
        commands = shaper(parts, outer.interface)
        for arguments in commands:
            self._tool(["tc", *arguments])
        config: dict[str, Any] = {"nft": rules + counting, "tc": [" ".join(arguments) for arguments in commands]}
        if parts.sessions:
            self._host = Changes(session)
            buckets = conntrack.set_size(self._host, parts.sessions)
            config |= {"nf_conntrack_max": parts.sessions, "nf_conntrack_buckets": buckets}
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, config)

    def _tool(self, argv: list[str], text: str | None = None) -> str:
        assert self._session is not None
        return self._session.spawner.run(argv, timeout_s=_TOOL_S, netns=self._netns, input=text).stdout

    def facts(self) -> FunctionFacts:
        return self._facts

    def _ports(self) -> tuple[FunctionSpec, str, str]:
        """Returns the request and the names of both interfaces. Raises ProvisionError if it was not started."""
        spec = self._spec
        if spec is None or not isinstance(spec.inner, Veth) or not isinstance(spec.outer, Veth):
            raise ProvisionError("the function was not started")
        return spec, spec.inner.interface, spec.outer.interface

    def check(self) -> None:
        """Raises ProvisionError if its interfaces or its rules are gone."""
        spec, *interfaces = self._ports()
        for interface in interfaces:
            if not links.exists(interface, self._netns):
                raise ProvisionError(f"{spec.label} has lost its link {interface}")
        if self._host is not None:
            conntrack.check_size(self._host.root, self._parts.sessions)

    def forget(self) -> None:
        if self._parts.stateful:
            conntrack.flush_sessions(self._netns)

    def counters(self) -> FunctionCounters:
        """Returns what its links carried, and what its rules and its shaper dropped."""
        spec, inner, outer = self._ports()
        by_table: dict[str, dict[str, int]] = {}
        if self._rules or spec.counts_control:
            shown: dict[str, Any] = json.loads(self._tool(["nft", "-j", "list", "counters"]))
            for counter in (item["counter"] for item in shown["nftables"] if "counter" in item):
                by_table.setdefault(counter["table"], {})[counter["name"]] = counter["packets"]
        denied = sum(by_table.get("icbench", {}).values())
        control = by_table.get("icbench_accounts", {})
        if self._parts.shape_bits:
            match = _DROPPED.search(self._tool(["tc", "-s", "qdisc", "show", "dev", outer, "root"]))
            denied += int(match[1]) if match else 0
        return FunctionCounters(
            spec.pair,
            taken=links.statistics(inner, self._netns)["rx_packets"],
            given=links.statistics(outer, self._netns)["tx_packets"],
            taken_back=links.statistics(outer, self._netns)["rx_packets"],
            denied=denied,
            hop=spec.hop,
            control_taken=control.get("taken"),
            control_given=control.get("given"),
            **self._sessions(),
        )

    def _sessions(self) -> dict[str, Any]:
        """Returns the counters of its table of connections; none without sessions."""
        if not self._parts.stateful:
            return {}
        seen = conntrack.count_sessions(self._netns)
        return {"sessions": seen.entries, "table_full": seen.refused, "evicted": seen.evicted}

    def stop(self) -> None:
        """Gives the host's own table its size back. All else ends with the node."""
        if self._host is not None:
            self._host.undo("nf_conntrack_max")
