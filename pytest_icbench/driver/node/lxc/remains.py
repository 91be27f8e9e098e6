# SPDX-License-Identifier: BSD-3-Clause
"""Ends a container in any state, and removes what liblxc leaves behind. Needs no liblxc."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pytest_icbench.driver.node.cgroups import end_groups, kill_groups
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.root import Root

#: The time in seconds that a container may take to end after its init was killed.
STOP_TIMEOUT_S = 5.0
_LOCKS = Path("/run/lxc/lock")


def monitors(lxcpath: str, name: str, among: Iterable[int] | None = None) -> list[int]:
    """Returns the pids of a container's monitors, known by the title that liblxc gives them.

    Args:
        among: the pids that can be theirs; None for those of all processes.
    """
    title = f"[lxc monitor] {lxcpath} {name}".encode()
    if among is None:
        among = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    pids = []
    for pid in among:
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0 ") == title:
                pids.append(pid)
    return pids


def ends(pid: int, timeout_s: float) -> bool:
    """Returns whether a process, a child or not, ends in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(timeout_s * 1000))
    finally:
        os.close(descriptor)


def end_container(lxcpath: str, name: str, group: str, layout: Layout, root: Root, monitor: int | None = None) -> None:
    """Ends a container in any state, and removes the files and cgroups that liblxc made for it. Idempotent.

    Args:
        lxcpath: the directory of liblxc's containers.
        group: the session's cgroup.
        monitor: the pid of its only monitor, of a container that came up; None if it has to be looked for.

    Raises ProvisionError if a process or a cgroup remains.
    """
    inside, outside = f"{group}/{name}", f"{group}/{name}.monitor"
    for _ in range(3):  # a monitor that is starting may not have made its init yet
        watching = monitors(lxcpath, name, None if monitor is None else [monitor])
        kill_groups(layout, root, [inside], STOP_TIMEOUT_S)
        for pid in watching:
            # A monitor removes its cgroups itself when its container ends.
            if not ends(pid, 2.0):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                ends(pid, STOP_TIMEOUT_S)
        if not watching:
            break
    end_groups(layout, root, [inside, outside], STOP_TIMEOUT_S)
    _remove_locks(Path(lxcpath), name)


def _remove_locks(lxcpath: Path, name: str) -> None:
    """Removes liblxc's lock of a container, and the directories above it that are empty."""
    directory = _LOCKS / lxcpath.relative_to("/")
    (directory / f".{name}").unlink(missing_ok=True)
    with suppress(OSError):
        while directory != _LOCKS.parent.parent:
            with suppress(FileNotFoundError):  # liblxc, which makes the outermost first, was killed meanwhile
                directory.rmdir()
            directory = directory.parent
