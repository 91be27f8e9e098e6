# SPDX-License-Identifier: BSD-3-Clause
"""Keeps the CPUs of a virtual machine from halting, as the kernel's ``idle=poll`` does, but for a session alone.

An idle virtual CPU halts. When it wakes up, the hypervisor runs it wherever there is room, often beside another cache.
On a virtual machine with two CPUs (Linux 6.18, KVM), read every 0.2 s for 20 s, three times in turn, the distance
between the CPUs jumped 24, 26 and 27 times, and 5, 4 and 2 times while both polled.

A process for each CPU spins in a control group of the least weight. Whatever wakes up preempts it at once. The group
lies at the top of the host's groups. Inside a container it would keep the container's group busy, which has the usual
weight: processes of other groups then computed 0.60 of what they compute alone, and 1.00 with the group at the top.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable

from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.cpu_usage import find_quotas
from pytest_icbench.host.host_facts import hypervisor
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import Process
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.root import Root

_SPIN = "import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"


def may_poll(root: Root) -> bool:
    """Whether polling has an effect and does no harm: on virtual CPUs, which are no siblings and have no quota."""
    return hypervisor(root) is not None and not Topology.read(root).smt and not find_quotas(root, [os.getpid()])


def poll_idle(session: HostSession, cpus: Iterable[int]) -> None:
    """Makes these CPUs poll while they are idle, until the session ends. ``session.poll_idle`` interrupts that.

    Nothing happens where CPUs may not poll, or where a container has its own control groups, or none.
    """
    if not may_poll(session.root):
        return
    groups = SessionGroup.get(session)
    hierarchy = groups.layout.holding("cpu")
    if hierarchy is None or not hierarchy.is_at_host_top(session.root):
        return
    group = session.name("idle")
    session.journal.record("cgroup", name=group)
    processes: list[Process] = []
    try:
        path = groups.weigh(hierarchy, group, least=True)
        for cpu in sorted(set(cpus)):
            argv = [sys.executable, "-IS", "-c", _SPIN]
            processes.append(session.spawner.start(argv, log=session.dir / "idle.log", cpus=[cpu]))
            (path / "cgroup.procs").write_text(str(processes[-1].pid), encoding="ascii")
    except (OSError, ProvisionError):
        for process in processes:  # outside of the group it would take half of a CPU
            process.stop(term_s=0.0)
        return

    def switch(on: bool) -> None:
        for process in processes:
            process.signal(signal.SIGCONT if on else signal.SIGSTOP)

    session.poll_idle, session.idle = switch, "poll"
