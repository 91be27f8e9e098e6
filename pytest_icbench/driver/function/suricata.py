# SPDX-License-Identifier: BSD-3-Clause
"""``inspect``: Suricata inline between two kernel interfaces (AF_PACKET, copy mode ``ips``).

It looks into the payload of every frame. What no rule denies it copies to its other interface as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.function.frames import frame
from pytest_icbench.driver.function.linux_parts import FIRST_PORT, Parts
from pytest_icbench.driver.function.parts_function import PartsFunction
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec, Probe
from pytest_icbench.driver.function.suricata_engine import NAME, TEXT, Engine, Program, copying, rules, text
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.net import links, offloads
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.denial import Denial
from pytest_icbench.model.endpoint import Veth
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind

_PART = re.compile(r"inspect(?P<rules>[1-9]\d{0,4})?(\+deny(?P<deny>[1-9]\d{0,2}))?", re.ASCII)
_MOST_RULES = 10_000
#: Frames of a proof that are in no rule, and at most so many of those of the first rules, beside the last one's.
_FREE_FRAMES, _LISTED_FRAMES = 20, 100
_FREE_PORT = 1024


class SuricataFunction(PartsFunction):
    """An intrusion prevention system: one worker for each direction."""

    name = NAME
    ports = ("veth",)
    polls = True  # its workers wait in poll(), but they do all the work: they take a CPU
    help = "inspect or inspectN (N rules on payloads, up to 10000), with denyP (percent of them, at least one)"
    memory_mib = 64
    takes_binary = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"rules": "text", "settings": "texts"}

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._facts = FunctionFacts(self.name)
        self._spec: FunctionSpec | None = None
        self._unseen = 0

    @classmethod
    def parts(cls, function: str) -> Parts | None:
        """Returns rules and share of a function; None for another one. Pure."""
        match = _PART.fullmatch(function)
        if match is None:
            return None
        parts = Parts(rules=int(match["rules"] or 1), deny_percent=int(match["deny"] or 100))
        denied = sum(map(parts.denies, range(min(parts.rules, _LISTED_FRAMES))))  # none would prove nothing
        return parts if denied and parts.rules <= _MOST_RULES and parts.deny_percent <= 100 else None

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames that no rule finds and frames for rules, in one direction and then in the other."""
        parts = cls.parts_of(function)
        listed = sorted({*range(min(parts.rules, _LISTED_FRAMES)), parts.rules - 1})

        def probes(forth: bool) -> list[Probe]:
            source, target = (ends.leader, ends.follower) if forth else (ends.follower, ends.leader)
            found = []
            for number in range(_FREE_FRAMES):
                sent = frame(source, target, _FREE_PORT + number)
                found.append(Probe(forth, sent, sent, "has to pass unchanged: no rule is for it"))
            for place in listed:
                sent = frame(source, target, FIRST_PORT + place, text=text(place))
                denied = parts.denies(place)
                says = f"has to {'be denied' if denied else 'pass unchanged'}: rule {place + 1} is for it"
                found.append(Probe(forth, sent, None if denied else sent, says))
            return found

        return probes(True), probes(False)

    @classmethod
    def denial(cls, function: str) -> Denial | None:
        parts = cls.parts_of(function)
        return None if parts.deny_percent == 100 else Denial(parts.deny_percent, parts.rules, TEXT)

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:
        return Program.find(session).directories

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002 - as ``Function``
        """Returns the version of Suricata. Raises Unsupported without it, or if it is older than 7."""
        return FunctionFacts(self.name, Program.version(session))

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts Suricata in the node and waits until its engine runs. Raises ProvisionError with its own words."""
        _, inner, outer = spec.with_ports()
        if not isinstance(inner, Veth) or not isinstance(outer, Veth):
            raise ProvisionError(f"function {spec.function} needs kernel interfaces")
        self._spec = spec
        # It gives frames out as they came in, with the checksum that a sender's kernel has left to its device.
        offloads.apply(session, spec.sides, {"checksum": "false"})
        capture = copying(inner.interface, outer.interface)
        self._engine = engine = Engine(session, spec, capture, ["--af-packet"], rules(self.parts_of(spec.function)))
        engine.await_started()
        self._unseen = self._arrived()
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, engine.config)

    def facts(self) -> FunctionFacts:
        return self._facts

    def _live(self) -> tuple[FunctionSpec, Engine]:
        if self._engine is None or self._spec is None:
            raise ProvisionError("the function was not started")
        return self._spec, self._engine

    def _interfaces(self) -> tuple[str, str, str]:
        """Returns the network namespace and both interfaces. Raises ProvisionError if it was not started."""
        spec = self._spec
        if (
            spec is None
            or spec.node_facts is None
            or not isinstance(spec.inner, Veth)
            or not isinstance(spec.outer, Veth)
        ):
            raise ProvisionError("the function was not started")
        return spec.node_facts.netns, spec.inner.interface, spec.outer.interface

    def _arrived(self) -> int:
        """Returns the frames that arrived at both interfaces."""
        netns, *interfaces = self._interfaces()
        return sum(links.statistics(name, netns)["rx_packets"] for name in interfaces)

    def check(self) -> None:
        self._live()[1].daemon.check()

    def counters(self) -> FunctionCounters:
        """Returns what its interfaces carried and what it blocked, once it has counted all frames that arrived."""
        spec, engine = self._live()
        netns, inner, outer = self._interfaces()
        shown = engine.settled(lambda: self._arrived() - self._unseen)
        return FunctionCounters(
            spec.pair,
            taken=links.statistics(inner, netns)["rx_packets"],
            given=links.statistics(outer, netns)["tx_packets"],
            taken_back=links.statistics(outer, netns)["rx_packets"],
            denied=shown["blocked"],
            hop=spec.hop,
            overrun=shown["dropped"],
        )

    def stop(self) -> None:
        if self._engine is not None:
            self._engine.daemon.stop()
