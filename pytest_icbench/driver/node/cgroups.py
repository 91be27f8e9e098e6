# SPDX-License-Identifier: BSD-3-Clause
"""A session's control groups, in cgroup v1, in v2, and in both together.

A session has one group, ``icb<session>``, in every hierarchy, below the group liblxc starts from (that of pid 1
without systemd's ``init.scope``). Below it every node has ``NAME``, and a container's monitor ``NAME.monitor``. So
every group that could be left has the session in its path and is removed with that subtree.

The processes of all nodes share one group of the ``cpu`` controller. Separate groups, liblxc's default, make
``sched_yield()`` weaker: the scheduler chooses a group first, and often chooses that of the yielding process again. Two
processes that pass a token on one core (Linux 6.18) need one yield per pass in one group, 1.1 to 2.5 in two. With
testpmd and all containers on one core, a sender that yields every 64 frames loses 0.01 % in one group, 0.6 % in two.
Processes that liblxc has not moved need the named group too: in the root group, autogroups give every session
(``setsid``) a group, with the same effect.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar
from weakref import WeakKeyDictionary

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import entry_checks
from pytest_icbench.host.cgroup_layout import Hierarchy, Layout
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.root import Root, format_cpu_list
from pytest_icbench.model.cpu_allocation import CpuAllocation

_POLL_S = 0.002
#: Period of a quota in µs: a capped function pauses for milliseconds only. A small quota makes it longer.
_PERIOD_US = 10_000
#: The smallest quota that the kernel accepts, in µs.
_LEAST_QUOTA_US = 1000
#: v1's shares for one per cent. 100 % is 10 times the default of 1024, so that rounding does not matter.
_SHARES = 100
#: The file of a group's weight and its largest value, and the smallest one; the key is whether it is v2.
GREATEST = {False: ("cpu.shares", "262144"), True: ("cpu.weight", "10000")}
_LEAST = {False: "2", True: "1"}


class SessionGroup:
    """A session's group in every hierarchy; ``SessionGroup.get(session)`` returns it.

    The first call journals it. It is removed with the session, its members are removed by their nodes.
    """

    _known: ClassVar[WeakKeyDictionary[HostSession, SessionGroup]] = WeakKeyDictionary()

    def __init__(self, session: HostSession) -> None:
        self.root = session.root
        self.layout = Layout.read(session.root)
        self.name = f"icb{session.id}"
        self._leads = False
        self._cpu_allocations: set[str] = set()
        self._placed: dict[str, str] = {}
        if self.layout.unified:
            # liblxc enables all controllers from the top down to the container's parent.
            top = self.layout.hierarchies[0].top
            enabled = (self.root.read(f"{top}/cgroup.subtree_control") or "").split()
            session.journal.record("subtree_control", path=f"{top}/cgroup.subtree_control", enabled=enabled)
        session.journal.record("cgroup", name=self.name)
        items = {"memory": "max" if self.layout.unified else "limit_in_bytes", "pids": "max"}
        wanted = {"memory": session.node_memory_mib * 2**20, "pids": session.node_pids}
        #: The bounds of every node: item and value by controller. A host without a controller sets none by it.
        self.bounds = {
            name: (item, str(min([wanted[name], *self._own_bounds(name, item)])))
            for name, item in items.items()
            if wanted[name] and self._has(name)
        }

    @classmethod
    def get(cls, session: HostSession) -> SessionGroup:
        """Returns the session's group, made at the first call."""
        group = cls._known.get(session)
        if group is None:
            group = cls._known[session] = cls(session)
        return group

    def member(self, node: str) -> str:
        """Returns a node's group, relative to the base of a hierarchy."""
        return self._placed.get(node, f"{self.name}/{node}")

    def place(self, node: str, group: str) -> None:
        """Records the group that a container engine has chosen for a node, relative to the base of a hierarchy."""
        self._placed[node] = group

    @property
    def astray(self) -> bool:
        """Whether the weight does not apply to a node, because its engine has placed it outside this group (v2)."""
        return self.layout.unified and any(not group.startswith(f"{self.name}/") for group in self._placed.values())

    def _own_bounds(self, controller: str, item: str) -> Iterator[int]:
        """Yields the bounds of the groups of this process, which its nodes leave: a CI job's, or a service's."""
        hierarchy = self.layout.holding(controller)
        own = dict(self.layout.groups_of(self.root, "self"))
        if hierarchy is not None and hierarchy in own:
            for group in (Path(own[hierarchy]), *Path(own[hierarchy]).parents):
                text = self.root.read(f"{hierarchy.mount}{group}/{controller}.{item}") or ""
                if text.strip().isdigit():  # else "max"
                    yield int(text)

    def _has(self, controller: str) -> bool:
        """Whether groups of the session can have a controller; in v2 it is enabled for them."""
        hierarchy = self.layout.holding(controller)
        return hierarchy is not None and (not hierarchy.unified or _enable(self.root.path(hierarchy.top), controller))

    @property
    def _joined(self) -> tuple[Hierarchy, ...]:
        """The hierarchies in which a node without a runtime has its group: they freeze and bound it."""
        found = (self.layout.freezing(), *map(self.layout.holding, self.bounds))
        return tuple(dict.fromkeys(hierarchy for hierarchy in found if hierarchy is not None))

    def create(self, node: str) -> None:
        """Creates a node's group, and bounds its memory, processes and threads. Raises ProvisionError."""
        for hierarchy in self._joined:
            path = self._make(hierarchy, self.member(node))
            for controller, (item, value) in self.bounds.items():
                if controller not in hierarchy.controllers:
                    continue
                if hierarchy.unified:
                    _enable(path.parent, controller)
                try:
                    (path / f"{controller}.{item}").write_text(value, encoding="ascii")
                except OSError as error:
                    raise ProvisionError(
                        f"node {node} cannot be bounded by {path}/{controller}.{item}: {error.strerror}"
                    ) from None

    def _make(self, hierarchy: Hierarchy, group: str) -> Path:
        """Creates a group unless it exists. Returns its directory. Raises ProvisionError."""
        path = self.root.path(hierarchy.path(group))
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ProvisionError(f"cgroup {path} cannot be made: {error.strerror}") from None
        return path

    def join(self, node: str, pid: int) -> None:
        """Moves a process into a node's groups made by ``create``. Raises ProvisionError."""
        for hierarchy in self._joined:
            self._move(self.root.path(hierarchy.path(self.member(node))), pid)

    def share_cpu(self, pid: int, node: str) -> None:
        """Moves a process into the ``cpu`` group of all nodes of the session without an allocation.

        Raises ProvisionError.
        """
        hierarchy = self.layout.holding("cpu")
        if hierarchy is not None and not hierarchy.unified:
            self._move(self._make(hierarchy, self.member(node) if node in self._cpu_allocations else self.name), pid)

    def lead(self, hierarchy: Hierarchy) -> None:
        """Gives the group the largest weight; in v1 the switch joins it. Raises as ``weigh`` does."""
        self.weigh(hierarchy, self.name)
        self._leads = True

    def weigh(self, hierarchy: Hierarchy, group: str, *, least: bool = False) -> Path:
        """Creates a group of the largest weight; returns its directory. Raises ProvisionError and OSError.

        Args:
            hierarchy: the hierarchy of the controller ``cpu``.
            least: the smallest weight instead.
        """
        if hierarchy.unified:
            (self.root.path(hierarchy.top) / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
        path = self._make(hierarchy, group)
        name, greatest = GREATEST[hierarchy.unified]
        (path / name).write_text(_LEAST[hierarchy.unified] if least else greatest, encoding="ascii")
        return path

    def switch_cpu(self, switch: str, *, apart: bool) -> tuple[Hierarchy, str] | None:
        """Returns the ``cpu`` group of v1 for a switch; None for the group of the parent process. Raises OSError.

        Args:
            apart: whether nodes have allocations. The switch then gets a group with the weight of all of them.
        """
        hierarchy = self.layout.holding("cpu")
        if hierarchy is None or hierarchy.unified or not self._leads:
            return None
        if not apart:
            return hierarchy, self.name
        path = self._make(hierarchy, self.member(switch))
        (path / "cpu.shares").write_text(str(100 * _SHARES), encoding="ascii")
        return hierarchy, self.member(switch)

    def allocate_cpu(self, node: str, cpu_allocation: CpuAllocation) -> None:
        """Gives a node its own ``cpu`` group with a weight and a quota. Raises ProvisionError.

        In v2 the nodes without an allocation then have their own groups, too.
        """
        hierarchy = self.layout.holding("cpu")
        if hierarchy is None:
            raise ProvisionError("the kernel has no cgroup controller cpu, which CPU shares and quotas need: mount it")
        self._cpu_allocations.add(node)
        try:
            path = self._make(hierarchy, self.member(node))
            if hierarchy.unified:
                for parent in (self.root.path(hierarchy.top), path.parent):
                    (parent / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
            for name, text in _cpu_files(cpu_allocation, unified=hierarchy.unified):
                (path / name).write_text(text, encoding="ascii")
        except OSError as error:
            raise ProvisionError(f"node {node} cannot have its part of a CPU by cgroup: {error.strerror}") from None

    def _move(self, path: Path, pid: int) -> None:
        """Moves a process into a group; one that has ended is ignored. Raises ProvisionError."""
        try:
            (path / "cgroup.procs").write_text(str(pid), encoding="ascii")
        except ProcessLookupError:
            pass  # it has ended: its exit code says why
        except OSError as error:
            raise ProvisionError(f"process {pid} cannot be moved into cgroup {path}: {error.strerror}") from None

    def unify_cpu(self) -> None:
        """Disables the ``cpu`` controller of v2 below the session's group, so that all nodes share that group.

        This replaces ``share_cpu`` of v1: a process cannot leave its container's group, but the scheduler ignores a
        group without the controller. liblxc enables it again with each container. A node with an allocation needs it.
        """
        hierarchy = self.layout.holding("cpu")
        if hierarchy is not None and hierarchy.unified and not self._cpu_allocations:
            control = self.root.path(hierarchy.path(self.name)) / "cgroup.subtree_control"
            with suppress(OSError):  # a weaker yield does not justify a failure
                if "cpu" in control.read_text(encoding="ascii").split():
                    control.write_text("-cpu", encoding="ascii")

    def pids(self, group: str) -> set[int]:
        """Returns the processes of a group in any hierarchy."""
        return {pid for hierarchy in self.layout.hierarchies for pid in _pids(self.root.path(hierarchy.path(group)))}

    @property
    def can_freeze(self) -> bool:
        """Whether nodes can be frozen by a cgroup."""
        return self.layout.freezing() is not None

    def kill(self, node: str) -> None:
        """Kills every process of a node, a frozen one too. Raises ProvisionError if one does not end."""
        kill_groups(self.layout, self.root, [self.member(node)])

    def freeze(self, node: str, timeout_s: float = 2.0) -> None:
        """Stops every process of a node until ``thaw``. Raises ProvisionError, with the node running, if it fails."""
        if not _set_frozen(self.layout, self.root, self.member(node), True, timeout_s):
            self.thaw(node)
            raise ProvisionError(f"node {node} cannot be paused: its cgroup was not frozen within {timeout_s:g} s")

    def thaw(self, node: str, timeout_s: float = 2.0) -> None:
        """Undoes ``freeze``. A node that runs or is gone is ignored. Raises ProvisionError after ``timeout_s``."""
        if not _set_frozen(self.layout, self.root, self.member(node), False, timeout_s):
            raise ProvisionError(f"node {node} cannot be resumed: its cgroup was not thawed within {timeout_s:g} s")

    def remove(self, *nodes: str) -> None:
        """Removes the groups of nodes that have ended. Missing groups are ignored.

        Raises ProvisionError if a process remains in one.
        """
        remove_groups(self.layout, self.root, [self.member(node) for node in nodes])
        self.forget(*nodes)

    def forget(self, *nodes: str) -> None:
        """Ends the allocations of nodes that have ended."""
        self._cpu_allocations.difference_update(nodes)
        for node in nodes:
            self._placed.pop(node, None)

    def check_cpus(self, node: str, cpus: Sequence[int], layout: Layout) -> None:
        """Raises ProvisionError if the kernel grants a node, with its groups in ``layout``, other CPUs."""
        granted = layout.effective_cpus(self.root, self.member(node))
        if granted is not None and granted != tuple(sorted(cpus)):
            raise ProvisionError(
                f"container {node} asked for CPUs {format_cpu_list(cpus)} and was granted"
                f" {format_cpu_list(granted) or 'none'}: the missing ones are offline or outside the parent cpuset"
            )


def _enable(group: Path, controller: str) -> bool:
    """Enables a controller of v2 for the groups below a group. Returns whether it is enabled."""
    control = group / "cgroup.subtree_control"
    try:
        if controller not in control.read_text(encoding="ascii").split():
            control.write_text(f"+{controller}", encoding="ascii")
    except OSError:  # processes are in the group itself
        return False
    return True


def _cpu_files(cpu_allocation: CpuAllocation, *, unified: bool) -> Iterator[tuple[str, str]]:
    """Yields the files of a ``cpu`` group with their contents. Weights are proportional to shares."""
    if cpu_allocation.cpu_share is not None:
        yield (
            ("cpu.weight", str(cpu_allocation.cpu_share))
            if unified
            else ("cpu.shares", str(cpu_allocation.cpu_share * _SHARES))
        )
    if cpu_allocation.cpu_quota is not None:
        period = max(_PERIOD_US, -(-100 * _LEAST_QUOTA_US // cpu_allocation.cpu_quota))
        quota = cpu_allocation.cpu_quota * period // 100
        if unified:
            yield "cpu.max", f"{quota} {period}"
        else:
            yield "cpu.cfs_period_us", str(period)
            yield "cpu.cfs_quota_us", str(quota)


def _set_frozen(layout: Layout, root: Root, group: str, frozen: bool, timeout_s: float) -> bool:
    """Freezes or thaws a group. Returns whether it reaches that state in time; a missing group counts as thawed."""
    hierarchy = layout.freezing()
    if hierarchy is None:
        return False
    path = root.path(hierarchy.path(group))
    if not path.is_dir():
        return not frozen
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            # Written in each round: v1 does not continue to freeze after a task has escaped.
            target = _write_freezer(hierarchy, path, frozen)
            state = (path / ("cgroup.events" if hierarchy.unified else "freezer.state")).read_text(encoding="ascii")
            reached = target in state.splitlines()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENODEV):  # liblxc has removed it meanwhile
                return not frozen
            raise
        if reached or time.monotonic() > deadline:
            return reached
        time.sleep(_POLL_S)


def _write_freezer(hierarchy: Hierarchy, path: Path, frozen: bool) -> str:
    """Freezes or thaws a group; returns the line that its state then has. Raises OSError."""
    if hierarchy.unified:
        (path / "cgroup.freeze").write_text(str(int(frozen)), encoding="ascii")
        return f"frozen {int(frozen)}"
    target = "FROZEN" if frozen else "THAWED"
    (path / "freezer.state").write_text(target, encoding="ascii")
    return target


def thaw_group(layout: Layout, root: Root, group: str) -> None:
    """Thaws a group and all groups below it, so that their processes can end. Missing groups are ignored."""
    hierarchy = layout.freezing()
    if hierarchy is None:
        return
    for path in _subtree(root.path(hierarchy.path(group))):
        with suppress(OSError):
            _write_freezer(hierarchy, path, False)


def _pids(path: Path) -> set[int]:
    """Returns the processes of a group except this one; none if it does not exist."""
    try:
        return {int(word) for word in (path / "cgroup.procs").read_text(encoding="ascii").split()} - {0, os.getpid()}
    except OSError:
        return set()


def _subtree(path: Path) -> list[Path]:
    """Returns a group and those below it, the innermost first."""
    found = [path] if path.is_dir() else []
    for group in found:
        with suppress(OSError):
            found += [child for child in group.iterdir() if child.is_dir()]
    return found[::-1]


def remove_groups(layout: Layout, root: Root, groups: Iterable[str], timeout_s: float = 2.0) -> None:
    """Removes groups and all groups below them in every hierarchy. Waits for processes that are ending.

    Raises ProvisionError with the path of a group that still has a process after ``timeout_s`` seconds.
    """
    deadline = time.monotonic() + timeout_s
    tops = [root.path(hierarchy.path(group)) for group in groups for hierarchy in layout.hierarchies]
    for top in tops:
        while paths := _subtree(top):
            for path in paths:
                with suppress(OSError):
                    path.rmdir()
            if top.is_dir():
                if time.monotonic() > deadline:
                    raise ProvisionError(f"cgroup {top} cannot be removed: a process in it does not end")
                time.sleep(_POLL_S)


def kill_groups(layout: Layout, root: Root, groups: Iterable[str], timeout_s: float = 5.0) -> None:
    """Kills every process of groups and of those below them, frozen ones too.

    Raises ProvisionError with the pids that remain after ``timeout_s`` seconds.
    """
    tops = [(hierarchy, root.path(hierarchy.path(group))) for group in groups for hierarchy in layout.hierarchies]
    for _, top in tops:
        if (top / "pids.max").exists():
            with suppress(OSError):  # what is killed cannot fork meanwhile
                (top / "pids.max").write_text("0", encoding="ascii")
    deadline = time.monotonic() + timeout_s
    while True:
        remaining = {pid for _, top in tops for path in _subtree(top) for pid in _pids(path)}
        if not remaining:
            return
        if time.monotonic() > deadline:
            raise ProvisionError(f"processes {sorted(remaining)} do not end after SIGKILL: see dmesg")
        for pid in remaining:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for group in groups:
            thaw_group(layout, root, group)
        time.sleep(_POLL_S)


def end_groups(layout: Layout, root: Root, groups: Sequence[str], timeout_s: float = 5.0) -> None:
    """Kills the processes of groups and removes the groups. Idempotent.

    A killed runtime may have forked a process that joins a group after the first kill, so processes are killed again.

    Raises ProvisionError if a process or a cgroup remains.
    """
    for _ in range(2):
        kill_groups(layout, root, groups, timeout_s)
        with suppress(ProvisionError):
            remove_groups(layout, root, groups)
            return
    kill_groups(layout, root, groups, timeout_s)
    remove_groups(layout, root, groups)


def end_group(layout: Layout, root: Root, group: str) -> None:
    """Kills the processes of a group and removes it in every hierarchy, also where runtimes join it. Idempotent.

    Raises ProvisionError if a process or a cgroup remains.
    """
    for place in dict.fromkeys((layout, layout.joined())):
        end_groups(place, root, [group])


def undo_cgroup(name: str) -> None:
    """Ends a session's group."""
    root = Root()
    end_group(Layout.read(root), root, name)


def undo_subtree_control(path: str, enabled: tuple[str, ...]) -> None:
    """Disables the controllers that were enabled for the session, except for those in use elsewhere.

    Args:
        path: the file ``cgroup.subtree_control``.
        enabled: the controllers that were enabled before.
    """
    control = Path(path)
    if not control.exists():
        return
    for controller in control.read_text(encoding="ascii").split():
        if controller not in enabled:
            with suppress(OSError):
                control.write_text(f"-{controller}", encoding="ascii")


UNDO_KINDS = {
    "cgroup": UndoKind(undo_cgroup, checks={"name": entry_checks.group_name}),
    "subtree_control": UndoKind(undo_subtree_control, checks={"path": entry_checks.subtree_control}),
}
