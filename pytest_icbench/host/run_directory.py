# SPDX-License-Identifier: BSD-3-Clause
"""The directories of sessions: root's alone, because what stands in them is done as root at the next recovery."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pytest_icbench.errors import UsageError

MODE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class OpenDirectoryError(UsageError):
    """A directory of sessions is not root's, or others can write there."""


def make(path: Path) -> None:
    """Makes a directory that only its owner enters, whatever the umask. Raises FileExistsError if there is one."""
    path.mkdir(mode=MODE)
    path.chmod(MODE)


def hold(path: Path) -> None:
    """Makes the directory of all sessions with the parents that it lacks, or checks and closes the present one.

    Older versions made it readable, which is put right. One that others could write to may hold anything.

    Raises OpenDirectoryError if others have, or had, a say in it or in one of its parents.
    """
    path = path.absolute()
    for parent in reversed(path.parents):
        if not os.path.lexists(parent):
            make(parent)
        _check(parent, remedy="give it to root and take the right to write from others", sticky=True)
    if not os.path.lexists(path):
        make(path)
    check(path)
    if stat.S_IMODE(path.lstat().st_mode) != MODE:
        path.chmod(MODE)


def check(path: Path) -> None:
    """Refuses a directory of sessions that is not this user's, or that others can write to.

    Raises OpenDirectoryError with the remedy.
    """
    _check(path, remedy="see what others have put there, and remove it", sticky=False)


def _check(path: Path, *, remedy: str, sticky: bool) -> None:
    """Raises OpenDirectoryError for a directory of others.

    Args:
        sticky: whether the directory may be root's, and open to all who can remove only their own files, as /tmp.
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        fault = "is a symbolic link"
    elif not stat.S_ISDIR(status.st_mode):
        fault = "is no directory"
    elif status.st_uid != os.geteuid() and not (sticky and status.st_uid == 0):
        fault = f"belongs to user {status.st_uid}"
    elif status.st_mode & _OTHERS_WRITE and not (sticky and status.st_mode & stat.S_ISVTX):
        fault = f"can be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
    else:
        return
    raise OpenDirectoryError(f"{path} {fault}, but sessions do as root what stands there: {remedy}")
