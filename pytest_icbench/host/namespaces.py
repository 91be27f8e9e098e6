# SPDX-License-Identifier: BSD-3-Clause
"""Enters network namespaces, in the calling thread only, and keeps namespaces alive."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_icbench.errors import ProvisionError

CLONE_NEWNET = 0x40000000
_MS_BIND = 0x1000
#: The directory in which ip(8) looks for named namespaces.
NETNS_DIR = Path("/run/netns")

_libc = ctypes.CDLL(None, use_errno=True)


def check_result(result: int, path: str | None = None) -> int:
    """Returns the result of a function of libc. Raises OSError, with the path in question, if it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


def setns(fd: int, kind: int) -> None:
    """Calls setns(2) for this thread (``os.setns`` needs Python 3.12). Raises OSError."""
    check_result(_libc.setns(fd, kind))


def unshare(kind: int) -> None:
    """Calls unshare(2) for this thread. Raises OSError."""
    check_result(_libc.unshare(kind))


@contextmanager
def save_netns() -> Iterator[None]:
    """Restores the thread's network namespace after the block."""
    original = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            yield
        finally:
            setns(original, CLONE_NEWNET)
    finally:
        os.close(original)


@contextmanager
def open_netns(netns: str) -> Iterator[int]:
    """Opens the namespace at a path and yields its descriptor. Raises ProvisionError if there is none."""
    try:
        fd = os.open(netns, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)  # users name it: it may be a FIFO
    except OSError as error:
        raise ProvisionError(
            f"network namespace {netns} cannot be entered ({error.strerror}): its node is not running"
        ) from None
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def enter_netns(netns: str | None) -> Iterator[None]:
    """Runs the block in a network namespace. Sockets and children made there belong to it.

    ``netns``: its path; None keeps the present one. Raises ProvisionError if there is no such namespace.
    """
    if netns is None:
        yield
        return
    with open_netns(netns) as target, save_netns():
        try:
            setns(target, CLONE_NEWNET)
        except OSError as error:
            raise ProvisionError(f"network namespace {netns} cannot be entered: {error.strerror}") from None
        yield


def bind_namespace(netns: str, path: Path) -> None:
    """Mounts a namespace on a file, so that it outlives its processes. Raises OSError."""
    check_result(_libc.mount(os.fsencode(netns), os.fsencode(path), b"none", _MS_BIND, None))
