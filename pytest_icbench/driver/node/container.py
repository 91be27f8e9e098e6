# SPDX-License-Identifier: BSD-3-Clause
"""The life of a node in a container, whatever makes it: its start, its processes, its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.node.confinement import NUMBERS, Device, environment, kept
from pytest_icbench.driver.node.protocol import NodeFacts, NodeSpec
from pytest_icbench.driver.node.rootfs import Skeleton, mount_point, skeleton
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.host.journal import process_start_time
from pytest_icbench.host.nsenter import Bounds, can_enter, start_within
from pytest_icbench.host.process import Process
from pytest_icbench.host.session import HostSession

#: The containers of this process that have not been stopped, by name.
_started: dict[str, ContainerNode] = {}


class ContainerNode:
    """A node in a container, see ``node.protocol.Node``. Each kind says how one is made, entered and ended."""

    kind: ClassVar[str]
    #: Whether ``NodeSpec.image`` is where its programs and libraries come from.
    takes_image: ClassVar[bool] = True

    def __init__(self, session: HostSession, spec: NodeSpec) -> None:
        self.spec = spec
        self.session = session
        self.path = session.dir / self.kind
        self.log = self.path / f"{spec.name}.log"
        self._entry: int | None = None
        self._init = 0
        self._processes: list[Process] = []
        self._paused = False

    def record(self) -> int:
        """Writes into the journal, before it is made, how the container is undone; returns the entry."""
        raise NotImplementedError

    def create(self, frame: Skeleton, devices: Sequence[Device], command: Sequence[str]) -> tuple[int, int]:
        """Makes the container; returns its init's pid, and when that began to start (``time.perf_counter_ns``).

        Raises ProvisionError.
        """
        raise NotImplementedError

    def attach(self, argv: Sequence[str], cpus: Sequence[int], log: Path) -> Process:
        """Starts a process inside: as a child of this one, in the init's namespaces. Raises ProvisionError."""
        root = self.session.root
        bounds = Bounds(
            cpus,
            environment(self.session.id),
            [root.path(hierarchy.mount + path) for hierarchy, path in self.layout.groups_of(root, self._init)],
            [NUMBERS[name] for name in kept(self.spec)],
        )
        return start_within(self._init, argv, bounds, log=log)

    def end(self) -> None:
        """Ends the container, whose processes are reaped, and removes it. Raises ProvisionError for what remains."""
        raise NotImplementedError

    def facts(self) -> Mapping[str, str]:
        """Returns the facts beside the kind."""
        raise NotImplementedError

    @property
    def layout(self) -> Layout:
        """The control groups as the container has them."""
        return self.group.layout

    def start(self) -> NodeFacts:
        """Starts the container, whose init then waits.

        Raises ProvisionError with what its maker says, or if the kernel grants other CPUs than requested.
        """
        session, spec = self.session, self.spec
        program = workload_path()
        frame = skeleton(session, program, spec.image)
        for directory in (*spec.sockets, *spec.directories):
            mount_point(frame.path, directory)
        devices = [Device.at(path) for path in spec.devices]
        self.path.mkdir(exist_ok=True)
        self.group = SessionGroup.of(session)
        self._entry = self.record()
        _started[spec.name] = self
        try:
            self._init, prepared_ns = self.create(frame, devices, [str(program), "pause"])
            if spec.cpu is not None:
                self.group.contract(spec.name, spec.cpu)
            self.group.unify_cpu()
            self.group.share_cpu(self._init, spec.name)
            self.group.check_cpus(spec.name, spec.cpus, self.layout)
            if process_start_time(self._init) is None:
                raise ProvisionError(f"container {spec.name} ended")
        except ProvisionError:
            ended = self._init and process_start_time(self._init) is None
            self.stop()
            if ended:  # whatever could not be set of it
                raise ProvisionError(f"container {spec.name} ended at once") from None
            raise
        return NodeFacts(spec.name, self._init, {"kind": self.kind, **self.facts()}, prepared_ns)

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        """Implements ``Node.spawn``. Raises ProvisionError if the node is not running or cannot be entered."""
        if not self._init or self._paused:
            state = "paused" if self._paused else "not running"
            raise ProvisionError(f"{argv[0]} cannot be started in container {self.spec.name}: it is {state}")
        process = self.attach([str(word) for word in argv], cpus, log)
        self._processes.append(process)
        self.group.share_cpu(process.pid, self.spec.name)
        return process

    def pause(self) -> None:
        """Freezes every process within 2 s. Raises ProvisionError, with the node running, if that fails."""
        self.group.freeze(self.spec.name)
        self._paused = True

    def resume(self) -> None:
        """Lets the processes run again. Raises ProvisionError."""
        self.group.thaw(self.spec.name)
        self._paused = False

    def stop(self) -> None:
        """Kills every process and removes the container with its cgroups.

        Raises ProvisionError if a process or a cgroup remains. Then the journal keeps the container.
        """
        if self._entry is None:
            return
        self._init, self._paused = 0, False
        self.group.thaw(self.spec.name)
        self.reap()
        self.end()
        self.group.forget(self.spec.name)
        _started.pop(self.spec.name, None)
        self.session.journal.done(self._entry)
        self._entry = None

    def reap(self) -> None:
        """Kills and reaps the processes that were started inside, without which the container's init cannot end."""
        for process in self._processes:
            process.stop(term_s=0)
        self._processes.clear()


def reap(name: str) -> None:
    """Kills and reaps what this process has started in a container, for the journal's undo."""
    node = _started.pop(name, None)
    if node is not None:
        node.reap()


def finding(topic: str, tell: Callable[[], str], install: str) -> Finding:
    """Returns what the doctor says of a kind of container: what ``tell`` returns, or why it cannot be used."""
    try:
        return Finding(Level.GOOD, topic, tell())
    except (Unsupported, ProvisionError) as error:
        return Finding(Level.NOTE, topic, str(error), install)


def check_host(layout: Layout, what: str) -> None:
    """Raises Unsupported, with reason and remedy, where containers that are entered from outside cannot be had."""
    if os.geteuid() != 0:
        raise Unsupported(f"{what} containers need root: run pytest as root")
    if not can_enter():
        raise Unsupported(f"{what} containers cannot be entered on this kind of machine: use --icbench-node lxc")
    if layout.holding("cpuset") is None:
        raise Unsupported(f"{what} containers need the cgroup controller cpuset: mount it, or use --icbench-node netns")
