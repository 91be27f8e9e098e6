# SPDX-License-Identifier: BSD-3-Clause
"""The workload's ``distance`` on this machine's CPUs, and the session that holds it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host.workload_tools import wait_until

pytestmark = pytest.mark.alone

CPUS = sorted(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="two CPUs are needed")
root = pytest.mark.skipif(os.geteuid() != 0, reason="sessions need root")


def ask(text: str) -> tuple[list[Any], int, str]:
    """Returns the pairs of each answer, the exit code and standard error."""
    done = subprocess.run(
        [workload_path(), "distance"], input=text, capture_output=True, text=True, timeout=20, check=False
    )
    return [json.loads(line)["pairs"] for line in done.stdout.splitlines()], done.returncode, done.stderr


@two_cpus
def test_two_cpus_have_a_distance() -> None:
    first, second = CPUS[:2]
    answers, code, _ = ask(f"{first} {second}, {second} {first}\n" * 20)
    assert code == 0
    assert len(answers) == 20
    known = [pair for answer in answers for pair in answer if pair is not None]
    assert known
    assert all(1 < pair["ns"] < 5000 for pair in known)
    assert all(time_ns > 100 for pair in known for time_ns in pair["work_ns"])


def test_what_has_no_distance() -> None:
    assert ask(f"{CPUS[0]} {CPUS[0]}\n\n{CPUS[0]} 1023, 99999 {CPUS[0]}\n") == ([[None], [], [None, None]], 0, "")


@pytest.mark.parametrize("line", ["0", "0 1 2", "zero one", "0 1; 1 2", "0 1,", "0 99999999999999999999"])
def test_what_is_no_question(line: str) -> None:
    answers, code, error = ask(f"{line}\n")
    if line == "0 1,":
        assert (len(answers), code) == (1, 0)
        return
    assert (answers, code) == ([], 2)
    assert line.split()[0] in error


@root
@two_cpus
def test_a_session_has_one_process_that_ends_with_it() -> None:
    with HostSession(UNDO_KINDS) as session:
        states = [session.cpu_meter.read(workload_path(), [(CPUS[0], CPUS[1])]) for _ in range(20)]
        assert any(state.distance_ns is not None and state.work_ns is not None for state in states)
        pids = _processes(session.id)
        assert len(pids) == 1
    assert not Path(f"/proc/{pids[0]}").exists()


_KILLED = """
import time
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
session = HostSession(UNDO_KINDS)
session.cpu_meter.read(workload_path(), [({0}, {1})])
print(session.id, flush=True)
time.sleep(60)
"""


@root
@two_cpus
def test_a_killed_session_leaves_no_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _KILLED.format(*CPUS)], stdout=subprocess.PIPE, text=True
    ) as session:
        assert session.stdout is not None
        name = session.stdout.readline().strip()
        assert len(_processes(name)) == 1
        session.send_signal(signal.SIGKILL)
    wait_until(lambda: not _processes(name))


def _processes(session: str) -> list[int]:
    """The session's processes that are ``distance``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if (
                words[1:2] == [b"distance"]
                and f"ICBENCH_SESSION={session}".encode() in (process / "environ").read_bytes()
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found
