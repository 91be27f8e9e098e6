# SPDX-License-Identifier: BSD-3-Clause
"""``inspect``: Suricata inline between two kernel interfaces or two virtio-user ports (copy mode ``ips``).

It inspects the payload of every frame. A frame that no rule drops is copied unchanged to the other port.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pytest_icbench.driver.function.grammar import FIRST_PORT, Parts, PartsFunction
from pytest_icbench.driver.function.process_function import (
    ProcessFunction,
    check_ports,
    port_statistics,
    virtio_user_devices,
)
from pytest_icbench.driver.function.proof import frame, pass_both_ways
from pytest_icbench.driver.function.protocol import VETH, Ends, FunctionSpec, Probe
from pytest_icbench.driver.function.suricata_engine import NAME, TEXT, Engine, Program, rule_file, rule_text
from pytest_icbench.driver.switch.common.userspace_ports import VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.workload.eal import eal_arguments
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import ethtool, links
from pytest_icbench.model.acl_drop import AclDrop
from pytest_icbench.model.endpoint import Veth
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind

_RING, _BUFFERS = 256, 4095
#: Huge pages for the buffers of both ports and its rings, in MiB.
HUGEPAGES_MIB = 64
_PORTS = ("net_virtio_user0", "net_virtio_user1")
_PART = re.compile(r"inspect(?P<rules>[1-9]\d{0,4})?(\+deny(?P<deny>[1-9]\d{0,2}))?", re.ASCII)
_MOST_RULES = 10_000
#: Frames of a proof for the first rules, at most; the last rule has one more.
_LISTED_FRAMES = 100


class Capture(Protocol):
    """A way for frames to and from Suricata.

    Attributes:
        settings: its part of ``suricata.yaml``.
        options: its options on the command line.
    """

    settings: Mapping[str, Any]
    options: Sequence[str]

    def prepare(self, engine: Engine) -> None:
        """Completes the set-up once the engine runs."""

    @abstractmethod
    def read_counters(self, spec: FunctionSpec, engine: Engine) -> FunctionCounters:
        """Returns the counters since the start. Raises ProvisionError if they cannot be read."""


class KernelCapture(Capture):
    """Two kernel interfaces. Raises ProvisionError for other ports."""

    options = ("--af-packet",)

    def __init__(self, session: HostSession, spec: FunctionSpec) -> None:
        self._netns, self._interfaces = spec.netns, spec.interfaces
        # It sends frames as received, also with a checksum that the sender's kernel has left to its device.
        ethtool.apply_settings(session, spec.sides, {"checksum": "false"})
        self.settings = af_packet_settings(*self._interfaces)
        self._unseen = 0

    def prepare(self, engine: Engine) -> None:  # noqa: ARG002 - as ``Capture``
        """Records the frames that arrived before its start."""
        self._unseen = self._arrived()

    def _arrived(self) -> int:
        return sum(links.read_statistics(name, self._netns)["rx_packets"] for name in self._interfaces)

    def read_counters(self, spec: FunctionSpec, engine: Engine) -> FunctionCounters:
        """Returns the frames on the interfaces and the blocked ones, once it has counted all that arrived."""
        shown = engine.settled(lambda: self._arrived() - self._unseen)
        inner, outer = (links.read_statistics(name, self._netns) for name in self._interfaces)
        return FunctionCounters(
            spec.pair,
            taken=inner["rx_packets"],
            given=outer["tx_packets"],
            taken_back=outer["rx_packets"],
            acl_drops=shown["blocked"],
            hop=spec.hop,
            overrun=shown["dropped"],
        )


class DpdkCapture(Capture):
    """Two virtio-user ports, each polled by a worker that sleeps without frames.

    A worker updates its counters only when a frame arrives at least three seconds after the last update. So blocked
    frames are those that the ports received and did not send.

    Args:
        drivers: directory of DPDK's drivers; None: DPDK's default.
    """

    options = ("--dpdk",)

    def __init__(self, spec: FunctionSpec, drivers: Path | None) -> None:
        self._cpu, self._runtime = spec.cpu, spec.directory
        _, inner, _ = spec.require_ports()
        eal = eal_arguments(inner, "dpdk", cpu=spec.cpu, ring=_RING, jumbo=False)[:-1]
        self.settings = dpdk_settings(eal, virtio_user_devices(spec, _RING), spec.mtu, drivers)

    def prepare(self, engine: Engine) -> None:
        """Moves all threads to its CPU. Suricata requires one CPU per worker, so it was started with all."""
        for thread in Path(f"/proc/{engine.daemon.process.pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), {self._cpu})

    def read_counters(self, spec: FunctionSpec, engine: Engine) -> FunctionCounters:
        """Returns the ports' counters."""
        engine.daemon.check()
        inner, outer = port_statistics(self._runtime, len(_PORTS))
        blocked = sum(port["ipackets"] - port["opackets"] for port in (inner, outer))
        return FunctionCounters(
            spec.pair,
            taken=inner["ipackets"],
            given=outer["opackets"],
            taken_back=outer["ipackets"],
            acl_drops=blocked,
            hop=spec.hop,
            overrun=0,
        )


def af_packet_settings(inner: str, outer: str) -> dict[str, Any]:
    """Returns the settings for copying frames between two kernel interfaces. Pure."""
    common = {
        "threads": 1,
        "copy-mode": "ips",
        "cluster-type": "cluster_flow",
        "defrag": False,
        "use-mmap": True,
        "tpacket-v3": False,
    }
    interfaces = [
        {"interface": interface, "copy-iface": other, "cluster-id": number, **common}
        for number, (interface, other) in enumerate(((inner, outer), (outer, inner)), start=1)
    ]
    return {"af-packet": interfaces}


def dpdk_settings(eal: Sequence[str], devices: Sequence[str], mtu: int, drivers: Path | None) -> dict[str, Any]:
    """Returns the settings for copying frames between two DPDK ports. Pure.

    Args:
        eal: EAL's arguments, without devices.
        devices: the values of ``--vdev``, in the order of the ports.
        mtu: layer 3 MTU of both ports.
        drivers: directory of DPDK's drivers; None: DPDK's default.
    """
    arguments: dict[str, Any] = {"vdev": list(devices)}
    words = [word for word in eal if word != "--no-telemetry"]
    for word, following in zip(words, [*words[1:], "-"], strict=True):
        if word.startswith("-"):
            arguments[word.lstrip("-")] = "" if following.startswith("-") else following
    arguments["m"] = str(HUGEPAGES_MIB)
    if drivers is not None:
        arguments["d"] = str(drivers)
    common = {
        "threads": 1,
        "interrupt-mode": True,
        "promisc": False,  # a virtio-user port does not filter
        "multicast": False,
        "mtu": mtu,
        "mempool-size": _BUFFERS,
        "mempool-cache-size": "auto",
        "rx-descriptors": _RING,
        "tx-descriptors": _RING,
        "copy-mode": "ips",
    }
    interfaces = [
        {"interface": port, "copy-iface": other, **common} for port, other in zip(_PORTS, reversed(_PORTS), strict=True)
    ]
    affinity = [{"management-cpu-set": {"cpu": []}}, {"worker-cpu-set": {"cpu": ["all"], "mode": "balanced"}}]
    return {
        "dpdk": {"eal-params": arguments, "interfaces": interfaces},
        "threading": {"set-cpu-affinity": True, "cpu-affinity": affinity},
    }


class SuricataFunction(PartsFunction, ProcessFunction):
    """An intrusion prevention system: one worker for each direction."""

    name = NAME
    ports = (VETH, VHOST_USER, VHOST_USER_PACKED)
    polls = True  # its workers wait in poll(), but do all the work
    help = "inspect or inspectN (N rules on payloads, up to 10000), with denyP (percent of them, at least one)"
    hugepages_mib = HUGEPAGES_MIB
    memory_mib = 64
    takes_binary = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"rules": "text", "settings": "texts"}

    def __init__(self) -> None:
        super().__init__()
        self._engine: Engine | None = None
        self._capture: Capture | None = None

    @classmethod
    def parse(cls, function: str) -> Parts | None:
        """Returns rules and share as parts; None for another function. Pure."""
        match = _PART.fullmatch(function)
        if match is None:
            return None
        parts = Parts(rules=int(match["rules"] or 1), deny_percent=int(match["deny"] or 100))
        acl_drops = sum(
            map(parts.denies, range(min(parts.rules, _LISTED_FRAMES)))
        )  # a proof needs an ACL-dropped frame
        return parts if acl_drops and parts.rules <= _MOST_RULES and parts.deny_percent <= 100 else None

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames that match no rule and frames for rules, in one direction and then in the other."""
        parts = cls.parse_own(function)
        listed = sorted({*range(min(parts.rules, _LISTED_FRAMES)), parts.rules - 1})
        stages = pass_both_ways(ends, bytes, "unchanged: no rule is for it")
        for forth, probes in zip((True, False), stages, strict=True):
            source, target = ends.direction(forth)
            for place in listed:
                sent = frame(source, target, FIRST_PORT + place, text=rule_text(place))
                acl_drops = parts.denies(place)
                says = f"has to {'be denied' if acl_drops else 'pass unchanged'}: rule {place + 1} is for it"
                probes.append(Probe(forth, sent, None if acl_drops else sent, says))
        return stages

    @classmethod
    def acl_drop(cls, function: str) -> AclDrop | None:
        parts = cls.parse_own(function)
        return None if parts.deny_percent == 100 else AclDrop(parts.deny_percent, parts.rules, TEXT)

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:
        return Program.find(session).directories

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002 - as ``Function``
        """Returns the version of Suricata. Raises Unsupported without it, or if it is older than 7."""
        return FunctionFacts(self.name, Program.version(session))

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts Suricata in the node and waits for its engine. Raises ProvisionError with its messages."""
        _, inner, _ = spec.require_ports()
        capture: Capture
        if isinstance(inner, Veth):
            capture = KernelCapture(session, spec)
        else:
            check_ports(spec, "Suricata over DPDK")
            capture = DpdkCapture(spec, Program.find(session).drivers)
        made = rule_file(self.parse_own(spec.function))
        engine = Engine(session, spec, capture.settings, capture.options, made)
        self._spec, self._daemon, self._engine, self._capture = spec, engine.daemon, engine, capture
        engine.await_started()
        capture.prepare(engine)
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, engine.config)

    def counters(self) -> FunctionCounters:
        """Returns the frames on its ports and the blocked ones."""
        spec, _ = self.live()
        assert self._engine is not None
        assert self._capture is not None
        return self._capture.read_counters(spec, self._engine)
