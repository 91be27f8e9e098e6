# SPDX-License-Identifier: BSD-3-Clause
"""A host that starts nothing and records what it was asked to start, for tests of the order of commands."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_icbench.driver.node.protocol import NodeFacts
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.process import HERE, ProcessPlace
from pytest_icbench.model.endpoint import Address

#: Paths of sockets in a command line, by what precedes them.
_SOCKETS = re.compile(r"(?:iface=|socket=|punix:)([^,\s]+)")


@dataclass
class FakeProcess:
    """A process as drivers see it."""

    argv: Sequence[str]
    log: Path
    pid: int = 4711
    code: int | None = None
    signals: list[int] = field(default_factory=list)
    stopped: int = 0
    is_stopped: bool = False
    stdin: None = None
    stdout: None = None

    def poll(self) -> int | None:
        return self.code

    def signal(self, number: int) -> None:
        self.signals.append(number)

    def stop(self, *, term_s: float = 2.0) -> int | None:
        self.stopped += 1
        self.code = 0
        return self.code

    def wait(self, timeout_s: float) -> int:
        if self.code is None:
            raise ProvisionError("it has not ended")
        return self.code

    def tail(self, lines: int = 15) -> str:
        return "last words"


@dataclass(frozen=True)
class Started:
    """A process that a driver has asked for."""

    argv: list[str]
    cpus: list[int] | None
    netns: str | None
    env: dict[str, str]
    pipes: bool
    mount_ns: bool = False


Answer = Callable[[list[str], str | None], str]


class RecordingSpawner:
    """Opens the sockets that a command line names, and answers short commands from ``answer``."""

    def __init__(self, answer: Answer) -> None:
        self.started: list[Started] = []
        self.processes: list[FakeProcess] = []
        self.ran: list[list[str]] = []
        self.inputs: list[str | None] = []
        self.serves = True
        self._answer = answer
        self._sockets: list[socket.socket] = []

    def start(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        cpus: Sequence[int] | None = None,
        place: ProcessPlace = HERE,
        env: Mapping[str, str] | None = None,
        pipes: bool = False,
    ) -> FakeProcess:
        words = [str(word) for word in argv]
        cpu_list = None if cpus is None else list(cpus)
        self.started.append(Started(words, cpu_list, place.netns, dict(env or {}), pipes, place.mount_ns))
        for path in _SOCKETS.findall(" ".join(words)) if self.serves else ():
            server = socket.socket(socket.AF_UNIX)
            server.bind(path)
            server.listen()
            self._sockets.append(server)
        process = FakeProcess(words, log)
        self.processes.append(process)
        return process

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        check: bool = True,
        netns: str | None = None,
        input: str | None = None,  # noqa: A002 - the name that is called with
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in argv]
        self.ran.append(words)
        self.inputs.append(input)
        said = self._answer(words, input)
        if said.startswith("error:") and check:
            raise ProvisionError(said)
        return subprocess.CompletedProcess(words, 0, said, "")

    def close(self) -> None:
        for server in self._sockets:
            server.close()


class RecordingSession:
    """The part of a HostSession that drivers use."""

    def __init__(self, directory: Path, answer: Answer = lambda words, text: "") -> None:
        self.dir = directory
        self.hugepage_size_kib = 2048
        self.binaries: dict[str, Path] = {}
        self.spawner = RecordingSpawner(answer)
        self.root = self
        self.progress: Callable[[str], None] = lambda _: None

    def list(self, path: str) -> list[str]:
        return ["node0", "node1", "online", "possible"]

    def read(self, path: str) -> str | None:
        return "Hugepagesize:       2048 kB" if path == "/proc/meminfo" else None

    def name(self, suffix: str) -> str:
        return f"icbtest01-{suffix}"


def spec_of(directory: Path, **changes: Any) -> SwitchSpec:
    """Returns a specification with one worker on CPU 2 and service on CPUs 0 and 1."""
    values: dict[str, Any] = {
        "name": "r1",
        "port": "vhost-user",
        "worker_cpus": (2,),
        "service_cpus": (0, 1),
        "mtu": 1500,
        "work_dir": directory,
        "endpoint_cpus": (3, 4),
    }
    return SwitchSpec(**{**values, **changes})


def attachments_of(directory: Path, pairs: int = 1) -> list[Attachment]:
    """Returns attachments of some pairs, whose sockets go to ``directory/s``."""
    sockets = directory / "s"
    sockets.mkdir(exist_ok=True)
    found = []
    for index in range(2 * pairs):
        pair, side = index // 2 + 1, index % 2
        address = Address.of(pair, "b" if side else "a")
        node = NodeFacts(f"n{index}", 1000 + index)
        found.append(Attachment(index, pair, "b" if side else "a", address, node, sockets))
    return found


def program(directory: Path, name: str) -> Path:
    """Makes an executable file."""
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path
