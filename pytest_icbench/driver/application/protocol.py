# SPDX-License-Identifier: BSD-3-Clause
"""The protocol of an application: a real server, its real client, and the checks of their output. Pure.

An application describes the processes to start and parses their output. It starts nothing itself, and only
``SendRequest`` gives it access to a server.
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
        package: Debian's package.
        version_argv: arguments with which it prints its version.
        version_pattern: regular expression whose first group is the version in that output.
        remedy: how to install it; empty: by its package.
        version_command: another command that prints the version, for a program that cannot.
    """

    name: str
    package: str
    version_argv: tuple[str, ...] = ("--version",)
    version_pattern: str = r"(\d+\.\d+(?:\.\d+)*\S*)"
    remedy: str = ""
    version_command: tuple[str, ...] = ()

    def unreadable(self, wanted: str, output: str) -> ProofFailed:
        """Returns the error for output in which ``wanted`` is missing."""
        line = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")
        ending = f"; its last line is {line[:80]!r}" if line else "; it wrote nothing"
        return ProofFailed(f"the output of {self.name} has no {wanted}{ending}")


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process to start. ``FILES`` in arguments and texts stands for the directory of its files.

    Attributes:
        argv: its command line, with the program's name first.
        files: texts of its files, by name.
    """

    argv: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)


class SendRequest(Protocol):
    """Sends a request over the path, from the client's node, and returns the server's answer (latin-1).

    Raises WorkloadError if the server does not answer in time.
    """

    def __call__(self, question: Question) -> str: ...


class ProofFailed(WorkloadError):
    """A server answers wrongly or speaks another protocol, or output cannot be parsed. The message is one sentence."""


class Application(ABC):
    """A server and its client.

    Attributes:
        name: the name that users type; letters, digits and underscores.
        summary: a description of a few words.
        server, client: the two programs.
        port: the port at which the server listens.
        transport: protocol of that port.
        unit: what an operation is.
        modes, connections, message_bytes, rate: the choices of a load; see ``model.application``.
        open_loop: whether the client sends at a fixed rate, independent of the answers.
        counted: whether the client runs for a number of operations instead of a time; a load can decide it.
        first_operations: operations of a ``counted`` client's first run, which warms up and measures the rate.
        whole_seconds: whether the client accepts only whole seconds.
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
        """Returns a program's name, with its version if known."""
        return f"{program.name} {self.versions.get(program.name, '')}".rstrip()

    @abstractmethod
    def serve(self, address: str) -> ProcessSpec:
        """Returns the server's process, which listens only on ``address`` and stays in the foreground."""

    @abstractmethod
    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        """Returns the process of the client for the server at ``address``.

        Args:
            seconds: its run time, unless it is ``counted``.
            operations: its number of operations, if it is ``counted``.
        """

    @abstractmethod
    def parse(self, output: str, operations: int) -> ClientFigures:
        """Parses the client's standard output. Raises ProofFailed if that fails.

        ``operations``: the number of operations that a ``counted`` client was given.
        """

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        """Checks the server's answers before the load. Returns the checks as text. Raises ProofFailed."""
        return ()

    def expect(self, ask: SendRequest, request: str, wanted: str) -> None:
        """Sends a request of the server's protocol. Raises ProofFailed unless the answer is ``wanted``."""
        answer = ask(Question(self.port, request, length=len(wanted)))
        if answer != wanted:
            raise self.wrong_answer(request.split()[0], answer, wanted)

    def wrong_answer(self, request: str, answer: str | bytes, wanted: str = "") -> ProofFailed:
        """Returns the error for a server's answer to a request, with the wanted answer if there is only one."""
        instead = f", not with {wanted[:40]!r}" if wanted else ""
        return ProofFailed(
            f"the server at port {self.port} answered {request} with {answer[:40]!r}{instead}: it is not"
            f" {self.server.name}, or it is faulty"
        )

    def count_served(self, ask: SendRequest) -> float | None:
        """Requests the server's count of operations since its start; None if it has none. Raises ProofFailed."""
        return None

    def read_server_count(self, output: str) -> float | None:
        """Reads the server's count in its output after its end; None if there is none. Raises ProofFailed."""
        return None

    def read_relayed_count(self, output: str) -> float | None:
        """Reads the server's count in its client's output; None if there is none. Raises ProofFailed."""
        return None

    def tolerance(self, figures: ClientFigures) -> float:
        """Returns the largest difference between the server's and the client's count, in operations."""
        return 0.0


def number(value: object, what: str, program: Program) -> float:
    """Returns a number of a program's output: 0, or 1e-9 to 1e18. Raises ProofFailed for anything else.

    ``value``: a text, or what JSON has.
    """
    try:
        figure = float("nan") if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        figure = float("nan")
    if figure == 0 or 1e-9 <= figure <= 1e18:
        return figure
    shown = repr(value) if not isinstance(value, int) or value.bit_length() < 100 else "a number of many digits"
    raise ProofFailed(f"{program.name} wrote {shown[:40]} for its {what}, which is no number of its kind")


def count(value: object, what: str, program: Program) -> int:
    """Returns a whole number of a program's output, up to 10^18. Raises ProofFailed for anything else."""
    figure = number(value, what, program)
    return int(value) if isinstance(value, str) and value.isdigit() else int(figure)
