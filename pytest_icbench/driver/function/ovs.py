# SPDX-License-Identifier: BSD-3-Clause
"""Functions made of flows in Open vSwitch's userspace datapath: firewall, NAT, policer.

Frames keep their MAC addresses and their TTL. Such a function has neither a node nor ports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.function.function_parts import OWN_PORT, UNSOLICITED_PORT, Parts, PartsFunction, nat_address
from pytest_icbench.driver.function.proof import FREE_FRAMES, FREE_PORT, frame, translate
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec, Probe, RateLimit
from pytest_icbench.driver.switch.common.userspace_ports import VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.ovs.daemons import find_installation
from pytest_icbench.driver.switch.ovs.userspace_datapath import OpenVSwitch
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind

#: A policer's burst, as a share of a second's frames.
_BURST_SHARE = 0.005
_TOLERANCE = 0.02
#: Cookies of a pair's flows: frames from side a, ACL-dropped frames, frames without room in the table, frames from
#: side b.
_TAKEN, _ACL_DROPS, _FULL, _TAKEN_BACK = 1, 2, 3, 4
_SESSIONS = re.compile(r"count=(\d+)")
_BAND_PACKETS = re.compile(r"packet_count:(\d+)")


class OvsFunction(PartsFunction):
    """Flows and meters of the switch between the two ports of a pair."""

    name = "ovs"
    ports = (VHOST_USER, VHOST_USER_PACKED)
    in_switch = "ovs"
    help = "firewall (stateful, with denyP), nat, each with +tableN (sessions, 1k to 2M), policeN (frames/s, 5k to 10M)"
    config_keys: ClassVar[Mapping[str, Kind]] = {"flows": "texts"}

    @classmethod
    def parse(cls, function: str) -> Parts | None:
        """Returns the parts of a policer, or of a firewall or NAT with or without a table; None otherwise."""
        parts = Parts.parse(function)
        if parts is None or "route" in function.split("+"):
            return None
        able = (("police_pps",), ("firewall", "sessions", "deny_percent"), ("nat", "sessions"))
        return parts if any(map(parts.only, able)) else None

    @classmethod
    def visible_addresses(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns the sides' own addresses, with the pool's IP address for side a after NAT."""
        if not cls.parse_own(function).nat:
            return ends.follower, ends.leader
        return ends.follower, Address(nat_address(ends).ip, ends.leader.mac, ends.leader.prefix)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames of side a, then the answers to them and unsolicited frames."""
        parts = cls.parse_own(function)
        pool = nat_address(ends).ip if parts.nat else None
        _, leader = cls.visible_addresses(function, ends)
        ports = range(FREE_PORT, FREE_PORT + FREE_FRAMES)
        forth: list[Probe] = []
        back: list[Probe] = []
        for port in ports:
            sent = frame(ends.leader, ends.follower, port)
            forth.append(
                Probe(True, sent, translate(sent, source_ip=pool), f"has to leave from {pool or 'its source'}")
            )
            sent = frame(ends.follower, leader, port)
            out = translate(sent, target_ip=ends.leader.ip if pool else None)
            back.append(Probe(False, sent, out, f"has to reach {ends.leader.ip}"))
        if parts.stateful:
            for port in range(UNSOLICITED_PORT, UNSOLICITED_PORT + FREE_FRAMES):
                back.append(
                    Probe(False, frame(ends.follower, leader, port), None, "has to be denied: it is unsolicited")
                )
        return forth, back

    @classmethod
    def rate_limit(cls, function: str, frame_bytes: float) -> RateLimit | None:  # noqa: ARG003 - as ``Function``
        pps = cls.parse_own(function).police_pps
        return RateLimit(pps, _TOLERANCE, _burst(pps)) if pps else None

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002
        """Returns the version of Open vSwitch. Raises Unsupported without it."""
        binary = session.binaries.get("ovs")
        installation = find_installation(session, None if binary is None else Path(binary))
        return FunctionFacts(self.name, f"Open vSwitch {installation.version}, DPDK {installation.dpdk}")

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Adds the flows and the policer's meter. Raises ProvisionError with the message of ovs-ofctl."""
        self._spec = spec
        parts = self.parse_own(spec.function)
        pps, meter = parts.police_pps, ""
        if pps:
            bands = f"bands=type=drop,rate={pps},burst_size={_burst(pps)}"
            meter = f"meter={spec.pair},pktps,burst,stats,{bands}"
            self._switch.ofctl("add-meter", meter)
        if parts.sessions:
            self._switch.daemons.appctl("dpctl/ct-set-limits", f"zone={spec.pair},limit={parts.sessions}")
        flows = [*self._flows(spec), *spec.config.get("flows", ())]
        self._switch.add_flows(flows)
        version = self.probe(session, spec.function).version
        self._facts = FunctionFacts(self.name, version, {"flows": flows, "meter": meter})

    @staticmethod
    def _flows(spec: FunctionSpec) -> list[str]:
        """Returns the flows of a pair: table 0 tracks connections, table 1 decides."""
        inside, outside = spec.indexes[0] + 1, spec.indexes[-1] + 1
        taken, acl_drops = (f"cookie={_cookie(spec.pair, kind)}" for kind in (_TAKEN, _ACL_DROPS))
        parts = OvsFunction.parse_own(spec.function)
        if parts.police_pps:
            return [f"{taken},priority=20,in_port={inside},actions=meter:{spec.pair},output:{outside}"]
        nat, translate = ("", "")
        if parts.nat:
            nat, translate = ",nat", f",nat(src={nat_address(spec.ends).ip})"
        zone = f"zone={spec.pair}"
        commit = f"ct(commit,{zone}{translate}),output:{outside}"
        limited: list[str] = []
        if parts.sessions:  # a frame whose session has no room gets no mark; ct() itself would let it pass
            commit = f"ct(commit,{zone}{translate},exec(set_field:1->ct_mark),table=2)"
            limited = [
                f"table=2,priority=20,in_port={inside},ip,ct_mark=1,actions=output:{outside}",
                f"cookie={_cookie(spec.pair, _FULL)},table=2,priority=10,in_port={inside},ip,actions=drop",
            ]
        back, apart = "", []
        if parts.acl_drop is not None:  # a receiver's announcement does not count as an ACL-dropped frame
            back = f"cookie={_cookie(spec.pair, _TAKEN_BACK)},"
            apart = [f"table=1,priority=15,in_port={outside},udp,tp_dst={OWN_PORT},actions=drop"]
        return [
            f"{taken},priority=20,in_port={inside},ip,actions=ct(table=1,{zone}{nat})",
            f"{back}priority=20,in_port={outside},ip,actions=ct(table=1,{zone}{nat})",
            f"table=1,priority=20,in_port={inside},ip,ct_state=+trk+new,actions={commit}",
            f"table=1,priority=20,in_port={inside},ip,ct_state=+trk+est,actions=output:{outside}",
            f"table=1,priority=20,in_port={outside},ip,ct_state=+trk+est,actions=output:{inside}",
            f"{acl_drops},table=1,priority=10,in_port={outside},ip,actions=drop",
            f"{acl_drops},table=1,priority=10,in_port={inside},ip,actions=drop",
            *limited,
            *apart,
        ]

    @property
    def _switch(self) -> OpenVSwitch:
        """The started switch. Raises ProvisionError if the function was not started."""
        switch: OpenVSwitch = self.started_spec().switch  # type: ignore[assignment]
        return switch

    def check(self) -> None:
        self._switch.check()

    def counters(self) -> FunctionCounters:
        """Returns the packets of its flows and its meter."""
        switch, spec = self._switch, self.started_spec()
        taken, acl_drops = (switch.packets_by_cookie(_cookie(spec.pair, kind)) for kind in (_TAKEN, _ACL_DROPS))
        parts = self.parse_own(spec.function)
        back = None if parts.acl_drop is None else switch.packets_by_cookie(_cookie(spec.pair, _TAKEN_BACK))
        if parts.police_pps:
            match = _BAND_PACKETS.search(switch.ofctl("meter-stats", f"meter={spec.pair}"))
            acl_drops = int(match[1]) if match else 0
        if not parts.sessions:
            return FunctionCounters(spec.pair, taken=taken, acl_drops=acl_drops, taken_back=back)
        entries = _SESSIONS.search(switch.daemons.appctl("dpctl/ct-get-limits", f"zone={spec.pair}"))
        full = switch.packets_by_cookie(_cookie(spec.pair, _FULL))
        sessions = int(entries[1]) if entries else None
        return FunctionCounters(
            spec.pair, taken=taken, acl_drops=acl_drops, sessions=sessions, table_full=full, taken_back=back
        )

    def forget(self) -> None:
        if self._spec is not None and self.parse_own(self._spec.function).stateful:
            self._switch.daemons.appctl("dpctl/flush-conntrack", f"zone={self._spec.pair}")

    def stop(self) -> None:
        """Does nothing: the flows end with the switch."""


def _burst(pps: int) -> int:
    """Returns the frames that a policer lets pass at once."""
    return max(1, round(pps * _BURST_SHARE))


def _cookie(pair: int, kind: int) -> str:
    return hex(pair << 8 | kind)
