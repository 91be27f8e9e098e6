# SPDX-License-Identifier: BSD-3-Clause
"""Entering a network namespace for a moment, in the calling thread only, and keeping one."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_icbench.errors import ProvisionError

CLONE_NEWNET = 0x40000000
_MS_BIND = 0x1000
#: Where ip(8) looks for named ones.
NETNS_DIR = Path("/run/netns")

_libc = ctypes.CDLL(None, use_errno=True)


def setns(fd: int, kind: int) -> None:
    """setns(2) for the calling thread (``os.setns`` is Python 3.12's). Raises OSError."""
    if _libc.setns(fd, kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unshare(kind: int) -> None:
    """unshare(2) for the calling thread. Raises OSError."""
    if _libc.unshare(kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextmanager
def saved_netns() -> Iterator[None]:
    """Whatever the block does to the thread's network namespace, the old one is back afterwards."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            yield
        finally:
            setns(own, CLONE_NEWNET)
    finally:
        os.close(own)


@contextmanager
def opened(netns: str) -> Iterator[int]:
    """A descriptor of the namespace at a path. Raises ProvisionError if there is none."""
    try:
        fd = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ProvisionError(
            f"network namespace {netns} cannot be entered ({error.strerror}): its node is not running"
        ) from None
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def entered(netns: str | None) -> Iterator[None]:
    """The block runs in ``netns`` (a path; None: stay). Sockets and children made there belong to it.

    Raises ProvisionError if there is no such namespace.
    """
    if netns is None:
        yield
        return
    with opened(netns) as target, saved_netns():
        try:
            setns(target, CLONE_NEWNET)
        except OSError as error:
            raise ProvisionError(f"network namespace {netns} cannot be entered: {error.strerror}") from None
        yield


def bind(netns: str, path: Path) -> None:
    """Mounts a namespace on a file, so that it outlives its processes. Raises OSError."""
    if _libc.mount(os.fsencode(netns), os.fsencode(path), b"none", _MS_BIND, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
