# SPDX-License-Identifier: BSD-3-Clause
"""``nat+acl10+police20k+inspect``: a router of the kernel whose accepted frames Suricata inspects (NFQUEUE).

Frames that nftables accepts wait in a queue of the kernel for Suricata's verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.function import proof
from pytest_icbench.driver.function.function_parts import ParsedFunction
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.protocol import VETH, Ends, FunctionSpec, Probe, RateLimit
from pytest_icbench.driver.function.suricata import Engine, Program, SuricataFunction, rule_file, rule_text
from pytest_icbench.errors import NotStarted, ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind

_INSPECT = re.compile(r"inspect\d*", re.ASCII)
_TOOL_S = 20.0
#: Queues frames for Suricata after all filters and before source NAT. Kernels without nft's queue may have the one of
#: iptables.
_NFT = "table ip icbench_inspect { chain inspect { type filter hook postrouting priority -150; queue num 0; } }\n"
_IPTABLES = ("iptables", "-t", "mangle", "-A", "POSTROUTING", "-j", "NFQUEUE", "--queue-num", "0")
#: The queues in the namespace of this thread, with the columns of dropped packets and of the last packet's number.
_QUEUE = Path("/proc/thread-self/net/netfilter/nfnetlink_queue")
_DROPPED_AT, _SEQUENCE_AT = 5, 7
#: Frames of a proof for the first rules of the inspection, at most; the last rule has one more. Their first UDP port.
_LISTED_FRAMES, _FIRST_PORT = 10, 40_000
#: UDP port of a frame in the router's proof that frames of side b answer.
_ANSWERED_PORT = 1024


class GatewayFunction(ParsedFunction[tuple[str, str]]):
    """A router with rules of nftables, followed by Suricata."""

    name = "gateway"
    ports = (VETH,)
    polls = True  # Suricata needs a CPU
    help = "parts of linux and inspectN (rules on payloads) joined by +, without denyP"
    memory_mib = 72
    config_keys: ClassVar[Mapping[str, Kind]] = {"nft": "text", "rules": "text", "settings": "texts"}

    def __init__(self) -> None:
        self._router = LinuxFunction()
        self._engine: Engine | None = None
        self._netns = ""

    @classmethod
    def parse(cls, function: str) -> tuple[str, str] | None:
        """Returns the parts of the router and the inspecting part; None for a function of another component."""
        words = function.split("+")
        inspected = [word for word in words if _INSPECT.fullmatch(word)]
        rest = "+".join(word for word in words if word not in inspected)
        parts = LinuxFunction.parse(rest) if len(inspected) == 1 and rest else None
        if parts is None or parts.deny_percent != 100 or not SuricataFunction.has(inspected[0]):
            return None
        return rest, inspected[0]

    @classmethod
    def visible_addresses(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns the addresses that the router shows."""
        return LinuxFunction.visible_addresses(cls.parse_own(function)[0], ends)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns the proof of the router, with frames of both sides whose payload has to be dropped."""
        router, inspected = cls.parse_own(function)
        parts = SuricataFunction.parse_own(inspected)
        stages = [list(stage) for stage in LinuxFunction.proof(router, ends)]
        seen_by_leader, seen_by_follower = cls.visible_addresses(function, ends)
        for place in sorted({*range(min(parts.rules, _LISTED_FRAMES)), parts.rules - 1}):
            says = f"has to be denied: rule {place + 1} of the inspection is for it"
            forth = proof.frame(ends.leader, seen_by_leader, _FIRST_PORT + place, text=rule_text(place))
            back = proof.frame(ends.follower, seen_by_follower, _ANSWERED_PORT, text=rule_text(place))
            stages[0].append(Probe(True, forth, None, says))
            stages[1].append(Probe(False, proof.set_number(back, _FIRST_PORT + place), None, says))
        return stages

    @classmethod
    def rate_limit(cls, function: str, frame_bytes: float) -> RateLimit | None:
        return LinuxFunction.rate_limit(cls.parse_own(function)[0], frame_bytes)

    @classmethod
    def most_flows(cls, function: str) -> int | None:
        return LinuxFunction.most_flows(cls.parse_own(function)[0])

    @classmethod
    def only_answers(cls, function: str) -> bool:
        return LinuxFunction.only_answers(cls.parse_own(function)[0])

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:
        return Program.find(session).directories

    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        """Returns the versions of the kernel, nft and Suricata. Raises Unsupported with what is missing."""
        router, _ = self.parse_own(function)
        versions = (self._router.probe(session, router).version, Program.version(session))
        return FunctionFacts(self.name, ", ".join(filter(None, versions)))

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Makes the router and the queue, then starts Suricata. Raises ProvisionError with their messages."""
        router, inspected = self.parse_own(spec.function)
        parts = SuricataFunction.parse_own(inspected)
        self._netns = spec.netns
        self._router.start(session, replace(spec, function=router))
        queue = _queue(session, self._netns)
        nfq = {"nfq": {"mode": "accept", "fail-open": False}}
        self._engine = engine = Engine(session, spec, nfq, ["-q", "0"], rule_file(parts))
        engine.await_started()
        config: dict[str, Any] = {**self._router.facts().config, "queue": queue, **engine.config}
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, config)

    def _live(self) -> Engine:
        if self._engine is None:
            raise ProvisionError("the function was not started")
        return self._engine

    def check(self) -> None:
        self._router.check()
        self._live().daemon.check()

    def forget(self) -> None:
        self._router.forget()

    def counters(self) -> FunctionCounters:
        """Returns the router's counters with Suricata's drops and the overrun of its queue."""
        shown = self._live().settled(lambda: self._queued()[0])
        counters = self._router.counters()
        return replace(counters, acl_drops=(counters.acl_drops or 0) + shown["blocked"], overrun=self._queued()[1])

    def _queued(self) -> tuple[int, int]:
        """Returns the packets that reached Suricata's queue and those dropped because it was full."""
        with enter_netns(self._netns):
            lines = _QUEUE.read_text(encoding="ascii").splitlines()
        words = lines[0].split() if lines else []
        return (int(words[_SEQUENCE_AT]), int(words[_DROPPED_AT])) if len(words) > _SEQUENCE_AT else (0, 0)

    def stop(self) -> None:
        if self._engine is not None:
            self._engine.daemon.stop()
        self._router.stop()


def _queue(session: HostSession, netns: str) -> str:
    """Sends forwarded packets into queue 0; returns the rule. Raises Unsupported if the kernel has no queue."""
    try:
        session.spawner.run(["nft", "-f", "-"], timeout_s=_TOOL_S, netns=netns, input=_NFT)
    except (NotStarted, ProvisionError):
        pass
    else:
        return _NFT
    try:
        session.spawner.run(list(_IPTABLES), timeout_s=_TOOL_S, netns=netns)
    except NotStarted:
        raise Unsupported(
            "this kernel has no queue of nftables: load its module nft_queue, or install iptables (Debian's package"
            " iptables)"
        ) from None
    return " ".join(_IPTABLES)
