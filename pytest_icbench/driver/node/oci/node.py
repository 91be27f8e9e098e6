# SPDX-License-Identifier: BSD-3-Clause
"""A node as a container of an OCI runtime: its init is the workload's ``pause``, its processes enter its namespaces.

The runtime makes the container and leaves: there is no daemon, and no process of the runtime stays.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.node.cgroup_layout import Layout
from pytest_icbench.driver.node.cgroups import SessionGroup, kill_groups, remove_groups
from pytest_icbench.driver.node.lxc.rootfs import mount_point, skeleton
from pytest_icbench.driver.node.oci.config import NUMBERS, bundle, kept
from pytest_icbench.driver.node.protocol import NodeFacts, NodeSpec
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import entry_checks
from pytest_icbench.host.cleanup import remove_tree
from pytest_icbench.host.entering import can_enter, start_within
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.process import SESSION_VARIABLE, Process, run
from pytest_icbench.host.resource.hugepages import sizes_kib
from pytest_icbench.host.root import Root, format_cpu_list
from pytest_icbench.host.session import HostSession

#: The runtimes, the preferred one first.
RUNTIMES = ("crun", "runc")
#: The time in seconds that a call of the runtime may take.
TIMEOUT_S = 10.0


def runtime(layout: Layout) -> str:
    """Returns the runtime's program. Raises Unsupported if there is none that knows this host's cgroups."""
    known = [name for name in RUNTIMES if shutil.which(name)]
    if not known:
        raise Unsupported("OCI containers need runc or crun: apt install runc, or use --icbench-node lxc")
    if not layout.unified:
        if "runc" not in known:
            raise Unsupported("crun refuses cgroup v1 and v2 together, as they are here: apt install runc")
        return "runc"
    return known[0]


class OciNode:
    """A node in a container of an OCI runtime, see ``node.protocol.Node``."""

    kind: ClassVar[str] = "oci"

    @staticmethod
    def probe(session: HostSession) -> None:
        """Implements ``Node.probe``."""
        layout = Layout.read(session.root)
        runtime(layout)
        if os.geteuid() != 0:
            raise Unsupported("OCI containers need root: run pytest as root")
        if not can_enter():
            raise Unsupported("OCI containers cannot be entered on this kind of machine: use --icbench-node lxc")
        if layout.holding("cpuset") is None:
            raise Unsupported("OCI containers need the cgroup controller cpuset: mount it, or use --icbench-node netns")

    @staticmethod
    def findings() -> Iterator[Finding]:
        """Implements ``Node.findings``."""
        try:
            told = version(runtime(Layout.read(Root())))
        except (Unsupported, ProvisionError) as error:
            yield Finding(Level.NOTE, "OCI", str(error), "apt install runc")
        else:
            yield Finding(Level.GOOD, "OCI", told)

    @staticmethod
    def treatment() -> dict[str, Any]:
        """Implements ``Node.treatment``."""
        return {"oci": version(runtime(Layout.read(Root())))}

    def __init__(self, session: HostSession, spec: NodeSpec) -> None:
        self.spec = spec
        self._session = session
        self._path = session.dir / "oci"
        self._log = self._path / f"{spec.name}.log"
        self._entry: int | None = None
        self._init = 0
        self._processes: list[Process] = []
        self._paused = False

    def start(self) -> NodeFacts:
        """Creates and starts the container, whose init then waits.

        Raises ProvisionError with the runtime's words, or if the kernel grants other CPUs than requested.
        """
        session, spec = self._session, self.spec
        program = workload_path()
        frame = skeleton(session, program)
        for directory in spec.sockets:
            mount_point(frame.path, directory)
        devices = {path: _status(path) for path in spec.devices}
        self._group = SessionGroup.of(session)
        self._runtime = runtime(self._group.layout)
        config = bundle(
            spec,
            command=[str(program), "pause"],
            env=self._environment(),
            cgroup=f"{_base(self._group.layout)}/{self._group.member(spec.name)}",
            skeleton=frame,
            devices=devices,
            hugepage_sizes_kib=sizes_kib(session.root) if self._group.layout.holding("hugetlb") else (),
        )
        directory = self._path / spec.name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
        self._entry = session.journal.record("oci", name=spec.name, group=self._group.name)
        try:
            pid_file = directory / "pid"
            self._call("create", "--bundle", str(directory), "--pid-file", str(pid_file), spec.name)
            self._init = int(pid_file.read_text(encoding="ascii"))
            prepared_ns = time.perf_counter_ns()
            self._call("start", spec.name)
            if spec.cpu is not None:
                self._group.contract(spec.name, spec.cpu)
            self._group.unify_cpu()
            self._group.share_cpu(self._init, spec.name)
            self._check_cpus()
        except ProvisionError:
            self.stop()
            raise
        return NodeFacts(spec.name, self._init, {"kind": self.kind, "runtime": self._runtime}, prepared_ns)

    def _call(self, *arguments: str) -> None:
        """Calls the runtime. Raises ProvisionError with the end of what it says."""
        self._log.unlink(missing_ok=True)
        command = [self._runtime, "--root", str(self._path / "state"), "--log", str(self._log), *arguments]
        try:
            # A container's init keeps the streams of its creator, so they are no pipes to wait for.
            process = self._session.spawner.start(command, log=self._path / f"{self.spec.name}.out")
            code = process.wait(TIMEOUT_S)
        except ProvisionError as error:
            raise ProvisionError(f"container {self.spec.name}: {error}") from None
        if code != 0:
            raise ProvisionError(
                f"container {self.spec.name}: {self._runtime} {arguments[0]} failed with exit code {code}{self._said()}"
            )

    def _said(self) -> str:
        with suppress(OSError):
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
            if lines:
                return f": {lines[-1]}"
        return ""

    def _environment(self) -> dict[str, str]:
        return {
            SESSION_VARIABLE: self._session.id,
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/tmp",
            "LC_ALL": "C",
        }

    def _check_cpus(self) -> None:
        """Raises ProvisionError if the kernel grants the container other CPUs than requested."""
        granted = self._group.layout.effective_cpus(self._session.root, self._group.member(self.spec.name))
        if granted is not None and granted != tuple(sorted(self.spec.cpus)):
            raise ProvisionError(
                f"container {self.spec.name} asked for CPUs {format_cpu_list(self.spec.cpus)} and was granted"
                f" {format_cpu_list(granted) or 'none'}: the others are offline or outside the cpuset above it"
            )

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        """Implements ``Node.spawn``. Raises ProvisionError if the node is not running or cannot be entered."""
        if not self._init or self._paused:
            state = "paused" if self._paused else "not running"
            raise ProvisionError(f"{argv[0]} cannot be started in container {self.spec.name}: it is {state}")
        group = self._group
        paths = [
            path
            for hierarchy in group.layout.hierarchies
            if (path := group.root.path(hierarchy.path(group.member(self.spec.name)))).is_dir()
        ]
        process = start_within(
            self._init,
            argv,
            cpus=cpus,
            log=log,
            env=self._environment(),
            cgroups=paths,
            capabilities=[NUMBERS[name] for name in kept(self.spec)],
        )
        self._processes.append(process)
        group.share_cpu(process.pid, self.spec.name)
        return process

    def pause(self) -> None:
        """Freezes every process within 2 s. Raises ProvisionError, with the node running, if that fails."""
        self._group.freeze(self.spec.name)
        self._paused = True

    def resume(self) -> None:
        """Lets the processes run again. Raises ProvisionError."""
        self._group.thaw(self.spec.name)
        self._paused = False

    def stop(self) -> None:
        """Kills every process and removes the container with its cgroups. Raises ProvisionError for what remains."""
        if self._entry is None:
            return
        self._init, self._paused = 0, False
        name, group = self.spec.name, self._group
        group.thaw(name)
        for process in self._processes:
            process.stop(term_s=0)
        self._processes.clear()
        end_container(name, group.name, group.layout, self._session.root)
        for path in (self._path / name, self._path / "state" / name):
            remove_tree(path)
        for path in (self._log, self._path / f"{name}.out"):
            path.unlink(missing_ok=True)
        self._session.journal.done(self._entry)
        self._entry = None


def version(program: str) -> str:
    """Returns name and version of a runtime: ``runc 1.1.5``. Raises ProvisionError."""
    words = run([program, "--version"], timeout_s=TIMEOUT_S).stdout.split()
    return f"{program} {words[2]}" if len(words) > 2 else program


def _base(layout: Layout) -> str:
    """Returns the path below which groups are made, the same in every hierarchy that freezes or pins."""
    hierarchy = layout.freezing() or layout.holding("cpuset")
    return "" if hierarchy is None else hierarchy.base


def _status(path: Path) -> os.stat_result:
    """Returns the status of a device. Raises ProvisionError if there is none."""
    try:
        status = path.stat()
    except OSError as error:
        raise ProvisionError(f"device {path} cannot be given to a container: {error.strerror}") from None
    if not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)):
        raise ProvisionError(f"{path} cannot be given to a container: it is not a device")
    return status


def end_container(name: str, group: str, layout: Layout, root: Root) -> None:
    """Ends a container in any state and removes its cgroups. Needs no runtime, and is idempotent.

    Raises ProvisionError if a process or a cgroup remains.
    """
    member = f"{group}/{name}"
    # The runtime has the container at one path in every hierarchy, even where pid 1 and the session's group are not.
    joined = layout.below(_base(layout))
    for place in (layout, joined):
        kill_groups(place, root, [member])
        remove_groups(place, root, [member])
    for hierarchy in set(joined.hierarchies) - set(layout.hierarchies):
        with suppress(OSError):  # another container's is still there
            root.path(hierarchy.path(group)).rmdir()


def undo_container(name: str, group: str) -> None:
    """Ends a container that its session has not ended."""
    root = Root()
    end_container(name, group, Layout.read(root), root)


UNDO_KINDS = {"oci": UndoKind(undo_container, checks={"name": entry_checks.name, "group": entry_checks.group_name})}
