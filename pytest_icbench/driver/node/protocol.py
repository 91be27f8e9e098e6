# SPDX-License-Identifier: BSD-3-Clause
"""The protocol of a node, in which a workload runs: an LXC container, a bare network namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pytest_icbench.host.findings import Finding
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import Process
from pytest_icbench.model.cpu_allocation import CpuAllocation
from pytest_icbench.model.endpoint import Address, AttachTarget, Endpoint


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """The resources of a node.

    Attributes:
        name: its name, unique on the host, with the session in it (``icb<session>-…``), at most 32 characters.
        cpus: the CPUs that its processes may use.
        sockets: directories of bounded size that it can write, at the host's path: its own first, for files of its
            processes and sockets (vhost-user, memif), then one that it shares with its peers.
        directories: further host directories that are bound into it at the same path, read-only.
        devices: device nodes that it may use (``/dev/vfio/12``).
        hugepages: whether its processes map huge pages.
        capabilities: root's capabilities in addition to those that every node keeps (``sys_admin``).
        cpu: its share or quota of a CPU; None: its processes are in the control group of all other nodes.
        attached: the target to which it is attached; None: it is created.
        hostname: its host name, if its kind has one; None: ``name``.
        image: root directory of its programs and libraries, for a kind that ``takes_image``; None: this host's.
    """

    name: str
    cpus: Sequence[int]
    sockets: Sequence[Path] = ()
    devices: Sequence[Path] = ()
    directories: Sequence[Path] = ()
    hugepages: bool = False
    capabilities: Sequence[str] = ()
    hostname: str | None = None
    cpu: CpuAllocation | None = None
    attached: AttachTarget | None = None
    image: Path | None = None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts about a started node. The pid of its init identifies its namespaces.

    A link is moved into ``netns``; ``Node.spawn`` starts a process inside.

    Attributes:
        prepared_ns: time of the start of the node's first process (``time.perf_counter_ns``); None if unknown.
        link: a link in ``netns`` that becomes the switch's port itself, because its other end is the node (a tap);
            None: the node takes one end of a pair of links.
        plug: called with the port that the switch has made, its layer 3 MTU in bytes and the addresses of its peers;
            connects the node with it and returns the endpoint as the node's processes see it. None: they see that port.
        untimed: why times of its processes are none, in one sentence; None: they are.
    """

    name: str
    init_pid: int
    prepared_ns: int | None = None
    link: str | None = None
    plug: Callable[[Endpoint, int, Sequence[Address]], Endpoint] | None = None
    untimed: str | None = None

    @property
    def netns(self) -> str:
        """The path of its network namespace, for setns() and pyroute2."""
        return f"/proc/{self.init_pid}/ns/net"


class Node(Protocol):
    """A node in which any number of processes are started. Calls are bounded in time; ``stop`` is idempotent.

    Attributes:
        kind: the name of this class for ``--icbench-node``.
        machine: whether it is a virtual machine: it runs the workload alone, and only some ports lead into it
            (``SwitchTraits.machine_ports``). A kind without this attribute is none.
    """

    kind: ClassVar[str]
    spec: NodeSpec

    def __init__(self, session: HostSession, spec: NodeSpec) -> None: ...

    @staticmethod
    def probe(session: HostSession, /) -> None:
        """Checks that such a node can be started. Changes nothing. Raises Unsupported with reason and remedy."""

    @staticmethod
    def findings() -> Iterable[Finding]:
        """Returns findings for ``icbench doctor`` about programs and libraries that this kind needs."""

    @staticmethod
    def treatment() -> Mapping[str, Any]:
        """Returns the facts that results keep about this kind, such as versions."""

    def start(self) -> NodeFacts:
        """Starts the node. Raises ProvisionError with the tail of its log."""

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        """Starts a process inside, pinned to ``cpus``, a subset of the node's.

        Its standard input and output are pipes, its standard error is appended to ``log``.
        """

    def pause(self) -> None:
        """Freezes every process of the node."""

    def resume(self) -> None:
        """Lets the processes of the node run again."""

    def stop(self) -> None:
        """Ends every process and removes the node with its cgroups."""
