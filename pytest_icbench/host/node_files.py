# SPDX-License-Identifier: BSD-3-Clause
"""Files where a node's processes can write too, and sockets of running containers.

Such a process may put a link, a FIFO or a directory in the place of any file, at any moment. Root opens files there
from the descriptor of the directory, follows no link, waits for no other end, and checks what it has opened.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.namespaces import check_result
from pytest_icbench.host.rights import remedy_of

#: Size of a node's directory in MiB: VPP's shared memory, a NAT's rules or a page of 10 MB fit several times.
NODE_MIB = 256
#: Size of the directory of a session's logs in MiB: 16 logs at their bound (``process.LOG_MAX_BYTES``).
LOGS_MIB = 256
#: Size of a rig's directory in MiB: a switch's database, sockets and logs. Nodes cannot write to it.
RIG_MIB = 1024
#: The most files in any of them: a file without content takes kernel memory that its size does not count.
_MOST_FILES = 65_536
#: How long a directory may take to become empty, in seconds: the most files take a few.
EMPTIED_S = 30.0
_MS_NOSUID, _MS_NODEV = 2, 4
#: Since Linux 5.10: the kernel follows no link on this mount, whoever asks (a switch that opens a socket there).
_MS_NOSYMFOLLOW = 256
#: The number of openat2(2) is the same for every machine.
_OPENAT2 = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH, _IN_ROOT = 0x01, 0x02, 0x04, 0x08, 0x10
_NOT_FOLLOWED = _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_libc = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _open_at(directory: int, name: str, flags: int, resolve: int, mode: int = 0) -> int:
    """Calls openat2(2). Raises OSError."""
    flags |= os.O_CLOEXEC
    if not flags & os.O_PATH:
        flags |= os.O_NONBLOCK | os.O_NOCTTY
    how = _How(flags, mode, resolve)
    return check_result(
        _libc.syscall(_OPENAT2, directory, os.fsencode(name), ctypes.byref(how), ctypes.sizeof(how)), name
    )


def make_tmpfs(path: Path, mib: int, *, links: bool = False) -> None:
    """Makes a directory on a tmpfs of ``mib`` MiB, which ``cleanup.remove_tree`` removes.

    ``links``: whether symbolic links there can be followed. Raises ProvisionError.
    """
    path.mkdir()
    options = f"size={mib}m,nr_inodes={_MOST_FILES},mode=755".encode()
    flags = _MS_NOSUID | _MS_NODEV | (0 if links else _MS_NOSYMFOLLOW)
    try:
        check_result(_libc.mount(b"icbench", os.fsencode(path), b"tmpfs", flags, options))
    except OSError as error:
        raise ProvisionError(
            f"no tmpfs can be mounted at {path} ({error.strerror}): {remedy_of(error.errno, 'free some memory')}"
        ) from None


def _refused(path: Path, error: OSError) -> ProvisionError:
    """Returns the error of a file that cannot be used, with what a process of the node may have done to it."""
    if error.errno == errno.ENOSPC:
        return ProvisionError(f"{path} cannot be written: its node has filled its directory")
    if error.errno in (errno.ELOOP, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EXDEV):
        return ProvisionError(
            f"{path} cannot be used ({error.strerror}): a process of its node has put something else in its place"
        )
    return ProvisionError(f"{path} cannot be used: {error.strerror}")


def write_file(directory: Path, name: str, content: str | bytes) -> None:
    """Writes a new file in the place of whatever is there. Raises ProvisionError.

    Args:
        directory: a directory that no node can replace.
        name: the file's path below it.
    """
    data = content.encode() if isinstance(content, str) else content
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with _Parent(directory, name) as (parent, last):
            with suppress(FileNotFoundError):
                os.unlink(last, dir_fd=parent)
            descriptor = _open_at(parent, last, flags, _NOT_FOLLOWED, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        raise _refused(directory / name, error) from None


def read_file(directory: Path, name: str, offset: int = 0) -> bytes | None:
    """Returns a file's content from an offset on; None if there is no such file. Raises ProvisionError.

    The size of the node's directory bounds it.
    """
    try:
        with _Parent(directory, name) as (parent, last):
            descriptor = _open_at(parent, last, os.O_RDONLY | os.O_NOFOLLOW, _NOT_FOLLOWED)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileExistsError(errno.EEXIST, "it is not a regular file")
        with os.fdopen(descriptor, "rb") as file:
            file.seek(offset)
            return file.read(NODE_MIB * 2**20)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(directory / name, error) from None


def remove(directory: Path, name: str) -> None:
    """Removes a file or directory that may be missing. Raises ProvisionError."""
    try:
        with _Parent(directory, name) as (parent, last):
            remove_at(parent, last)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _refused(directory / name, error) from None


def make_directory(directory: Path, name: str) -> None:
    """Makes an empty directory in the place of whatever is there. Raises ProvisionError."""
    remove(directory, name)
    try:
        with _Parent(directory, name) as (parent, last):
            os.mkdir(last, 0o755, dir_fd=parent)
    except OSError as error:
        raise _refused(directory / name, error) from None


class _Parent:
    """Opens the directory of a file below another directory, without a link on the way. A context manager."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, Path(name)

    def __enter__(self) -> tuple[int, str]:
        flags = os.O_PATH | os.O_DIRECTORY
        top = os.open(self._directory, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self._descriptor = _open_at(top, str(self._name.parent), flags, _NOT_FOLLOWED)
        finally:
            os.close(top)
        return self._descriptor, self._name.name

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)


def open_in_root(root: Path, path: str) -> int:
    """Opens a file of a container as its own processes would: links lead nowhere but to its own files.

    Returns a descriptor for nothing but its name, ``/proc/self/fd/NUMBER``. Raises OSError. ``root``: its root
    directory, ``/proc/PID/root``.
    """
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _open_at(top, path, os.O_PATH, _IN_ROOT | _NO_MAGICLINKS)
    finally:
        os.close(top)


def remove_at(parent: int, name: str) -> None:
    """Removes a file, or a directory of any depth. Raises OSError for one that is a mount point, or has one below.

    Directories below it are lifted one by one to its top, so that neither memory nor the number of open files grows
    with their depth. ``parent``: descriptor of the directory above it.
    """
    try:
        os.unlink(name, dir_fd=parent)
        return
    except IsADirectoryError:
        top = _open_at(parent, name, os.O_RDONLY | os.O_DIRECTORY, _NOT_FOLLOWED | _NO_XDEV)
    try:
        _empty(top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _empty(top: int) -> None:
    prefix, lifted, deadline = secrets.token_hex(8), 0, time.monotonic() + EMPTIED_S
    while entries := _entries(top):
        if time.monotonic() > deadline:
            raise OSError(errno.EBUSY, "a process fills it again and again")
        for name, is_directory in entries:
            if not is_directory:
                os.unlink(name, dir_fd=top)
                continue
            inner = _open_at(top, name, os.O_RDONLY | os.O_DIRECTORY, _NOT_FOLLOWED | _NO_XDEV)
            try:
                for below, is_directory_too in _entries(inner):
                    if is_directory_too:
                        lifted += 1
                        os.rename(below, f"{prefix}{lifted}", src_dir_fd=inner, dst_dir_fd=top)
                    else:
                        os.unlink(below, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _entries(directory: int) -> list[tuple[str, bool]]:
    """Returns the names in a directory, each with whether it is a directory itself."""
    with os.scandir(directory) as found:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
