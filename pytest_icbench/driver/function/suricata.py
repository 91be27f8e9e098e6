# SPDX-License-Identifier: BSD-3-Clause
"""``inspect``: Suricata inline between two kernel interfaces (AF_PACKET, copy mode ``ips``).

It looks into the payload of every frame. What no rule denies it copies to its other interface as it is.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from pytest_icbench.driver.function.frames import frame
from pytest_icbench.driver.function.linux_parts import FIRST_PORT, Parts
from pytest_icbench.driver.function.protocol import Ends, Function, FunctionSpec, Probe
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.dpdk.dpdk_process import find_binary
from pytest_icbench.errors import NotStarted, ProvisionError, Unsupported
from pytest_icbench.host.net import links, offloads
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.denial import Denial
from pytest_icbench.model.endpoint import Veth
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind

_PART = re.compile(r"inspect(?P<rules>[1-9]\d{0,4})?(\+deny(?P<deny>[1-9]\d{0,2}))?", re.ASCII)
_MOST_RULES = 10_000
_VERSION = re.compile(r"Suricata version ((\d+)\.\S+)")
_LEAST_MAJOR = 7
_REMEDY = (
    "install Debian 13's package suricata (on Debian 12, unpack it with its libraries into a directory of its own)"
)
#: Frames of a proof that are in no rule, and at most so many of those of the first rules, beside the last one's.
_FREE_FRAMES, _LISTED_FRAMES = 20, 100
_FREE_PORT = 1024
_PROBE_S, _START_S, _ANSWER_S = 10.0, 60.0, 5.0
#: Its threads add up their counters every 3 s, and its socket shows the sum once a second.
_SETTLED_S, _POLL_S = 10.0, 0.05
_STARTED = "Engine started"
#: The protocol of its control socket.
_PROTOCOL = "0.2"


#: What a rule looks for in the payload, the rule's place behind it.
_TEXT = "icbench rule "


def _text(place: int) -> str:
    """Returns what a rule looks for in the payload; none is part of another."""
    return f"{_TEXT}{place:05d}"


@dataclass(frozen=True, slots=True)
class Program:
    """Suricata as it is installed: below /usr, or as a tree of its own.

    Attributes:
        path: its binary.
        loader: the dynamic loader of the tree, which has another libc than the host; None for the host's.
    """

    path: Path
    loader: Path | None

    @classmethod
    def at(cls, path: Path) -> Self:
        """Returns the program; a loader beside its libraries is its own, unless they are the system's."""
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
    def directories(self) -> tuple[Path, ...]:
        """The directory of all its files, if that is outside /usr."""
        prefix = self.path.parent.parent
        return () if prefix.is_relative_to("/usr") else (prefix,)

    @classmethod
    def find(cls, session: HostSession) -> Self:
        """Returns the user's, or that on PATH. Raises Unsupported with the remedy."""
        return cls.at(find_binary(session, SuricataFunction.name, None, ["suricata"], _REMEDY))


def configuration(inner: str, outer: str) -> str:
    """Returns ``suricata.yaml``, with nothing of the host's in it. Pure.

    JSON is YAML.
    """
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
    nothing = dict.fromkeys(("classification-file", "reference-config-file", "threshold-file"), "/dev/null")
    settings = {
        "runmode": "workers",
        "af-packet": interfaces,
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


def rules(parts: Parts) -> str:
    """Returns the rules: those that deny drop what they find, the others alert. Pure."""
    lines = (
        f"{'drop' if parts.denies(place) else 'alert'} udp any any -> any any"
        f' (msg:"rule {place}"; content:"{_text(place)}"; sid:{place + 1};)'
        for place in range(parts.rules)
    )
    return "".join(f"{line}\n" for line in lines)


class SuricataFunction(Function):
    """An intrusion prevention system: one worker for each direction."""

    name = "suricata"
    ports = ("veth",)
    polls = True  # its workers wait in poll(), but they do all the work: they take a CPU
    help = "inspect or inspectN (N rules on payloads, up to 10000), with denyP (percent of them, at least one)"
    memory_mib = 64
    takes_binary = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"rules": "text", "settings": "texts"}

    def __init__(self) -> None:
        self._daemon: Daemon | None = None
        self._facts = FunctionFacts(self.name)
        self._spec: FunctionSpec | None = None
        self._socket = Path()
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
    def _parts_of(cls, function: str) -> Parts:
        parts = cls.parts(function)
        if parts is None:
            raise ProvisionError(f"{cls.name} has no function '{function}'; it has {cls.help}")
        return parts

    @classmethod
    def has(cls, function: str) -> bool:
        return cls.parts(function) is not None

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames that no rule finds and frames for rules, in one direction and then in the other."""
        parts = cls._parts_of(function)
        listed = sorted({*range(min(parts.rules, _LISTED_FRAMES)), parts.rules - 1})

        def probes(forth: bool) -> list[Probe]:
            source, target = (ends.leader, ends.follower) if forth else (ends.follower, ends.leader)
            found = []
            for number in range(_FREE_FRAMES):
                sent = frame(source, target, _FREE_PORT + number)
                found.append(Probe(forth, sent, sent, "has to pass unchanged: no rule is for it"))
            for place in listed:
                sent = frame(source, target, FIRST_PORT + place, text=_text(place))
                denied = parts.denies(place)
                says = f"has to {'be denied' if denied else 'pass unchanged'}: rule {place + 1} is for it"
                found.append(Probe(forth, sent, None if denied else sent, says))
            return found

        return probes(True), probes(False)

    @classmethod
    def denial(cls, function: str) -> Denial | None:
        parts = cls._parts_of(function)
        return None if parts.deny_percent == 100 else Denial(parts.deny_percent, parts.rules, _TEXT)

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:
        return Program.find(session).directories

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002 - as ``Function``
        """Returns the version of Suricata. Raises Unsupported without it, or if it is older than 7."""
        program = Program.find(session)
        try:
            shown = session.spawner.run([*program.argv, "-V"], timeout_s=_PROBE_S, check=False)
        except NotStarted as error:
            raise Unsupported(f"{program.path} cannot be used as suricata: {error}") from None
        match = _VERSION.search(shown.stdout)
        if match is None:
            words = (shown.stderr or shown.stdout).strip().splitlines()
            said = f" (it says: {words[-1][:160]})" if words else ""
            raise Unsupported(f"{program.path} is not Suricata{said}: name one with --icbench-binary suricata=PATH")
        if int(match[2]) < _LEAST_MAJOR:
            raise Unsupported(f"{program.path} is Suricata {match[1]}, which is too old: {_REMEDY}")
        return FunctionFacts(self.name, f"Suricata {match[1]}")

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts Suricata in the node and waits until its engine runs. Raises ProvisionError with its own words."""
        node, inner, outer = spec.with_ports()
        if not isinstance(inner, Veth) or not isinstance(outer, Veth):
            raise ProvisionError(f"function {spec.function} needs kernel interfaces")
        self._spec = spec
        # It gives frames out as they came in, with the checksum that a sender's kernel has left to its device.
        offloads.apply(session, spec.sides, {"checksum": "false"})
        directory = Path(node.spec.sockets[0]) / f"function{spec.pair}-{spec.hop}"
        directory.mkdir()
        self._socket = directory / "control"
        settings = configuration(inner.interface, outer.interface)
        rule_text = rules(self._parts_of(spec.function)) + str(spec.config.get("rules", ""))
        (directory / "suricata.yaml").write_text(settings, encoding="utf-8")
        (directory / "suricata.rules").write_text(rule_text, encoding="utf-8")
        further = [word for item in spec.config.get("settings", ()) for word in ("--set", item)]
        argv = [
            *Program.find(session).argv,
            *("-c", str(directory / "suricata.yaml"), "-S", str(directory / "suricata.rules"), "-l", str(directory)),
            *("--af-packet", "--init-errors-fatal", "--set", f"unix-command.filename={self._socket}", *further),
        ]
        process = node.spawn(argv, cpus=[spec.cpu], log=spec.work_dir / f"function{spec.pair}-{spec.hop}.log")
        self._daemon = daemon = Daemon(spec.label, process)
        log = directory / "suricata.log"
        daemon.wait_until(
            lambda: log.exists() and _STARTED in log.read_text(encoding="utf-8", errors="replace"),
            failure="has not started its engine",
            timeout_s=_START_S,
        )
        self._unseen = self._arrived()
        config: dict[str, Any] = {"yaml": settings, "rules": rule_text, "settings": further[1::2]}
        self._facts = FunctionFacts(self.name, self.probe(session, spec.function).version, config)

    def facts(self) -> FunctionFacts:
        return self._facts

    def _live(self) -> tuple[FunctionSpec, Daemon]:
        if self._daemon is None or self._spec is None:
            raise ProvisionError("the function was not started")
        return self._spec, self._daemon

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
        self._live()[1].check()

    def counters(self) -> FunctionCounters:
        """Returns what its interfaces carried and what it blocked, once it has counted all frames that arrived."""
        spec, _ = self._live()
        netns, inner, outer = self._interfaces()
        due = self._arrived() - self._unseen
        deadline = time.monotonic() + _SETTLED_S
        while (shown := self._counted())["seen"] < due and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return FunctionCounters(
            spec.pair,
            taken=links.statistics(inner, netns)["rx_packets"],
            given=links.statistics(outer, netns)["tx_packets"],
            taken_back=links.statistics(outer, netns)["rx_packets"],
            denied=shown["blocked"],
            hop=spec.hop,
            overrun=shown["dropped"],
        )

    def _counted(self) -> dict[str, int]:
        """Returns the frames that it has seen, lost ones among them, and those that it blocked; 0 until it tells."""
        spec, daemon = self._live()
        daemon.check()
        try:
            answer = ask(self._socket, "dump-counters")
        except (OSError, ValueError) as error:
            raise ProvisionError(f"{spec.label} does not tell its counters: {error}{daemon.evidence()}") from None
        told = answer["message"]
        if not isinstance(told, dict):  # it says in words that they are not added up yet
            return {"seen": 0, "blocked": 0, "dropped": 0}
        seen = told["decoder"]["pkts"] + told["capture"]["kernel_drops"]
        return {"seen": seen, "blocked": told["ips"]["blocked"], "dropped": told["capture"]["kernel_drops"]}

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()


def ask(path: Path, command: str) -> dict[str, Any]:
    """Returns the answer to a command of Suricata's control socket. Raises OSError; ValueError if it is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_S)
        connection.connect(str(path))
        with connection.makefile("rwb") as stream:
            for request in ({"version": _PROTOCOL}, {"command": command}):
                stream.write(json.dumps(request).encode() + b"\n")
                stream.flush()
                answer: dict[str, Any] = json.loads(stream.readline())
    return answer
