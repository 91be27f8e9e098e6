# SPDX-License-Identifier: BSD-3-Clause
"""A free core for what is measured: whatever else runs on this host meanwhile waits, as far as the scheduler allows.

Linux shares CPUs out among groups first. A neighbour of the least priority within its own group still gets half of a
CPU beside a group of the same weight.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.host.host_session import HostSession

_AUTOGROUP = Path("/proc/self/autogroup")
_FIRST = "-20"


@contextmanager
def own_processes() -> Iterator[None]:
    """Programs that this one starts come first, where the kernel groups tasks by session; back to before afterwards."""
    before = None
    with suppress(OSError, IndexError):
        before = _AUTOGROUP.read_text().split("nice")[1].strip()
        _AUTOGROUP.write_text(_FIRST)
    try:
        yield
    finally:
        if before is not None:
            with suppress(OSError):
                _AUTOGROUP.write_text(before)


@contextmanager
def this_thread_on(cpu: int) -> Iterator[None]:
    """This program itself keeps off the other CPUs; what it starts is pinned anyway."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def nodes(session: HostSession) -> None:
    """Workloads in a session's nodes come first. Their group ends with the session, and this with it.

    Not for kernel switches: what the kernel's own threads do for them would wait as well.
    """
    group = SessionGroup.get(session)
    hierarchy = group.layout.holding("cpu")
    if hierarchy is not None:
        name, most = ("cpu.weight", "10000") if hierarchy.unified else ("cpu.shares", "262144")
        with suppress(OSError):
            (session.root.path(hierarchy.path(group.name)) / name).write_text(most)
