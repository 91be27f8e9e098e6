# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the kernel in a node's network namespace: routing, NAT and its table, access lists, policer, shaper."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.function.function_parts import (
    FIRST_PORT,
    OWN_PORT,
    POOL_FIRST,
    POOL_LAST,
    SOURCES,
    Parts,
    RouterFunction,
    nat_address,
)
from pytest_icbench.driver.function.protocol import VETH, Ends, FunctionSpec, RateLimit
from pytest_icbench.errors import NotStarted, ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import links
from pytest_icbench.host.resource.hugepages import memory_kib
from pytest_icbench.host.root import Root
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.traffic import FCS_BYTES

_PROC = "/proc/sys/net/netfilter/nf_conntrack_"
#: Bytes of an entry, rounded up.
_ENTRY_BYTES = 512


@dataclass(frozen=True, slots=True)
class Sessions:
    """A namespace's connections: entries of the table, and how many were refused and evicted since it was made."""

    entries: int
    refused: int
    evicted: int


@contextmanager
def _socket(netns: str) -> Iterator[Any]:
    from pyroute2.netlink.exceptions import NetlinkError  # takes a third of a second, which only a session needs
    from pyroute2.netlink.nfnetlink.nfctsocket import NFCTSocket

    try:
        with enter_netns(netns), NFCTSocket() as conntrack:
            yield conntrack
    except NetlinkError as error:
        raise ProvisionError(f"the kernel's connections cannot be read ({error})") from None


def count_sessions(netns: str) -> Sessions:
    """Returns the connections of the namespace at a path. Raises ProvisionError."""
    with _socket(netns) as conntrack:
        by_cpu = [dict(message["attrs"]) for message in conntrack.stat()]
        entries = sum(dict(message["attrs"]).get("CTA_STATS_GLOBAL_ENTRIES", 0) for message in conntrack.count())

    def total(*names: str) -> int:
        return sum(counts.get(f"CTA_STATS_{name}") or 0 for counts in by_cpu for name in names)

    return Sessions(entries, total("DROP", "CHAIN_TOOLONG"), total("EARLY_DROP"))


def flush_sessions(netns: str) -> None:
    """Removes all connections of a namespace. Raises ProvisionError."""
    with _socket(netns) as conntrack:
        conntrack.flush()


def explain_misfit(root: Root, size: int) -> str | None:
    """Returns why the table of each namespace cannot have a size; None if it can. Changes nothing."""
    if root.exists(f"{_PROC}max") and not os.access(root.path(f"{_PROC}max"), os.W_OK):
        return "nf_conntrack_max can be set by root on the host alone, not in a container"
    connections = root.read_int(f"{_PROC}count") or 0
    if 2 * connections > size:
        has = f"the host itself has {connections} connections"
        return f"the size is for all namespaces, and {has}: take {2 * connections} or more"
    wanted_mib, available_mib = size * _ENTRY_BYTES >> 20, memory_kib(root).get("MemAvailable", 0) >> 10
    return f"it may take {wanted_mib} MiB, and the host has {available_mib}" if wanted_mib > available_mib else None


def set_size(changes: Changes, size: int) -> int:
    """Sets the maximum of connections of each namespace, which only the host can. Returns the table's buckets.

    Raises ProvisionError.
    """
    try:
        changes.write(f"{_PROC}max", f"{size}\n")
    except OSError as error:
        raise ProvisionError(f"nf_conntrack_max cannot be set ({error.strerror}): run as root on the host") from None
    check_size(changes.root, size)
    return changes.root.read_int(f"{_PROC}buckets") or 0


def check_size(root: Root, size: int) -> None:
    """Raises ProvisionError if the size has changed."""
    now = root.read_int(f"{_PROC}max")
    if now != size:
        raise ProvisionError(
            f"nf_conntrack_max is {now}, not the {size} that it was set to: do not change it during a run"
        )


_TOOL_S = 20.0
#: RT_SCOPE_LINK of rtnetlink(7).
_SCOPE_LINK = 253
#: RTNH_F_ONLINK of rtnetlink(7): the gateway needs no route.
_ONLINK = 4
#: Packages of the programs.
_PACKAGES = {"nft": "nftables", "tc": "iproute2"}
#: Largest relative deviation of the accepted rate from the configured one.
_TOLERANCE = 0.02
#: Frames of the longest queue of a shaper.
QUEUE_FRAMES = 100
_DROPPED = re.compile(r"dropped (\d+)")


def make_router(netns: str, ends: Ends, inner: str, outer: str) -> None:
    """Turns a network namespace into a router between two links, without rules. Raises ProvisionError.

    Args:
        netns: its path.
        inner, outer: names of its links towards side a and side b.
    """
    with enter_netns(netns):
        for name in ("ip_forward", "conf/all/forwarding"):
            Path("/proc/sys/net/ipv4", name).write_text("1", encoding="ascii")
        for name in ("all", inner, outer):
            Path(f"/proc/sys/net/ipv4/conf/{name}/rp_filter").write_text("0", encoding="ascii")
    with links.netlink(netns, doing="the routes of a function") as route:
        inward, outward = links.link_index(route, inner), links.link_index(route, outer)
        route.route("add", dst=f"{ends.leader.ip}/32", oif=inward, scope=_SCOPE_LINK)
        route.route("add", dst=f"{ends.follower.ip}/32", oif=outward, scope=_SCOPE_LINK)
        # A receiver's announcement to a still unused pool is dropped without an ICMP answer.
        route.route("add", dst=SOURCES, gateway=ends.leader.ip, oif=inward, flags=_ONLINK)
        route.route("add", dst="0.0.0.0/0", type="blackhole")


def ruleset(parts: Parts, pool: Address, inner: str, outer: str) -> str:
    """Returns the rules for ``nft -f``; empty for a plain router.

    Args:
        pool: the NAT address of sources.
        inner, outer: names of the function's interfaces.
    """
    lines = ["table ip icbench {", "  counter denied {}"]
    if parts.listed:
        lines += ["  chain refused { counter name denied drop; }"]
    rules: list[str] = []
    if parts.police_pps:
        limit = f"limit rate over {parts.police_pps}/second burst {parts.police_burst} packets"
        rules.append(f'iifname "{inner}" {limit} counter name denied drop')
    rules += [
        f"udp dport {FIRST_PORT + place} {'goto refused' if parts.denies(place) else 'accept'}"
        for place in range(parts.rules)
    ]
    if parts.elements:
        elements = ", ".join(
            f"{FIRST_PORT + place} : {'goto refused' if parts.denies(place) else 'accept'}"
            for place in range(parts.elements)
        )
        rules.append(f"udp dport vmap {{ {elements} }}")
    if rules:
        lines += ["  chain forward {", "    type filter hook forward priority 0; policy accept;"]
        lines += [*(f"    {rule}" for rule in rules), "  }"]
    if parts.firewall:
        # A receiver's announcement does not count as an ACL-dropped frame.
        apart = f'    iifname "{outer}" ct state new,invalid udp dport {OWN_PORT} drop'
        lines += [
            "  chain entering {",
            "    type filter hook prerouting priority 0; policy accept;",
            *([] if parts.acl_drop is None else [apart]),
            f'    iifname "{outer}" ct state new,invalid counter name denied drop',
            "  }",
        ]
    if parts.nat:
        lines += [
            "  chain leaving {",
            "    type nat hook postrouting priority 100; policy accept;",
            f'    oifname "{outer}" ip saddr {SOURCES} udp sport < 1024 snat to {pool.ip}:{POOL_FIRST}-{POOL_LAST}',
            f'    oifname "{outer}" snat to {pool.ip}',
            "  }",
        ]
    return "\n".join([*lines, "}", ""]) if len(lines) > 2 else ""


def accounting_rules(inner: str, outer: str) -> str:
    """Returns the rules that count the workload's control frames from side a, which chains count separately.

    A control frame has the window 65535 after the UDP header and the stream. Frames are counted before connection
    tracking, whose table may be full.
    """
    hooks = (("taken", "prerouting", -300, "iifname", inner), ("given", "postrouting", 200, "oifname", outer))
    lines = ["table ip icbench_accounts {"]
    for name, hook, priority, direction, interface in hooks:
        lines += [
            f"  counter {name} {{}}",
            f"  chain {name} {{",
            f"    type filter hook {hook} priority {priority}; policy accept;",
            f'    {direction} "{interface}" udp dport 9 @th,80,16 0xffff counter name {name}',
            "  }",
        ]
    return "\n".join([*lines, "}", ""])


def shaper_commands(parts: Parts, outer: str) -> list[list[str]]:
    """Returns the arguments of ``tc`` for the shaper; none without a shaper."""
    if not parts.shape_bits:
        return []
    # A burst of 15 kB compensates for a delay of some milliseconds, and ends before the first window.
    return [
        ["qdisc", "add", "dev", outer, "root", "handle", "1:", "htb", "default", "1"],
        [
            *("class", "add", "dev", outer, "parent", "1:", "classid", "1:1", "htb"),
            *("rate", f"{parts.shape_bits}bit", "burst", "15k", "cburst", "15k"),
        ],
        ["qdisc", "add", "dev", outer, "parent", "1:1", "pfifo", "limit", str(QUEUE_FRAMES)],
    ]


class LinuxFunction(RouterFunction):
    """A router of the kernel between two veth links, with rules of nftables and an HTB shaper."""

    name = "linux"
    makes = ("nat", "firewall", "sessions", "rules", "elements", "deny_percent", "police_pps", "shape_bits")
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
        self._parts = Parts()
        self._rules = ""
        self._host: Changes | None = None

    @classmethod
    def rate_limit(cls, function: str, frame_bytes: float) -> RateLimit | None:
        """Returns the policer's rate, or the shaper's for frames of that size without FCS."""
        parts = cls.parse_own(function)
        if parts.police_pps:
            return RateLimit(parts.police_pps, _TOLERANCE, parts.police_burst)
        if parts.shape_bits:
            return RateLimit(parts.shape_bits / 8 / (frame_bytes - FCS_BYTES), _TOLERANCE)
        return None

    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        """Returns the versions of the kernel and nft. Raises Unsupported with the missing package."""
        parts = self.parse_own(function)
        versions = [f"Linux {session.root.read('/proc/sys/kernel/osrelease') or ''}".strip()]
        needed = ["nft"] if parts.stateful or parts.listed or parts.police_pps else []
        if parts.sessions and (misfit := explain_misfit(session.root, parts.sessions)) is not None:
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
        """Sets up routes, rules and shaper in the node. Raises ProvisionError with the program's message."""
        inner, outer = spec.interfaces
        self._session, self._spec, self._netns = session, spec, spec.netns
        self._parts = parts = self.parse_own(spec.function)
        self._rules = ruleset(parts, nat_address(spec.ends), inner, outer)
        own = str(spec.config.get("nft", "")).rstrip("\n")
        rules = self._rules + (f"{own}\n" if own else "")  # nft needs a newline at the end
        make_router(self._netns, spec.ends, inner, outer)
        counting = accounting_rules(inner, outer) if spec.counts_control else ""
        if rules or counting:
            self._tool(["nft", "-f", "-"], rules + counting)
        commands = shaper_commands(parts, outer)
        for arguments in commands:
            self._tool(["tc", *arguments])
        config: dict[str, Any] = {"nft": rules + counting, "tc": [" ".join(arguments) for arguments in commands]}
        if parts.sessions:
            self._host = Changes(session)
            buckets = set_size(self._host, parts.sessions)
            config |= {"nf_conntrack_max": parts.sessions, "nf_conntrack_buckets": buckets}
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, config)

    def _tool(self, argv: list[str], text: str | None = None) -> str:
        assert self._session is not None
        return self._session.spawner.run(argv, timeout_s=_TOOL_S, netns=self._netns, input=text).stdout

    def check(self) -> None:
        """Raises ProvisionError if its interfaces or its rules are gone."""
        spec = self.started_spec()
        for interface in spec.interfaces:
            if not links.exists(interface, self._netns):
                raise ProvisionError(f"{spec.label}: its link {interface} is gone: it was removed")
        if self._host is not None:
            check_size(self._host.root, self._parts.sessions)

    def forget(self) -> None:
        if self._parts.stateful:
            flush_sessions(self._netns)

    def counters(self) -> FunctionCounters:
        """Returns the frames on its links and the drops of its rules and its shaper."""
        spec = self.started_spec()
        inner, outer = spec.interfaces
        by_table: dict[str, dict[str, int]] = {}
        if self._rules or spec.counts_control:
            shown: dict[str, Any] = json.loads(self._tool(["nft", "-j", "list", "counters"]))
            for counter in (item["counter"] for item in shown["nftables"] if "counter" in item):
                by_table.setdefault(counter["table"], {})[counter["name"]] = counter["packets"]
        acl_drops = sum(by_table.get("icbench", {}).values())
        control = by_table.get("icbench_accounts", {})
        if self._parts.shape_bits:
            match = _DROPPED.search(self._tool(["tc", "-s", "qdisc", "show", "dev", outer, "root"]))
            acl_drops += int(match[1]) if match else 0
        return FunctionCounters(
            spec.pair,
            taken=links.read_statistics(inner, self._netns)["rx_packets"],
            given=links.read_statistics(outer, self._netns)["tx_packets"],
            taken_back=links.read_statistics(outer, self._netns)["rx_packets"],
            acl_drops=acl_drops,
            hop=spec.hop,
            control_taken=control.get("taken"),
            control_given=control.get("given"),
            **self._sessions(),
        )

    def _sessions(self) -> dict[str, Any]:
        """Returns the counters of its connection table; none without sessions."""
        if not self._parts.stateful:
            return {}
        seen = count_sessions(self._netns)
        return {"sessions": seen.entries, "table_full": seen.refused, "evicted": seen.evicted}

    def stop(self) -> None:
        """Restores the size of the host's table. Everything else ends with the node."""
        if self._host is not None:
            self._host.undo("nf_conntrack_max")
