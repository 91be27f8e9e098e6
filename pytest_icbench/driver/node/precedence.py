# SPDX-License-Identifier: BSD-3-Clause
"""Precedence of a session's processes over all other processes of the host, by the weight of their group.

Niceness and SCHED_IDLE of other processes do not help a poller: the scheduler first divides a CPU among groups, and
each terminal and each service has one (autogroups in the root group, or control groups). So the session's group gets
the largest possible weight. Autogroups have no effect within it.

The harness has another group of that weight, because it would hardly run on a CPU with pollers. At the end its
processes are moved back instead of killed: processes of the user's tests are among them. A weight counts only among
siblings, so both groups are at the top of the hierarchy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_icbench.driver.node.cgroups import GREATEST, SessionGroup, remove_groups
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import entry_checks
from pytest_icbench.host.cgroup_layout import Hierarchy, Layout
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.root import Root

#: Real-time budget of the harness per second, in µs: v1 gives a new group none, ``host.process.realtime`` needs some.
_REAL_TIME_US = 50_000
_MOVED_S = 2.0
_NO_CONTROLLER = "the kernel has no cgroup controller cpu below /sys/fs/cgroup"


def precede(session: HostSession) -> list[str]:
    """Gives the session's processes and this one precedence, described by ``session.precedence``.

    Everything is journaled. Returns a message if it is not possible.
    """
    try:
        groups = SessionGroup.get(session)
        hierarchy = groups.layout.holding("cpu")
        if hierarchy is None:
            raise ProvisionError(_NO_CONTROLLER)
        _weigh_harness(session, groups, hierarchy)  # first, because pollers with precedence would starve it
        groups.lead(hierarchy)
    except (OSError, ProvisionError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        session.precedence = f"none: {why}"
        return [f"pollers do not run before other processes: {why}"]
    session.precedence = describe_weight(session.root, hierarchy)
    return []


def _weigh_harness(session: HostSession, groups: SessionGroup, hierarchy: Hierarchy) -> None:
    """Moves this process into its own group. Raises ProvisionError and OSError."""
    name, above = session.name("harness"), dict(groups.layout.groups_of(session.root, os.getpid()))
    session.journal.record("harness", name=name, back=above.get(hierarchy, "/"))
    path = groups.weigh(hierarchy, name)
    with suppress(OSError):  # v2, or a kernel without groups of real time
        (path / "cpu.rt_runtime_us").write_text(str(_REAL_TIME_US), encoding="ascii")
    (path / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def describe_weight(root: Root, hierarchy: Hierarchy) -> str:
    """Returns the weight and the group within which it counts: ``cpu.weight 10000 within /a.slice``."""
    name, greatest = GREATEST[hierarchy.unified]
    # v2 has this file in every group except the host's root, v1 has release_agent only in the root.
    inner = (
        root.exists(f"{hierarchy.top}/cpu.weight")
        if hierarchy.unified
        else not root.exists(f"{hierarchy.top}/release_agent")
    )
    return f"{name} {greatest}" + (f" within {hierarchy.base or '/'}" if inner else "")


def findings(root: Root) -> Iterator[Finding]:
    """Yields the doctor's finding on whether pollers can run before all other processes."""
    layout = Layout.read(root)
    hierarchy = layout.holding("cpu")
    if not layout.hierarchies:
        return  # the doctor reports that nothing is mounted
    if hierarchy is None:
        why, remedy = _NO_CONTROLLER, "mount it"
    elif _read_only(root.path(hierarchy.top)):
        why, remedy = f"{hierarchy.top} is read-only", "mount it writable"
    else:
        weight = describe_weight(root, hierarchy)
        _, inner, group = weight.partition(" within ")
        others = f"other processes within {group}; those outside it get their share" if inner else "all others"
        yield Finding(Level.NOTE if inner else Level.GOOD, "precedence", f"pollers run before {others} ({weight})")
        return
    yield Finding(Level.DISTURBS, "precedence", f"pollers do not run before other processes: {why}", remedy)


def _read_only(path: Path) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def undo_harness(name: str, back: str) -> None:
    """Moves the harness's processes back, or to the top if their group no longer exists, and removes its group.

    Raises ProvisionError if a process remains.
    """
    root = Root()
    layout = Layout.read(root)
    if (hierarchy := layout.holding("cpu")) is None:
        return
    procs = root.path(hierarchy.path(name)) / "cgroup.procs"
    places = [root.path(hierarchy.mount + back) / "cgroup.procs", root.path(hierarchy.mount) / "cgroup.procs"]
    deadline = time.monotonic() + _MOVED_S
    while (pids := _pids(procs)) and time.monotonic() < deadline:  # some may fork meanwhile
        for pid in pids:
            _move(pid, places)
    remove_groups(layout, root, [name])


def _pids(procs: Path) -> list[str]:
    try:
        return procs.read_text(encoding="ascii").split()
    except OSError:
        return []


def _move(pid: str, places: list[Path]) -> None:
    for place in places:
        with suppress(OSError):  # it has ended, or the group is gone
            place.write_text(pid, encoding="ascii")
            return


UNDO_KINDS = {"harness": UndoKind(undo_harness, checks={"name": entry_checks.name, "back": entry_checks.group_path})}
