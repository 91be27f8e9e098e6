# SPDX-License-Identifier: BSD-3-Clause
"""Suricata as a process: its program, its files, its control socket."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pytest_icbench.driver.function.grammar import Parts
from pytest_icbench.driver.function.protocol import FunctionSpec
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.dpdk.dpdk_process import find_binary, query_version
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.session import HostSession

#: As ``--icbench-binary`` has it.
NAME = "suricata"
#: What the rules look for, a rule's place behind it.
TEXT = "icbench rule "
_LEAST_MAJOR = 7
_REMEDY = (
    "install Debian 13's package suricata (on Debian 12, unpack it with its libraries into a directory of its own)"
)
_START_S, _ANSWER_S = 60.0, 5.0
#: Its threads add up their counters every 3 s, and its socket shows the sum once a second.
_SETTLED_S, _POLL_S = 10.0, 0.05
_STARTED = "Engine started"
#: The protocol of its control socket.
_PROTOCOL = "0.2"


def rule_text(place: int) -> str:
    """Returns what a rule looks for in the payload; none is part of another."""
    return f"{TEXT}{place:05d}"


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
        """Returns the user's, or that on PATH. Raises Unsupported with the remedy."""
        return cls.at(find_binary(session, NAME, None, ["suricata"], _REMEDY))

    @classmethod
    def version(cls, session: HostSession) -> str:
        """Returns its name and version. Raises Unsupported without it, or if it is older than 7."""
        program = cls.find(session)
        match = query_version(session, NAME, program.path, [*program.argv, "-V"], r"Suricata version ((\d+)\.\S+)")
        if int(match[2]) < _LEAST_MAJOR:
            raise Unsupported(f"{program.path} is Suricata {match[1]}, which is too old: {_REMEDY}")
        return f"Suricata {match[1]}"


def configuration(capture: Mapping[str, Any]) -> str:
    """Returns ``suricata.yaml``, with nothing of the host's in it. Pure.

    JSON is YAML.

    Args:
        capture: the settings with which it gets frames.
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
    """Returns the rules: those that deny drop what they find, the others alert. Pure."""
    lines = (
        f"{'drop' if parts.denies(place) else 'alert'} udp any any -> any any"
        f' (msg:"rule {place}"; content:"{rule_text(place)}"; sid:{place + 1};)'
        for place in range(parts.rules)
    )
    return "".join(f"{line}\n" for line in lines)


class Engine:
    """Suricata in a function's node.

    Args:
        capture: the settings with which it gets frames.
        how: the options that name this way.
        rule_text: its rules, without the user's.
    """

    def __init__(
        self, session: HostSession, spec: FunctionSpec, capture: Mapping[str, Any], how: Sequence[str], rule_text: str
    ) -> None:
        node, _, _ = spec.with_ports()
        self._spec = spec
        directory = spec.directory
        directory.mkdir()
        self._socket = directory / "control"
        settings, rule_text = configuration(capture), rule_text + str(spec.config.get("rules", ""))
        (directory / "suricata.yaml").write_text(settings, encoding="utf-8")
        (directory / "suricata.rules").write_text(rule_text, encoding="utf-8")
        further = [word for item in spec.config.get("settings", ()) for word in ("--set", item)]
        argv = [
            *("env", f"RUNTIME_DIRECTORY={directory}"),  # EAL's, where it is used
            *Program.find(session).argv,
            *("-c", str(directory / "suricata.yaml"), "-S", str(directory / "suricata.rules"), "-l", str(directory)),
            *(*how, "--init-errors-fatal", "--set", f"unix-command.filename={self._socket}", *further),
        ]
        self.daemon = Daemon(spec.label, node.spawn(argv, cpus=[spec.cpu], log=spec.log))
        self.config: dict[str, Any] = {"yaml": settings, "rules": rule_text, "settings": further[1::2]}
        self._log = directory / "suricata.log"

    def await_started(self) -> None:
        """Waits until its engine runs. Raises ProvisionError with its own words."""
        log = self._log
        self.daemon.wait_until(
            lambda: log.exists() and _STARTED in log.read_text(encoding="utf-8", errors="replace"),
            failure="has not started its engine",
            timeout_s=_START_S,
        )

    def settled(self, due: Callable[[], int]) -> dict[str, int]:
        """Returns ``counted`` once it has seen so many frames, or a few seconds later."""
        frames, deadline = due(), time.monotonic() + _SETTLED_S
        while (shown := self.counted())["seen"] < frames and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return shown

    def counted(self) -> dict[str, int]:
        """Returns the frames that it has seen, lost ones among them, and those that it blocked; 0 until it tells."""
        self.daemon.check()
        try:
            answer = query_socket(self._socket, "dump-counters")
        except (OSError, ValueError) as error:
            raise ProvisionError(
                f"{self._spec.label} does not tell its counters: {error}{self.daemon.evidence()}"
            ) from None
        told = answer["message"]
        if not isinstance(told, dict):  # it says in words that they are not added up yet
            return {"seen": 0, "blocked": 0, "dropped": 0}
        dropped = told.get("capture", {}).get("kernel_drops", 0)
        return {"seen": told["decoder"]["pkts"] + dropped, "blocked": told["ips"]["blocked"], "dropped": dropped}


def query_socket(path: Path, command: str) -> dict[str, Any]:
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
