# SPDX-License-Identifier: BSD-3-Clause
"""CPUs that poll while they are idle: only in a virtual machine, behind all else, undone after a kill too."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from pytest_icbench.driver.node.idle_polling import poll_idle
from pytest_icbench.host import host_facts
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.host_session import RUN_DIR, HostSession
from pytest_icbench.host.process import wait_until
from pytest_icbench.host.recover import recover
from pytest_icbench.host.root import Root
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

CPU_HIERARCHY = Layout.read(Root()).holding("cpu")
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        os.geteuid() != 0 or CPU_HIERARCHY is None or not os.access(CPU_HIERARCHY.top, os.W_OK),
        reason="groups of the controller cpu need root, and a hierarchy that can be written",
    ),
    pytest.mark.skipif(host_facts.hypervisor(Root()) is None, reason="idle CPUs of a bare machine are left alone"),
]


def group(session: HostSession) -> Path:
    assert CPU_HIERARCHY is not None
    return Path(CPU_HIERARCHY.path(session.name("idle")))


def idle_share(cpu: int, seconds: float = 0.3) -> float:
    """The share of a CPU's time in which it halts."""

    def halted() -> float:
        fields = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith(f"cpu{cpu} "))
        return sum(map(int, fields.split()[4:6])) / os.sysconf("SC_CLK_TCK")

    before, began = halted(), time.monotonic()
    time.sleep(seconds)
    return (halted() - before) / (time.monotonic() - began)


@pytest.fixture
def polling(clean: None, session: HostSession) -> HostSession:
    poll_idle(session, os.sched_getaffinity(0))
    return session


def test_no_cpu_halts_but_while_polling_is_switched_off(polling: HostSession) -> None:
    cpu = min(os.sched_getaffinity(0))
    assert wait_until(lambda: idle_share(cpu) < 0.1, 5)
    polling.poll_idle(False)
    assert wait_until(lambda: idle_share(cpu) > 0.3, 5), "others keep the CPU busy"
    polling.poll_idle(True)
    assert wait_until(lambda: idle_share(cpu) < 0.1, 5)


def test_the_rest_of_the_host_runs_first(polling: HostSession) -> None:
    pids = [int(pid) for pid in (group(polling) / "cgroup.procs").read_text().split()]
    assert len(pids) == len(os.sched_getaffinity(0))
    assert wait_until(lambda: {os.sched_getscheduler(pid) for pid in pids} == {os.SCHED_IDLE}, 2)
    began, cpu = time.monotonic(), time.process_time()
    while time.monotonic() - began < 0.5:
        pass
    assert time.process_time() - cpu > 0.3


def test_it_ends_with_the_session_and_after_a_kill(clean: None) -> None:
    assert CPU_HIERARCHY is not None
    child = os.fork()
    if child == 0:
        session = HostSession(UNDO_KINDS)
        poll_idle(session, os.sched_getaffinity(0))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    left = list(Path(CPU_HIERARCHY.top).glob("icb*-idle"))
    assert left
    assert not recover(RUN_DIR, UNDO_KINDS).failures
    assert not [path for path in left if path.exists()]
    with HostSession(UNDO_KINDS) as session:
        poll_idle(session, os.sched_getaffinity(0))
        path = group(session)
        assert path.exists()
    assert not path.exists()
