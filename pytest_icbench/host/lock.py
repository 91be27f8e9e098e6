# SPDX-License-Identifier: BSD-3-Clause
"""The lock that admits one session at a time on a host.

It is a POSIX record lock and not flock(2). An flock belongs to the open file: a forked child that never executes
another program, such as LXC's monitor and attach, keeps it for as long as it lives. A record lock belongs to this
process alone.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.host import run_directory
from pytest_icbench.host.journal import Owner

#: The locks of this process, because a record lock does not exclude the process that holds it.
_held: set[Path] = set()


class SessionBusyError(UsageError):
    """Another session runs on this host."""


def _only_read(fd: int) -> bool:
    """Takes a shared lock. Returns whether it could: then no session holds the file, which they do exclusively.

    An ordinary user can hold one on a file that an older version made readable, and so keep every session out.
    """
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


class HostLock:
    """The lock ``path``, taken by the constructor. Its directory is made, or checked, by ``run_directory.hold``.

    Raises SessionBusyError at once if it is taken, OpenDirectoryError if others can write to its directory, UsageError
    if it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1
        if path in _held:
            raise SessionBusyError(f"this process already has a session on this host ({path}): close it first")
        while True:
            try:
                run_directory.hold(path.parent)
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except (FileNotFoundError, FileExistsError):  # the last holder removes the directory at this moment
                continue
            except OSError as error:
                alien = error.errno in (errno.EISDIR, errno.ELOOP)
                remedy = "it is no session's, remove it" if alien else "make its directory writable"
                raise UsageError(
                    f"the lock of sessions, {path}, cannot be opened ({error.strerror}): {remedy}"
                ) from None
            os.fchmod(fd, 0o600)  # who may read it could hold a shared lock
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_ino == path.stat().st_ino:
                    break
            except FileNotFoundError:  # the last holder removed it meanwhile
                pass
            except (BlockingIOError, PermissionError):
                if not _only_read(fd):
                    sentence = self._busy(fd)
                    os.close(fd)
                    raise SessionBusyError(sentence) from None
                ours = self._replaced(fd)
                if ours is not None:
                    os.close(fd)
                    fd = ours
                    break
            os.close(fd)
        self._fd = fd
        _held.add(path)
        owner = Owner.current()
        with suppress(OSError):  # a full disk: the lock holds, it only does not tell by whom
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps({"pid": owner.pid, "since": owner.since}).encode() + b"\n", 0)

    def _replaced(self, fd: int) -> int | None:
        """Puts a file that nobody else has opened, and whose lock is held, in the place of one that others read.

        Only who holds the lock of the new file renames it, and the old one's reader here keeps it from becoming a
        session's meanwhile. So of two that do this at once one has the lock.

        Returns its descriptor; None if there is another file by now. Raises SessionBusyError if another is doing this.
        """
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            ours = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:  # the last holder removed the directory meanwhile
            return None
        try:
            fcntl.lockf(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(ours).st_ino == new.stat().st_ino:
                if os.fstat(fd).st_ino == self.path.stat().st_ino:
                    new.rename(self.path)
                    return ours
                new.unlink()
        except FileNotFoundError:
            pass
        except (BlockingIOError, PermissionError):
            os.close(ours)
            raise SessionBusyError("another icbench session just starts on this host: wait for its end") from None
        os.close(ours)
        return None

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
