# SPDX-License-Identifier: BSD-3-Clause
"""``inspect``: Suricata inline between two kernel interfaces or two virtio-user ports (copy mode ``ips``).

It inspects the payload of every frame. A frame that no rule drops is copied unchanged to the other port.
``Engine`` is its process with its files and its control socket.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from pytest_icbench.driver.function.function_parts import FIRST_PORT, Parts, PartsFunction
from pytest_icbench.driver.function.process_function import (
    ProcessFunction,
    check_ports,
    port_statistics,
    virtio_user_devices,
)
from pytest_icbench.driver.function.proof import frame, pass_both_ways
from pytest_icbench.driver.function.protocol import VETH, Ends, FunctionSpec, Probe
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.common.userspace_ports import VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.dpdk.dpdk_process import find_binary, query_version
from pytest_icbench.driver.workload.eal import eal_arguments
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.answers import read_answer
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import ethtool, links
from pytest_icbench.host.node_files import read_file, write_file
from pytest_icbench.model.acl_drop import AclDrop
from pytest_icbench.model.endpoint import Veth
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind

#: Its name in ``--icbench-binary``.
NAME = "suricata"
#: The text that rules match, followed by the rule's number.
TEXT = "icbench rule "
_LEAST_MAJOR = 7
_REMEDY = "install Debian 13's package suricata (on Debian 12, unpack it with its libraries into a separate directory)"
_START_S, _ANSWER_S = 60.0, 5.0
#: Its threads sum their counters every 3 s, and its socket publishes the sum once per second.
_SETTLED_S, _POLL_S = 10.0, 0.05
_STARTED = "Engine started"
#: The protocol of its control socket.
_PROTOCOL = "0.2"
_RING, _BUFFERS = 256, 4095
#: Huge pages for the buffers of both ports and its rings, in MiB.
HUGEPAGES_MIB = 64
_PORTS = ("net_virtio_user0", "net_virtio_user1")
_PART = re.compile(r"inspect(?P<rules>[1-9]\d{0,4})?(\+deny(?P<deny>[1-9]\d{0,2}))?", re.ASCII)
_MOST_RULES = 10_000
#: Frames of a proof for the first rules, at most; the last rule has one more.
_LISTED_FRAMES = 100


def rule_text(place: int) -> str:
    """Returns the payload text that a rule matches. No text contains another."""
    return f"{TEXT}{place:05d}"


@dataclass(frozen=True, slots=True)
class Program:
    """An installed Suricata, below /usr or in a separate directory tree.

    Attributes:
        path: its binary.
        loader: dynamic loader of the tree, whose libc differs from the host's; None: the host's loader.
    """

    path: Path
    loader: Path | None

    @classmethod
    def locate(cls, path: Path) -> Self:
        """Returns the program, with the loader in its tree if it is not the system's."""
        prefix = path.resolve().parent.parent
        loaders = [] if prefix == Path("/usr") else sorted(prefix.glob("lib/*-linux-gnu/ld-linux*.so.*"))
        return cls(path.resolve(), loaders[0] if loaders else None)

    @property
    def argv(self) -> list[str]:
        """The command line without its arguments."""
        if self.loader is None:
            return [str(self.path)]
        return [str(self.loader), "--library-path", str(self.loader.parent), str(self.path)]

    @property
    def drivers(self) -> Path | None:
        """The directory of DPDK's drivers in the tree; None for the host's."""
        found = [] if self.loader is None else sorted(self.loader.parent.glob("dpdk/pmds-*"))
        return found[0] if found else None

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directory of all its files."""
        return (self.path.parent.parent,)

    @classmethod
    def find(cls, session: HostSession) -> Self:
        """Returns the user's program or the one on PATH. Raises Unsupported with the remedy."""
        return cls.locate(find_binary(session, NAME, None, ["suricata"], _REMEDY))

    @classmethod
    def version(cls, session: HostSession) -> str:
        """Returns its name and version. Raises Unsupported without it, or if it is older than 7."""
        program = cls.find(session)
        match = query_version(session, NAME, program.path, [*program.argv, "-V"], r"Suricata version ((\d+)\.\S+)")
        if int(match[2]) < _LEAST_MAJOR:
            raise Unsupported(f"{program.path} is Suricata {match[1]}, which is too old: {_REMEDY}")
        return f"Suricata {match[1]}"


def configuration(capture: Mapping[str, Any]) -> str:
    """Returns ``suricata.yaml``, as JSON, without settings of the host. Pure.

    ``capture``: the settings for receiving frames.
    """
    nothing = dict.fromkeys(("classification-file", "reference-config-file", "threshold-file"), "/dev/null")
    settings = {
        "runmode": "workers",
        **capture,
        "stats": {"enabled": True, "interval": 1},
        "outputs": [],
        "unix-command": {"enabled": True},
        "logging": {
            "default-log-level": "notice",
            "outputs": [
                {"console": {"enabled": True}},
                {"file": {"enabled": True, "level": "notice", "filename": "suricata.log"}},
            ],
        },
        **nothing,
    }
    return f"%YAML 1.1\n---\n{json.dumps(settings, indent=1)}\n"


def rule_file(parts: Parts) -> str:
    """Returns the rules: denying rules drop matching frames, the rest alert. Pure."""
    lines = (
        f"{'drop' if parts.denies(place) else 'alert'} udp any any -> any any"
        f' (msg:"rule {place}"; content:"{rule_text(place)}"; sid:{place + 1};)'
        for place in range(parts.rules)
    )
    return "".join(f"{line}\n" for line in lines)


class Engine:
    """Suricata in a function's node.

    Args:
        capture: the settings for receiving frames.
        options: the command-line options to these settings.
        rule_text: its rules, without the user's.
    """

    def __init__(
        self,
        session: HostSession,
        spec: FunctionSpec,
        capture: Mapping[str, Any],
        options: Sequence[str],
        rule_text: str,
    ) -> None:
        node, _, _ = spec.require_ports()
        self._spec = spec
        directory = spec.directory
        self._socket = directory / "control"
        settings, rule_text = configuration(capture), rule_text + str(spec.config.get("rules", ""))
        write_file(directory, "suricata.yaml", settings)
        write_file(directory, "suricata.rules", rule_text)
        further = [word for item in spec.config.get("settings", ()) for word in ("--set", item)]
        argv = [
            *("env", f"RUNTIME_DIRECTORY={directory}"),  # for EAL, if it is used
            *Program.find(session).argv,
            *("-c", str(directory / "suricata.yaml"), "-S", str(directory / "suricata.rules"), "-l", str(directory)),
            *(*options, "--init-errors-fatal", "--set", f"unix-command.filename={self._socket}", *further),
        ]
        self.daemon = Daemon(spec.label, node.spawn(argv, cpus=[spec.cpu], log=spec.log))
        self.config: dict[str, Any] = {"yaml": settings, "rules": rule_text, "settings": further[1::2]}

    def await_started(self) -> None:
        """Waits until its engine runs. Raises ProvisionError with its messages."""
        directory = self._spec.directory
        self.daemon.wait_until(
            lambda: _STARTED.encode() in (read_file(directory, "suricata.log") or b""),
            failure="has not started its engine",
            timeout_s=_START_S,
        )

    def settled(self, due: Callable[[], int]) -> dict[str, int]:
        """Returns ``counted()`` once it has seen ``due()`` frames, or after a few seconds."""
        frames, deadline = due(), time.monotonic() + _SETTLED_S
        while (shown := self.counted())["seen"] < frames and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return shown

    def counted(self) -> dict[str, int]:
        """Returns the frames that it has seen (with lost ones), blocked and lost; 0 before its first sum."""
        self.daemon.check()
        try:
            answer = query_socket(self._socket, "dump-counters")
        except (OSError, ValueError) as error:
            raise ProvisionError(
                f"{self._spec.label} does not report its counters: {error}{self.daemon.evidence()}"
            ) from None
        message = answer["message"]
        if not isinstance(message, dict):  # the counters are not summed yet
            return {"seen": 0, "blocked": 0, "dropped": 0}
        dropped = message.get("capture", {}).get("kernel_drops", 0)
        return {"seen": message["decoder"]["pkts"] + dropped, "blocked": message["ips"]["blocked"], "dropped": dropped}


def query_socket(path: Path, command: str) -> dict[str, Any]:
    """Returns the answer to a command at Suricata's control socket. Raises OSError or ValueError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_S)
        connection.connect(str(path))
        for request in ({"version": _PROTOCOL}, {"command": command}):
            deadline = time.monotonic() + _ANSWER_S
            connection.sendall(json.dumps(request).encode() + b"\n")
            text = read_answer(connection, lambda came: came.endswith(b"\n"), deadline)
    return dict(json.loads(text))


class Capture(Protocol):
    """A way for frames to and from Suricata. ``settings``: its part of ``suricata.yaml``."""

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
    frames are those that the ports received and did not send. ``drivers``: directory of DPDK's drivers; None: DPDK's
    default.
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
        proven = any(map(parts.denies, range(min(parts.rules, _LISTED_FRAMES))))  # by an ACL-dropped frame
        return parts if proven and parts.rules <= _MOST_RULES and parts.deny_percent <= 100 else None

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
