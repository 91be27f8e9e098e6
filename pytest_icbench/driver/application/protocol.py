# SPDX-License-Identifier: BSD-3-Clause
"""The protocol of an application: a real server, its real client, and the checks of what both say. Pure.

An application says what to start and how to read it. It starts nothing itself, and reaches the host in no other way
than by ``Ask``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from pytest_icbench.errors import WorkloadError
from pytest_icbench.model.application import ApplicationLoad, Bounds, ClientFigures, Unit
from pytest_icbench.model.rig import Question


@dataclass(frozen=True, slots=True)
class Program:
    """A program of an application.

    Attributes:
        name: its name on PATH.
        package: Debian's package that has it.
        version_argv: arguments that make it tell its version.
        version_pattern: regular expression whose first group is the version in that output.
        remedy: what to do where it is missing; empty: install the package.
        version_command: another command that tells its version, where it does not do so itself.
    """

    name: str
    package: str
    version_argv: tuple[str, ...] = ("--version",)
    version_pattern: str = r"(\d+\.\d+(?:\.\d+)*\S*)"
    remedy: str = ""
    version_command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process to start. ``FILES`` in arguments and contents stands for the directory with its files.

    Attributes:
        argv: its command line; the program's name comes first.
        files: contents by name.
    """

    argv: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)


class SendRequest(Protocol):
    """Asks a server over the path, from the client's node, and returns its answer (latin-1).

    Raises WorkloadError if the server does not answer in time.
    """

    def __call__(self, question: Question) -> str: ...


class ProofFailed(WorkloadError):
    """A server that speaks another protocol or answers wrongly, or output that cannot be read. One sentence."""


class Application(ABC):
    """A server and its client.

    Attributes:
        name: the name that users type; a word of letters, digits and underscores.
        summary: what it is, in a few words.
        server, client: the two programs.
        port: the port at which the server listens.
        transport: protocol of that port.
        unit: what an operation is.
        modes, connections, message_bytes, rate: the choices of a load; see ``model.application``.
        open_loop: whether the client asks at a rate of its own, whatever the server does.
        counted: whether the client takes a number of operations and not a time; a load may decide it.
        first_operations: what a ``counted`` client asks for in its first run, which warms up and tells how many
            operations fill the time.
        whole_seconds: whether the client takes whole seconds only.
        serves_once: whether the server ends with its client.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    server: ClassVar[Program]
    client: ClassVar[Program]
    port: ClassVar[int]
    transport: ClassVar[str] = "tcp"
    unit: ClassVar[Unit] = "requests"
    modes: ClassVar[tuple[str, ...]] = ()
    connections: ClassVar[Bounds | None] = None
    message_bytes: ClassVar[Bounds | None] = None
    rate: ClassVar[Bounds | None] = None
    open_loop: ClassVar[bool] = False
    counted: bool = False
    first_operations: ClassVar[int] = 2000
    whole_seconds: ClassVar[bool] = True
    serves_once: ClassVar[bool] = False

    def __init__(self, load: ApplicationLoad, versions: Mapping[str, str] | None = None) -> None:
        self.load = load
        self.versions = versions or {}

    def describe_program(self, program: Program) -> str:
        """Returns a program's name with its version, if that is known."""
        return f"{program.name} {self.versions.get(program.name, '')}".rstrip()

    @abstractmethod
    def serve(self, address: str) -> ProcessSpec:
        """Returns the server, which listens on ``address`` alone and stays in the foreground."""

    @abstractmethod
    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        """Returns the client of the server at ``address``.

        Args:
            seconds: how long it asks, unless it is ``counted``.
            operations: how many operations it asks for, if it is ``counted``.
        """

    @abstractmethod
    def parse(self, output: str, operations: int) -> ClientFigures:
        """Returns what the client's standard output says. Raises Wrong if it cannot be read.

        Args:
            operations: what a ``counted`` client was asked for.
        """

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        """Checks that the server answers rightly before the load; returns what was checked, in words. Raises Wrong."""
        return ()

    def expect(self, ask: SendRequest, request: str, wanted: str) -> None:
        """Asks the server in its own words. Raises Wrong unless it answers ``wanted``."""
        answer = ask(Question(self.port, request, length=len(wanted)))
        if answer != wanted:
            raise ProofFailed(
                f"the server at port {self.port} answered {request.split()[0]} with {answer[:40]!r}, not"
                f" {wanted[:40]!r}: it is no {self.server.name}, or answers wrongly"
            )

    def count_served(self, ask: SendRequest) -> float | None:
        """Returns the server's own count of operations since it started; None if it cannot be asked. Raises Wrong."""
        return None

    def read_server_count(self, output: str) -> float | None:
        """Returns the server's count from its output after its end; None if it says none. Raises Wrong."""
        return None

    def read_relayed_count(self, output: str) -> float | None:
        """Returns the server's count as its client has it, from the client's output; None without one. Raises Wrong."""
        return None

    def tolerance(self, figures: ClientFigures) -> float:
        """Returns by how many operations the server's count may differ from the client's."""
        return 0.0


def number(text: str, what: str, program: Program) -> float:
    """Returns a number of a client's output. Raises Wrong."""
    try:
        return float(text)
    except ValueError:
        raise ProofFailed(f"{program.name} wrote {text[:40]!r} for its {what}, which is no number") from None


def unreadable(program: Program, wanted: str, output: str) -> ProofFailed:
    """Returns the error for output in which ``wanted`` is missing."""
    line = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")
    ending = f"; its last line is {line[:80]!r}" if line else "; it wrote nothing"
    return ProofFailed(f"the output of {program.name} has no {wanted}{ending}")
