# SPDX-License-Identifier: BSD-3-Clause
"""The control groups of a switch's processes: they bound their number, and nothing in them outlives the switch.

A driver may start processes by any means, as children of this one. So this thread itself is in the group while the
driver starts its switch, and its children start there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pytest_icbench.driver.node.cgroups import SessionGroup, kill_groups, remove_groups
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.cgroup_layout import Hierarchy
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import wait_until

#: Threads that a switch may have: several for each CPU, as Open vSwitch needs, and a reserve.
TASKS_MAX = 512 + 16 * (os.cpu_count() or 1)
#: The time that processes may take to end after the driver has ended them, in seconds.
_GONE_S = 1.0


class SwitchGroup:
    """The group of one switch, in the hierarchy that counts processes, else in the one that freezes.

    Without either it has no effect. ``close`` ends what is in it.

    Args:
        driver: the name of the switch, for messages.
        name: a name for the group within the session's.
        apart: whether nodes have allocations over their parts of a CPU.
    """

    def __init__(self, session: HostSession, driver: str, name: str, apart: bool = False) -> None:
        self._driver = driver
        self._groups = SessionGroup.get(session)
        self._group = self._groups.member(name)
        self._places: list[tuple[Hierarchy, str]] = []
        layout = self._groups.layout
        self._hierarchy = layout.holding("pids") or layout.freezing()
        if self._hierarchy is None:
            return
        path = self._path(self._hierarchy)
        self._places.append((self._hierarchy, self._group))
        try:
            path.mkdir(parents=True, exist_ok=True)
            place = self._groups.switch_cpu(name, apart=apart)
        except OSError as error:
            raise ProvisionError(f"cgroup {path} cannot be made: {error.strerror}") from None
        if self._hierarchy.unified:
            for above in (path.parent.parent, path.parent):
                with suppress(OSError):  # the number is not bounded then; what is left is found all the same
                    (above / "cgroup.subtree_control").write_text("+pids", encoding="ascii")
        with suppress(OSError):
            (path / "pids.max").write_text(str(TASKS_MAX), encoding="ascii")
        if place is not None and place[0] != self._hierarchy:
            self._places.append(place)

    def _path(self, hierarchy: Hierarchy) -> Path:
        return self._groups.root.path(hierarchy.path(self._group))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Starts children of this thread in the groups within the block. Raises ProvisionError."""
        with ExitStack() as back:
            for hierarchy, group in self._places:
                self._enter(hierarchy, self._groups.root.path(hierarchy.path(group)), back)
            yield

    def _enter(self, hierarchy: Hierarchy, path: Path, back: ExitStack) -> None:
        # v2 moves whole processes; v1 one thread.
        file = "cgroup.procs" if hierarchy.unified else "tasks"
        current = self._current(hierarchy)
        try:
            (path / file).write_text("0", encoding="ascii")
        except OSError as error:
            raise ProvisionError(f"{path} cannot be entered: {error.strerror}") from None
        back.callback((current / file).write_text, "0", encoding="ascii")

    def _current(self, hierarchy: Hierarchy) -> Path:
        """Returns the directory of the group that this thread is in."""
        for mounted, path in self._groups.layout.groups_of(self._groups.root, "thread-self"):
            if mounted == hierarchy:
                return Path(hierarchy.mount + path.rstrip("/"))
        raise ProvisionError("/proc/thread-self/cgroup does not have the group of this process")

    def check(self) -> None:
        """Raises ProvisionError if the switch tried to start more processes than it may have."""
        if self._hierarchy is None:
            return
        with suppress(OSError):
            words = (self._path(self._hierarchy) / "pids.events").read_text(encoding="ascii").split()
            if "max" in words and int(words[words.index("max") + 1]):
                raise ProvisionError(f"switch '{self._driver}' starts processes without end: it may have {TASKS_MAX}")

    def close(self) -> None:
        """Removes the group. Idempotent. Raises ProvisionError if the driver left processes, which are killed."""
        if self._hierarchy is None:
            return
        hierarchy, self._hierarchy = self._hierarchy, None
        path = self._path(hierarchy)
        wait_until(lambda: not self._groups.pids(self._group), _GONE_S)
        left = self._groups.pids(self._group)
        names = sorted({_name(pid) for pid in left} - {""})
        with suppress(OSError):
            (path / "pids.max").write_text("0", encoding="ascii")  # nothing can fork while it is killed
        if left:
            kill_groups(self._groups.layout, self._groups.root, [self._group])
        remove_groups(self._groups.layout, self._groups.root, [self._group])
        if left:
            shown = f"{len(left)} process{'' if len(left) == 1 else 'es'} ({', '.join(names[:3])})"
            raise ProvisionError(f"switch '{self._driver}': stop() left {shown} running, which were killed")


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
