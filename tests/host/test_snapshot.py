# SPDX-License-Identifier: BSD-3-Clause
"""Which processes a snapshot of the host lists: all but those of another run of pytest, which end when they like."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.host import snapshot

#: A shell whose name stands before it starts a process that looks like a session's, and waits for it.
PARENT = "bash -c 'bash -c \"exec -a icbench-workload sleep 30\" & echo $! >pid; mv pid started; wait'"


@contextmanager
def started(directory: Path, name: str, *, orphan: bool, inner: bool) -> Iterator[int]:
    """The pid of a process below a parent of that name, which is a child of the test or nobody's."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST" or inner}
    script = f"exec -a {name} {PARENT}"
    shell = subprocess.Popen(["bash", "-c", f"({script}) &" if orphan else script], cwd=directory, env=environment)
    try:
        if orphan:
            assert shell.wait(30) == 0
        deadline = time.monotonic() + 30
        while not (directory / "started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        pid = int((directory / "started").read_text())
        while b"icbench-workload\0" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield pid
        os.kill(pid, signal.SIGKILL)
    finally:
        shell.wait(60)


@pytest.mark.parametrize(
    ("name", "orphan", "inner", "listed"),
    [
        pytest.param("pytest", True, False, False, id="another run's"),
        pytest.param("pytest", True, True, True, id="an inner run's that nobody waits for"),
        pytest.param("pytest", False, False, True, id="a child's"),
        pytest.param("sh", True, False, True, id="nobody's"),
    ],
)
def test_processes_of_another_run_are_not_listed(
    tmp_path: Path, name: str, orphan: bool, inner: bool, listed: bool
) -> None:
    with started(tmp_path, name, orphan=orphan, inner=inner) as pid:
        assert (str(pid) in snapshot.take()["process"]) is listed
