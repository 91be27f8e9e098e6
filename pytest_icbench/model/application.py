# SPDX-License-Identifier: BSD-3-Clause
"""The load of an application on a case, as users name it, and what one launch of it counted. Frozen, pure.

A load is ``NAME[:MODE][:cN][:NB][:rN]``: the application, its way to ask, its connections (or streams), the bytes of a
message, and the requests per second of an open loop: ``redis``, ``redis:set:c16``, ``nginx:1024B``, ``tcp_rr:r5000``.
What is left out is the application's natural choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from pytest_icbench.errors import UsageError
from pytest_icbench.wording import suggestion

#: What an application moves: answered requests, or a stream, of which an operation is a megabit of payload.
Unit = Literal["requests", "megabits"]

#: The metric of an application's rate: its client asks again when it has its answer, so the path sets the pace; or it
#: asks at a rate of its own.
CLOSED_LOOP, OPEN_LOOP = "closed-loop", "open-loop"

_NAME = re.compile(r"[a-z]\w*")
_CONNECTIONS = re.compile(r"c(\d{1,6})")
_BYTES = re.compile(r"(\d{1,9})B")
_RATE = re.compile(r"r(\d{1,7})")


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number that a load can choose: its natural value, the least and the greatest."""

    natural: int
    least: int
    most: int


class ApplicationTraits(Protocol):
    """The traits of an application's class by which a load is checked.

    Attributes:
        modes: its ways to ask, the natural one first; empty for a single one.
        connections, message_bytes, rate: None where it offers no choice.
    """

    @property
    def name(self) -> str: ...
    @property
    def modes(self) -> tuple[str, ...]: ...
    @property
    def connections(self) -> Bounds | None: ...
    @property
    def message_bytes(self) -> Bounds | None: ...
    @property
    def rate(self) -> Bounds | None: ...


@dataclass(frozen=True, slots=True)
class ApplicationLoad:
    """A load with every choice made; a number is 0 where there is none. ``rate``: requests per second of a pair."""

    name: str
    mode: str = ""
    connections: int = 0
    message_bytes: int = 0
    rate: int = 0


def load_of(text: str, known: Mapping[str, ApplicationTraits], where: str) -> ApplicationLoad:
    """Returns the load that a text names. ``known``: the applications by name.

    Raises UsageError: an application, or a part, that there is not.
    """
    name, *parts = text.split(":")
    if name not in known:
        raise UsageError(f"{where}: there is no application '{name}'{suggestion(name, tuple(known))}")
    traits = known[name]
    chosen: dict[str, int | str] = {}
    for part in parts:
        key, value = _part(part, traits, f"{where}: {text}")
        if key in chosen:
            raise UsageError(f"{where}: {text}: '{part}' is the second choice of its kind; give one")
        chosen[key] = value
    return ApplicationLoad(
        name,
        str(chosen.get("mode", traits.modes[0] if traits.modes else "")),
        int(chosen.get("connections", traits.connections.natural if traits.connections else 0)),
        int(chosen.get("message_bytes", traits.message_bytes.natural if traits.message_bytes else 0)),
        int(chosen.get("rate", traits.rate.natural if traits.rate else 0)),
    )


def label_of(load: ApplicationLoad, traits: ApplicationTraits) -> str:
    """Returns the text of a load without its natural choices; ``load_of`` is the inverse."""
    parts = [load.name]
    if traits.modes and load.mode != traits.modes[0]:
        parts.append(load.mode)
    if traits.connections is not None and load.connections != traits.connections.natural:
        parts.append(f"c{load.connections}")
    if traits.message_bytes is not None and load.message_bytes != traits.message_bytes.natural:
        parts.append(f"{load.message_bytes}B")
    if traits.rate is not None and load.rate != traits.rate.natural:
        parts.append(f"r{load.rate}")
    return ":".join(parts)


def _part(part: str, traits: ApplicationTraits, where: str) -> tuple[str, int | str]:
    if part in traits.modes:
        return "mode", part
    for key, pattern, bounds, noun in (
        ("connections", _CONNECTIONS, traits.connections, "connections"),
        ("message_bytes", _BYTES, traits.message_bytes, "bytes"),
        ("rate", _RATE, traits.rate, "requests per second"),
    ):
        match = pattern.fullmatch(part)
        if match is None:
            continue
        if bounds is None:
            raise UsageError(f"{where}: {traits.name} has no choice of {noun}; leave '{part}' out")
        number = int(match[1])
        if not bounds.least <= number <= bounds.most:
            raise UsageError(f"{where}: {traits.name} takes {bounds.least} to {bounds.most} {noun}, not {number}")
        return key, number
    raise UsageError(f"{where}: {traits.name} does not take '{part}'; {choices(traits)}")


def choices(traits: ApplicationTraits) -> str:
    """Returns what can follow an application's name: ``it takes get, set, c1 to c512``."""
    parts = list(traits.modes)
    if traits.connections is not None:
        parts.append(f"c{traits.connections.least} to c{traits.connections.most}")
    if traits.message_bytes is not None:
        parts.append(f"{traits.message_bytes.least}B to {traits.message_bytes.most}B")
    if traits.rate is not None:
        parts.append(f"r{traits.rate.least} to r{traits.rate.most}")
    return f"it takes {', '.join(parts)}" if parts else "it takes nothing more"


def is_load(text: str) -> bool:
    """Whether a text can be a load, whatever the applications are."""
    name, *parts = text.split(":")
    return _NAME.fullmatch(name) is not None and all(re.fullmatch(r"[\w.]+", part) for part in parts)


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """What a client counted and timed in one run, by itself.

    Attributes:
        operations: answered requests, or megabits received.
        seconds: the time that it took for them.
        errors: requests without a good answer; None where the client does not say.
        payload_bytes: bytes of payload received at the far end (a stream), or in all answers; None if not known.
        mean_ns, …, max_ns: response times; None where the client has none, or too few to tell. In an open loop they
            begin when a request was intended, and requests without an answer count as slower than any percentile.
        retransmits: TCP segments sent again; None where the client does not say.
        unanswered: requests of an open loop that were due and have no answer.
        cpu_ns: CPU time that the client itself counted, without its start; None where it counts none.
    """

    operations: float
    seconds: float
    errors: int | None = None
    payload_bytes: int | None = None
    mean_ns: float | None = None
    p50_ns: float | None = None
    p90_ns: float | None = None
    p99_ns: float | None = None
    max_ns: float | None = None
    retransmits: int | None = None
    p99_9_ns: float | None = None
    unanswered: int = 0
    cpu_ns: int | None = None

    @property
    def operations_per_second(self) -> float:
        return self.operations / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ApplicationRun:
    """One pair of one launch.

    Attributes:
        unit: what an operation is.
        client: the client's own figures.
        server_operations: what the server counted for the same run, in the client's unit; None where it does not count.
        client_cpu_ns, server_cpu_ns: CPU time of the processes over the run. It has the soft interrupts that ran in
            their time, unless the kernel counts these apart.
        received_bytes, received_frames: what the interface at the far end of the payload counted.
        proofs: what was checked, in words.
        open_loop: whether the client asked at a rate of its own, whatever the server did.
    """

    pair: int
    unit: Unit
    client: ClientFigures
    server_operations: float | None = None
    client_cpu_ns: int | None = None
    server_cpu_ns: int | None = None
    received_bytes: int | None = None
    received_frames: int | None = None
    proofs: tuple[str, ...] = ()
    open_loop: bool = False


@dataclass(frozen=True, slots=True)
class ApplicationLaunch:
    """One launch of an application over all pairs.

    Attributes:
        softirq_ns: time of soft interrupts on the endpoints' CPUs over the run, in ticks; None where it is not known.
        seconds: length of the run by the harness' clock, for shares of CPUs.
    """

    runs: tuple[ApplicationRun, ...]
    seconds: float
    softirq_ns: int | None = None

    @property
    def operations(self) -> float:
        return sum(run.client.operations for run in self.runs)

    @property
    def operations_per_second(self) -> float:
        """The total over pairs."""
        return sum(run.client.operations_per_second for run in self.runs)

    def cpu_ns_per_operation(self, side: Literal["client", "server"]) -> float | None:
        """Returns the CPU time of the clients, or of the servers, for one operation."""
        times = [run.client_cpu_ns if side == "client" else run.server_cpu_ns for run in self.runs]
        if not self.operations or not times or None in times:
            return None
        return sum(time for time in times if time is not None) / self.operations

    def slowest(self, name: str) -> float | None:
        """Returns the greatest of the clients' times of this name (``p99_ns``); None unless all have it."""
        times: list[float | None] = [getattr(run.client, name) for run in self.runs]
        known = [time for time in times if time is not None]
        return max(known) if known and len(known) == len(times) else None


def of_application(launch: ApplicationLaunch, name: str) -> float | None:
    """Returns a launch's figure by its name in a measurement; None if it has none of that name."""
    if name == "operations_per_second":
        return launch.operations_per_second
    if name.startswith("response_"):
        return launch.slowest(name.removeprefix("response_"))
    if name in ("client_cpu_ns_per_operation", "server_cpu_ns_per_operation"):
        return launch.cpu_ns_per_operation("client" if name.startswith("client") else "server")
    if name == "softirq_ns_per_operation" and launch.softirq_ns is not None and launch.operations:
        return launch.softirq_ns / launch.operations
    return None
