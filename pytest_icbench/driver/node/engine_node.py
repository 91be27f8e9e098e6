# SPDX-License-Identifier: BSD-3-Clause
"""Containers made by the command line of an engine, Podman or Docker; both take the same options.

The container's init is the workload's ``pause``. The measuring processes enter its namespaces.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pytest_icbench.driver.node.cgroups import end_groups
from pytest_icbench.driver.node.container import (
    ContainerNode,
    Device,
    HostAccess,
    Skeleton,
    container_environment,
    format_page_size,
)
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.journal import process_start_time
from pytest_icbench.host.process import SESSION_VARIABLE, run
from pytest_icbench.host.root import format_cpu_list

#: The time in seconds that a call of an engine may take.
TIMEOUT_S = 30.0
#: The time in seconds that a started container's init may take until it executes its program.
_EXECUTES_S = 5.0


class Answer(NamedTuple):
    """The result of a call: exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The last line of its error message."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1].removeprefix("Error: ") if lines else f"exit code {self.code}"


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine.

    Attributes:
        program: its program.
        options: the options of every call.
        env: variables in addition to this process' environment.
    """

    program: str
    options: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> Answer:
        """Runs a command, whatever its exit code. Raises ProvisionError if it cannot be started or hangs."""
        words = [self.program, *self.options, *arguments]
        try:
            done = run(words, timeout_s=TIMEOUT_S, check=False, env=self.env)
        except ProvisionError as error:
            raise ProvisionError(str(error).replace(" ".join(words), f"{self.program} {arguments[0]}")) from None
        return Answer(done.returncode, done.stdout, done.stderr)

    def call(self, *arguments: str) -> str:
        """Runs a command and returns its output. Raises ProvisionError with its error message."""
        done = self.run(*arguments)
        if done.code != 0:
            raise ProvisionError(f"{self.program} {arguments[0]} failed: {done.complaint}")
        return done.out.strip()


def container_options(
    spec: NodeSpec,
    *,
    env: Mapping[str, str],
    binds: Mapping[Path, Path],
    devices: Sequence[Device],
    bounds: Mapping[str, tuple[str, str]],
) -> Iterator[str]:
    """Yields the options of ``create``, without the container's root file system.

    Args:
        binds: directories of the host that are bound for reading, by their paths there.
        devices: the device nodes of ``spec``.
        bounds: its bounds (``SessionGroup.bounds``).
    """
    yield from ("--name", spec.name, "--hostname", spec.hostname or spec.name)
    yield from ("--network", "none", "--ipc", "none", "--userns", "host")
    yield from ("--cpuset-cpus", format_cpu_list(spec.cpus), "--log-driver", "none")
    for option, controller in (("--pids-limit", "pids"), ("--memory", "memory")):
        if controller in bounds:
            yield from (option, bounds[controller][1])
    # The init only waits: it needs no capability and few files. Processes that enter keep pytest's limits and the
    # node's capabilities. Without these options engines raise the limits, which takes CAP_SYS_RESOURCE.
    yield from ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
    for limit in ("seccomp=unconfined", "apparmor=unconfined", "label=disable"):
        yield from ("--security-opt", limit)
    yield from ("--cap-drop", "all")
    for name, value in env.items():
        yield from ("--env", f"{name}={value}")
    yield from ("--read-only", "--tmpfs", "/run:rw,mode=755,size=16m", "--tmpfs", "/tmp:rw,mode=1777,size=64m")
    for path, source in binds.items():
        yield from ("--volume", f"{source}:{path}:ro")
    for path in spec.sockets:
        yield from ("--volume", f"{path}:{path}:rw")
    for device in devices:
        yield from ("--device", f"{device.path}:{device.path}:rw")


class EngineNode(ContainerNode):
    """A node in a container of an engine, see ``node.protocol.Node``. Each kind provides the engine and the files.

    Attributes:
        id: the engine's id of the container; empty before it is created.
    """

    id = ""

    @abstractmethod
    def engine(self) -> Engine:
        """Returns the engine. Raises ProvisionError if it is gone."""

    @abstractmethod
    def files(self, skeleton: Skeleton) -> Sequence[str]:
        """Returns the last options of ``create``: the container's root file system and its parent group.

        Raises ProvisionError.
        """

    @property
    def layout(self) -> Layout:
        """The control groups as the engine's runtime joins them."""
        return self.group.layout.joined()

    def create(self, access: HostAccess, command: Sequence[str]) -> tuple[int, int]:
        """Raises ProvisionError with the engine's words."""
        spec, engine, env = self.spec, self.engine(), container_environment(self.session.id)
        try:
            binds = {**access.skeleton.binds, **{path: path for path in spec.directories}}
            options = container_options(spec, env=env, binds=binds, devices=access.devices, bounds=self.group.bounds)
            self.id = engine.call("create", *options, *self.files(access.skeleton), *command)
            prepared_ns = time.perf_counter_ns()
            engine.call("start", spec.name)
            init = int(engine.call("inspect", "--format", "{{.State.Pid}}", spec.name))
        except (ProvisionError, ValueError) as error:
            raise ProvisionError(f"container {spec.name}: {error}") from None
        self._place(init, access.barred_pages_kib)
        return init, prepared_ns

    def _place(self, init: int, barred_kib: Sequence[int]) -> None:
        """Records the container's groups. Raises ProvisionError if its init is not a process of this host."""
        root, name = self.session.root, self.spec.name
        if not self._runs_here(init):
            raise ProvisionError(f"container {name} has ended at once, or {self.kind} does not run it on this host")
        layout = self.layout
        groups = dict(layout.groups_of(root, init))
        leading = layout.freezing() or layout.holding("cpuset")
        if leading in groups:
            self.group.place(name, os.path.relpath(groups[leading], leading.base or "/"))
        pages = layout.holding("hugetlb")
        if pages in groups:  # engines have no option for it
            limit = "max" if pages.unified else "limit_in_bytes"
            for kib in barred_kib:
                path = root.path(f"{pages.mount}{groups[pages]}/hugetlb.{format_page_size(kib)}.{limit}")
                try:
                    path.write_text("0", encoding="ascii")
                except OSError as error:
                    raise ProvisionError(f"huge pages cannot be barred by {path}: {error.strerror}") from None

    def _runs_here(self, init: int) -> bool:
        """Whether the init runs on this host and has executed its program. Waits for the latter."""
        mark, deadline = f"{SESSION_VARIABLE}={self.session.id}", time.monotonic() + _EXECUTES_S
        while init > 0 and process_start_time(init) is not None and time.monotonic() < deadline:
            if mark in (self.session.root.read(f"/proc/{init}/environ") or "").split("\0"):
                return True
            time.sleep(0.001)
        return False

    def end(self) -> None:
        self.remove()
        layout, root, group = self.layout, self.session.root, self.group.member(self.spec.name)
        end_groups(layout, root, [group])

    @abstractmethod
    def remove(self) -> None:
        """Makes the engine end and remove the container in any state. Raises ProvisionError if it fails."""
