# SPDX-License-Identifier: BSD-3-Clause
"""Ports in user space: their sockets, the switch's side of them, and the endpoints at the other side."""

from __future__ import annotations

import os
import platform
import struct
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.protocol import Attachment
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.endpoint import Endpoint, Memif, VhostUser

#: Names of DPDK's vhost thread: until 23.07 and since.
_THREADS = ("vhost-events", "dpdk-vhost-evt")
#: Number of the system call poll(), or ppoll() if the C library has only that. Both begin with list and length.
_POLL = {"x86_64": 7, "aarch64": 73}
_POLLFD = struct.Struct("ihh")
#: Seconds within which the thread has to call poll(), and seconds between checks.
_PATIENCE_S, _ASK_S = 0.05, 0.002
VHOST_USER = "vhost-user"
VHOST_USER_PACKED = "vhost-user-packed"
MEMIF = "memif"
#: A function of a network card, given to DPDK.
VFIO = "vfio"

#: Longest path that a Unix socket's address holds, in bytes.
SUN_PATH_MAX = 107


def wake(pid: int) -> bool:
    """Makes the vhost library of a process look at all its sockets now, instead of up to a second later.

    The library's thread that accepts connections calls poll(2) with a list of descriptors and a time limit of one
    second. A new socket joins the list at the next call. The list always has a pipe, into which the library writes when
    a connection has come. A byte from outside has the same effect, and the thread discards it. Libraries since DPDK
    24.03 use epoll(7) and need none.

    Returns whether the library was woken. It is not if it has no such thread, or if the kernel does not show other
    processes' calls.
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
    """Returns the descriptor of the pipe for which a thread waits in poll(); None if it does not wait."""
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


def socket_path(attachment: Attachment, stem: str = "p") -> Path:
    """Returns the socket of an attachment's port. Raises ProvisionError if the path is too long for an address."""
    path = attachment.socket_dir / (attachment.socket or f"{stem}{attachment.index}")
    check_socket_path(path)
    return path


def check_socket_path(path: Path) -> None:
    """Raises ProvisionError if the path is too long for an address."""
    length = len(os.fsencode(path))
    if length > SUN_PATH_MAX:
        raise ProvisionError(
            f"the socket path {path} has {length} bytes and a Unix socket's address holds {SUN_PATH_MAX}: use a shorter"
            " run directory"
        )


def serving_device(port: str, attachment: Attachment, queues: int = 1) -> str:
    """Returns ``--vdev`` of a switch that serves the port's socket, so that endpoints connect without delay.

    A switch that connects to endpoints' sockets looks for them only once a second. A vhost back-end offers split and
    packed rings, and the front-end chooses. A memif has as many rings as its client requests.
    """
    path = socket_path(attachment)
    if port == MEMIF:
        return f"net_memif{attachment.index},role=server,id=0,socket={path},socket-abstract=no"
    return f"net_vhost{attachment.index},iface={path},queues={queues}"


def make_endpoint(port: str, attachment: Attachment, *, serves: bool = False) -> Endpoint:
    """Returns the endpoint that connects to ``serving_device``, or ``serves`` a memif itself."""
    path = str(socket_path(attachment))
    if port == MEMIF:
        return Memif(address=attachment.address, socket=path, role="server" if serves else "client")
    return VhostUser(address=attachment.address, socket=path, packed=port == VHOST_USER_PACKED)


def wait_for_sockets(paths: Sequence[Path], daemon: Daemon, *, timeout_s: float) -> None:
    """Waits until all paths are sockets, and has DPDK's vhost library accept connections at once.

    Raises ProvisionError after ``timeout_s`` seconds, or if the daemon dies.
    """
    daemon.wait_until(
        lambda: all(path.is_socket() for path in paths),
        failure=f"has not opened {', '.join(str(path) for path in paths)}",
        timeout_s=timeout_s,
    )
    wake(daemon.process.pid)
