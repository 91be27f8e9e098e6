# SPDX-License-Identifier: BSD-3-Clause
"""Suricata's program, files, process and control socket."""

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
from pytest_icbench.host.answers import read_answer
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.node_files import read_file, write_file

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

    Args:
        capture: the settings for receiving frames.
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
