# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's vhost library looks at a socket when it opens it, not up to a second later.

The thread of the library that accepts connections calls poll(2) with a list of descriptors and a time limit of one
second, and a new socket joins the list at the next call. The list always has a pipe, into which the library itself
writes when a connection has come, so that poll() returns and the list is made anew: a byte from outside does the same,
and the thread throws it away. Libraries since DPDK 24.03 wait by epoll(7) and need none.
"""

from __future__ import annotations

import os
import platform
import struct
import time
from pathlib import Path

#: What the thread is called: until DPDK 23.07, and since.
_THREADS = ("vhost-events", "dpdk-vhost-evt")
#: poll() as the kernel counts its calls, or ppoll() where the C library has only that. Both begin with list and length.
_POLL = {"x86_64": 7, "aarch64": 73}
_POLLFD = struct.Struct("ihh")
#: How long the thread may take from its start to poll(), and how often that is asked, in seconds.
_PATIENCE_S, _ASK_S = 0.05, 0.002


def wake(pid: int) -> bool:
    """Lets the vhost library of a process look at all its sockets now.

    Returns whether it does. False where there is no such thread, or the kernel shows no calls of other processes: the
    library looks by itself within a second.
    """
    deadline = time.monotonic() + _PATIENCE_S
    try:
        threads = [task for task in Path(f"/proc/{pid}/task").iterdir() if _name(task) in _THREADS]
        while threads:
            pipes = [pipe for task in threads if (pipe := _polled_pipe(pid, task)) is not None]
            for pipe in pipes:
                _write(Path(f"/proc/{pid}/fd/{pipe}"))
            if pipes or time.monotonic() > deadline:
                return bool(pipes)
            time.sleep(_ASK_S)
    except OSError:  # it ends, or the kernel does not show it
        pass
    return False


def _name(task: Path) -> str:
    return (task / "comm").read_text(encoding="utf-8").strip()


def _polled_pipe(pid: int, task: Path) -> int | None:
    """The pipe that a thread waits for in poll(), by its descriptor; None if it is not there."""
    number, *words = (task / "syscall").read_text(encoding="utf-8").split()
    if number != str(_POLL.get(platform.machine())):
        return None
    address, length = (int(word, 16) for word in words[:2])
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        polled = memory.read(length * _POLLFD.size)
    fds = [_POLLFD.unpack_from(polled, at)[0] for at in range(0, len(polled) - _POLLFD.size + 1, _POLLFD.size)]
    return next((fd for fd in fds if fd >= 0 and _is_pipe(pid, fd)), None)


def _is_pipe(pid: int, fd: int) -> bool:
    return str(Path(f"/proc/{pid}/fd/{fd}").readlink()).startswith("pipe:")


def _write(pipe: Path) -> None:
    fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(fd, b"1")
    finally:
        os.close(fd)
