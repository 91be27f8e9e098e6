# SPDX-License-Identifier: BSD-3-Clause
"""The directory of all sessions, and the locks that admit one session at a time on a host.

Only root can write to the directory, because recovery executes as root what is written there.

The lock is a POSIX record lock and not flock(2). An flock belongs to the open file: a forked child that never executes
another program, such as LXC's monitor and attach, keeps it for as long as it lives. A record lock belongs to this
process alone.

Containers of a host, and mount namespaces, can have a /run each. They share the kernel, so a second lock is on the root
directory of a file system that is the same in all namespaces, and that root alone can open.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.host.journal import Owner
from pytest_icbench.host.namespaces import check_result

MODE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class OpenDirectoryError(UsageError):
    """A directory of sessions is not root's, or others can write there."""


def make_directory(path: Path) -> None:
    """Makes a directory that only its owner can enter, for any umask. Raises FileExistsError if it exists."""
    path.mkdir(mode=MODE)
    path.chmod(MODE)


def prepare_directory(path: Path) -> None:
    """Makes the directory of all sessions with the parents that it lacks, or checks and closes the present one.

    A directory that others could write to may hold anything.

    Raises OpenDirectoryError if others can write, or could have written, to it or to one of its parents.
    """
    path = path.absolute()
    for parent in reversed(path.parents):
        if not os.path.lexists(parent):
            make_directory(parent)
        _check_owner(parent, remedy="make root its owner, and the only user who can write to it", sticky=True)
    if not os.path.lexists(path):
        make_directory(path)
    check_directory(path)
    path.chmod(MODE)


def check_directory(path: Path) -> None:
    """Refuses a directory of sessions that is not this user's, or that others can write to.

    Raises OpenDirectoryError with the remedy.
    """
    _check_owner(path, remedy="examine what other users have written there, and remove it", sticky=False)


def _check_owner(path: Path, *, remedy: str, sticky: bool) -> None:
    """Raises OpenDirectoryError for a directory of others.

    ``sticky``: whether the directory may be root's, and open to all who can remove only their own files, as /tmp.
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        fault = "is a symbolic link"
    elif not stat.S_ISDIR(status.st_mode):
        fault = "is not a directory"
    elif status.st_uid != os.geteuid() and not (sticky and status.st_uid == 0):
        fault = f"belongs to user {status.st_uid}"
    elif status.st_mode & _OTHERS_WRITE and not (sticky and status.st_mode & stat.S_ISVTX):
        fault = f"can be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
    else:
        return
    raise OpenDirectoryError(f"{path} {fault}, but sessions carry out as root what is written there: {remedy}")


#: How long the last holders of the lock may go on removing it, in seconds.
_VANISHES_S = 10.0
#: The locks of this process, because a record lock does not exclude the process that holds it.
_held: set[Path] = set()


class SessionBusyError(UsageError):
    """Another session runs on this host."""


class HostLock:
    """The lock ``path``, taken by the constructor. Its directory is made, or checked, by ``prepare_directory``.

    Raises SessionBusyError at once if it is taken, OpenDirectoryError if others can write to its directory, UsageError
    if it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1
        if path in _held:
            raise SessionBusyError(f"this process already has a session on this host ({path}): close it first")
        deadline = time.monotonic() + _VANISHES_S
        while (fd := self._try()) is None:
            if time.monotonic() > deadline:
                raise UsageError(
                    f"the lock of sessions, {path}, is another file at each look, as on a file system without steady"
                    " inode numbers: mount a tmpfs at its directory"
                )
        self._fd = fd
        _held.add(path)
        owner = Owner.current()
        with suppress(OSError):  # a full disk: the lock holds, it only does not name its owner
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps({"pid": owner.pid, "since": owner.since}).encode() + b"\n", 0)

    def _try(self) -> int | None:
        """Opens and locks the file. Returns its descriptor; None if its last holder removed it in the meantime.

        Raises as the constructor does.
        """
        fd = self._open()
        if fd is None:
            return None
        locked = None
        try:
            os.fchmod(fd, 0o600)  # for any umask
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_ino == self.path.stat().st_ino:
                locked = fd
        except FileNotFoundError:  # the last holder removed it in the meantime
            pass
        except (BlockingIOError, PermissionError):
            raise SessionBusyError(self._busy(fd)) from None
        finally:
            if locked is None:
                os.close(fd)
        return locked

    def _open(self) -> int | None:
        """Opens the file; returns None while the last holder removes the directory. Raises UsageError."""
        try:
            prepare_directory(self.path.parent)
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except (FileNotFoundError, FileExistsError):
            return None
        except OSError as error:
            foreign = error.errno in (errno.EISDIR, errno.ELOOP)
            remedy = "no session made it, remove it" if foreign else "make its directory writable"
            raise UsageError(
                f"the lock of sessions, {self.path}, cannot be opened ({error.strerror}): {remedy}"
            ) from None

    def _busy(self, fd: int) -> str:
        """Returns the message about the session that holds the lock."""
        try:
            holder = json.loads(os.pread(fd, 4096, 0))
            owner = f"process {holder['pid']}, since {holder['since']}"
        except (ValueError, KeyError, TypeError):
            owner = "a process that has just started"
        return f"another icbench session runs on this host ({owner}): wait for its end, or end it"

    def release(self) -> None:
        """Releases the lock and removes its file. Idempotent."""
        if self._fd < 0:
            return
        with suppress(OSError):
            self.path.unlink()
        os.close(self._fd)
        self._fd = -1
        _held.discard(self.path)
        with suppress(OSError):
            self.path.parent.rmdir()


#: File systems that are the same in all namespaces, with a root directory for root alone. The first known one is used.
_COMMON = ("tracefs", "debugfs")
#: Set where a kernel stands for several hosts, as in the tests: no lock is common to them.
SEVERAL_HOSTS_VARIABLE = "ICBENCH_SEVERAL_HOSTS"
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_FSOPEN_CLOEXEC, _CONFIG_CREATE, _READ_ONLY = 1, 6, 15
_libc = ctypes.CDLL(None, use_errno=True)


def lock_kernel(filesystems: Sequence[str] = _COMMON) -> int | None:
    """Takes the lock that all containers of this host share.

    Returns its descriptor, for ``unlock_kernel``; None without such a file system or the right to mount one, as in a
    user namespace. Raises SessionBusyError if another process has it. Nothing is mounted anywhere.
    """
    if os.environ.get(SEVERAL_HOSTS_VARIABLE):
        return None
    known = Path("/proc/filesystems").read_text(encoding="ascii").split()
    name = next((name for name in filesystems if name in known), None)
    try:
        fd = None if name is None else _open_root(name)
    except OSError:
        return None
    if fd is None:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _find_holder(fd)
        os.close(fd)
        raise SessionBusyError(
            "another icbench session runs on this host, in a container or mount namespace with another /run"
            f" ({f'process {holder}' if holder else 'its process is not visible here'}): wait for its end, or end it"
        ) from None
    return fd


def unlock_kernel(fd: int | None) -> None:
    """Releases the lock, also for forked children that keep its descriptor."""
    if fd is not None:
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _open_root(name: str) -> int:
    """Returns a descriptor of the root directory of a file system that is mounted for it alone. Raises OSError."""
    with ExitStack() as opened:
        context = _system_call(_FSOPEN, name.encode(), _FSOPEN_CLOEXEC)
        opened.callback(os.close, context)
        _system_call(_FSCONFIG, context, _CONFIG_CREATE, None, None, 0)
        mount = _system_call(_FSMOUNT, context, _FSOPEN_CLOEXEC, _READ_ONLY)
        opened.callback(os.close, mount)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=mount)


def _system_call(number: int, *arguments: object) -> int:
    return check_result(_libc.syscall(number, *arguments))


def _find_holder(fd: int) -> int | None:
    """Returns the process that took the lock, if it has an id in this pid namespace."""
    status = os.fstat(fd)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5] == place:
                return max(int(words[4]), 0) or None
    return None
