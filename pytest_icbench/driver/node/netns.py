# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces as nodes: their own network and CPUs, with files and devices of the host."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.node.protocol import NodeFacts, NodeSpec
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.findings import Finding
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links
from pytest_icbench.host.process import Process, ProcessPlace


class NetnsNode:
    """A node in a network namespace, see ``node.protocol.Node``.

    A holder process keeps the namespace, and every process is pinned by its affinity. Without a freezer in the cgroup
    hierarchy, processes are stopped by SIGSTOP.
    """

    kind: ClassVar[str] = "netns"

    @staticmethod
    def probe(_session: HostSession) -> None:
        """Raises Unsupported without root."""
        if os.geteuid() != 0:
            raise Unsupported("network namespaces need root: run pytest as root")

    @staticmethod
    def findings() -> Iterable[Finding]:
        """Returns none, because only the kernel is needed."""
        return ()

    @staticmethod
    def treatment() -> dict[str, Any]:
        return {}

    def __init__(self, session: HostSession, spec: NodeSpec) -> None:
        self.spec = spec
        self._session = session
        self._holder: Process | None = None
        self._processes: list[Process] = []
        self._netns: str | None = None
        self._paused = False

    def start(self) -> NodeFacts:
        """Creates the namespace and its holder. Raises ProvisionError."""
        session, spec = self._session, self.spec
        for path in (*spec.sockets, *spec.devices):
            if not path.exists():
                raise ProvisionError(f"node {spec.name} needs {path}, which does not exist")
        self._group = SessionGroup.get(session)
        self._netns = self._open()
        try:
            self._group.create(spec.name)
            if spec.cpu is not None:
                self._group.allocate_cpu(spec.name, spec.cpu)
            log = session.logs / f"{spec.name}.log"
            prepared_ns = time.perf_counter_ns()
            self._holder = self._begin([str(workload_path()), "pause"], spec.cpus, log, pipes=False)
        except ProvisionError:
            self.stop()
            raise
        return NodeFacts(spec.name, self._holder.pid, prepared_ns)

    def _open(self) -> str:
        """Creates the namespace. Returns its path."""
        return links.create_netns(self._session, self.spec.name.removeprefix(f"icb{self._session.id}-"))

    def _close(self, netns: str) -> None:
        """Removes the namespace."""
        links.delete_netns(self._session, netns)

    def _begin(self, argv: Sequence[str], cpus: Sequence[int], log: Path, *, pipes: bool) -> Process:
        """Starts a process in the namespace and in the node's cgroups. Raises ProvisionError."""
        place = ProcessPlace(self._netns, join=self._join)
        process = self._session.spawner.start(argv, log=log, cpus=cpus, place=place, pipes=pipes)
        self._processes.append(process)
        return process

    def _join(self, pid: int) -> None:
        self._group.join(self.spec.name, pid)
        self._group.share_cpu(pid, self.spec.name)

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        """Raises ProvisionError if the node is not running."""
        if self._holder is None or self._paused:
            state = "paused" if self._paused else "not running"
            raise ProvisionError(f"{argv[0]} cannot be started in node {self.spec.name}: it is {state}")
        return self._begin(argv, cpus, log, pipes=True)

    def pause(self) -> None:
        """Freezes every process within 2 s. Raises ProvisionError, with the node running, if that fails."""
        if self._group.can_freeze:
            self._group.freeze(self.spec.name)
        else:
            self._signal(signal.SIGSTOP)
        self._paused = True

    def resume(self) -> None:
        """Lets the processes run again. Raises ProvisionError."""
        if self._group.can_freeze:
            self._group.thaw(self.spec.name)
        else:
            self._signal(signal.SIGCONT)
        self._paused = False

    def _signal(self, number: int) -> None:
        for process in self._processes:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    process.signal(number)

    def stop(self) -> None:
        """Kills every process and removes the namespace and its cgroup. Raises ProvisionError if a process remains."""
        if self._netns is None:
            return
        self._paused = False
        self._holder = None
        self._group.kill(self.spec.name)
        for process in self._processes:
            process.stop(term_s=0)
        self._processes.clear()
        self._group.remove(self.spec.name)
        self._close(self._netns)
        self._netns = None
