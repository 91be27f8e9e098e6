# SPDX-License-Identifier: BSD-3-Clause
"""Where a workload runs: what an LXC container and a bare network namespace have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pytest_icbench.host.process import Process

if TYPE_CHECKING:
    from pytest_icbench.host.findings import Finding
    from pytest_icbench.host.session import HostSession


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What a node gets, and nothing else.

    Attributes:
        name: unique on the host, carries the session (``icb<session>-…``), at most 32 characters.
        cpus: CPUs its processes may use.
        sockets: host directories bound into the node at the same path (vhost-user, memif).
        devices: device nodes it may use (``/dev/vfio/12``).
        hugepages: whether its processes map huge pages.
        capabilities: of root's, beyond those that every node keeps, as ``sys_admin``.
        hostname: what it calls itself, where the kind of node has a name of its own; None: ``name``.
    """

    name: str
    cpus: Sequence[int]
    sockets: Sequence[Path] = ()
    devices: Sequence[Path] = ()
    hugepages: bool = False
    capabilities: Sequence[str] = ()
    hostname: str | None = None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A started node as others see it: the init's pid stands for its namespaces.

    A link is moved in by ``netns``; a process is started inside by ``Node.spawn``.
    """

    name: str
    init_pid: int
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def netns(self) -> str:
        """Path that setns() and pyroute2 take."""
        return f"/proc/{self.init_pid}/ns/net"


class Node(Protocol):
    """Life of a node: start, spawn any number of processes, stop. Calls are bounded in time, ``stop`` is idempotent.

    Attributes:
        kind: what ``--icbench-node`` calls nodes of this class.
    """

    kind: ClassVar[str]
    spec: NodeSpec

    def __init__(self, session: HostSession, spec: NodeSpec) -> None: ...

    @staticmethod
    def probe(session: HostSession, /) -> None:
        """Changes nothing. Raises Unsupported with the reason and the remedy where no such node can be started."""

    @staticmethod
    def findings() -> Iterable[Finding]:
        """What ``icbench doctor`` says of this kind: programs and libraries that it takes."""

    @staticmethod
    def treatment() -> Mapping[str, Any]:
        """What results keep of this kind, beside its name: versions."""

    def start(self) -> NodeFacts:
        """Starts the node. Raises ProvisionError with the tail of its log."""

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        """Starts a process inside, pinned to ``cpus`` (a subset of the node's).

        Its standard input and output are pipes, its standard error is appended to ``log``.
        """

    def pause(self) -> None:
        """Freezes every process of the node."""

    def resume(self) -> None: ...

    def stop(self) -> None:
        """Ends every process and removes the node, its cgroups included."""
