# SPDX-License-Identifier: BSD-3-Clause
"""``inspect``: Suricata inline between two kernel interfaces or two virtio-user ports (copy mode ``ips``).

It looks into the payload of every frame. What no rule denies it copies to its other port as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.function.dpdk_function import check_ports
from pytest_icbench.driver.function.frames import frame
from pytest_icbench.driver.function.linux_parts import FIRST_PORT, Parts
from pytest_icbench.driver.function.parts_function import PartsFunction
from pytest_icbench.driver.function.protocol import VETH, Ends, FunctionSpec, Probe
from pytest_icbench.driver.function.suricata_capture import HUGEPAGES_MIB, Capture, DpdkCapture, KernelCapture
from pytest_icbench.driver.function.suricata_engine import NAME, TEXT, Engine, Program, rules, text
from pytest_icbench.driver.switch.common.ports import VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.errors import ProvisionError
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
    ports = (VETH, VHOST_USER, VHOST_USER_PACKED)
    polls = True  # its workers wait in poll(), but they do all the work: they take a CPU
    help = "inspect or inspectN (N rules on payloads, up to 10000), with denyP (percent of them, at least one)"
    hugepages_mib = HUGEPAGES_MIB
    memory_mib = 64
    takes_binary = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"rules": "text", "settings": "texts"}

    def __init__(self) -> None:
        self._running: tuple[FunctionSpec, Engine, Capture] | None = None
        self._facts = FunctionFacts(self.name)

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
        _, inner, _ = spec.with_ports()
        capture: Capture
        if isinstance(inner, Veth):
            capture = KernelCapture(session, spec)
        else:
            check_ports(spec, "Suricata over DPDK")
            capture = DpdkCapture(spec, Program.find(session).drivers)
        made = rules(self.parts_of(spec.function))
        engine = Engine(session, spec, capture.settings, capture.options, made)
        self._running = spec, engine, capture
        engine.await_started()
        capture.started(engine)
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, engine.config)

    def facts(self) -> FunctionFacts:
        return self._facts

    def _live(self) -> tuple[FunctionSpec, Engine, Capture]:
        if self._running is None:
            raise ProvisionError("the function was not started")
        return self._running

    def check(self) -> None:
        self._live()[1].daemon.check()

    def counters(self) -> FunctionCounters:
        """Returns what its ports carried and what it blocked."""
        spec, engine, capture = self._live()
        found = capture.carried(engine)
        return FunctionCounters(
            spec.pair,
            taken=found.taken,
            given=found.given,
            taken_back=found.taken_back,
            denied=found.blocked,
            hop=spec.hop,
            overrun=found.dropped,
        )

    def stop(self) -> None:
        if self._running is not None:
            self._running[1].daemon.stop()
