# SPDX-License-Identifier: BSD-3-Clause
"""A byte for the thread that accepts vhost connections: it gets it where it waits in poll(), and nobody else does."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from pytest_icbench.driver.switch.common import userspace_ports

pytestmark = pytest.mark.skipif(
    platform.machine() not in userspace_ports._POLL, reason=f"the number of poll() on {platform.machine()} is not known"
)

#: A thread of that name waits for a socket and a pipe, and prints what it reads from the pipe.
WAITS = """
import os, select, socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
read, write = os.pipe()
poll, pair = select.poll(), socket.socketpair()
for each in pair[0], read:
    poll.register(each, select.POLLIN)
print("ready", flush=True)
print(os.read(read, 16) if poll.poll(20_000) else None, flush=True)
"""


def waiting(name: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", WAITS, name], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("name", userspace_ports._THREADS)
def test_the_thread_that_waits_for_connections_gets_a_byte(name: str) -> None:
    with waiting(name) as process:
        assert process.stdout is not None
        while not userspace_ports.wake(process.pid):  # it has said "ready", and may not wait yet
            assert process.poll() is None
        assert process.stdout.readline().startswith("b'1")


def test_other_threads_are_left_alone() -> None:
    with waiting("vhost-other") as process:
        try:
            assert not userspace_ports.wake(process.pid)
        finally:
            process.kill()
        assert process.stdout is not None
        assert process.stdout.read() == ""


def test_a_process_that_has_ended_is_nobody() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        assert not userspace_ports.wake(process.pid)


def test_a_kernel_that_shows_no_calls_of_others_is_reported_by_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(userspace_ports, "_POLL", {})
    with waiting("vhost-events") as process:
        try:
            assert not userspace_ports.wake(process.pid)
        finally:
            process.kill()
