# SPDX-License-Identifier: BSD-3-Clause
"""Reads files that people edit, copy and keep in git, in one place, so that all are read and refused alike.

A byte order mark and line ends of Windows are no part of a text, and UTF-16 with its mark is read as Windows' tools
write it. A file that has no end is refused before it is read.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from pytest_icbench.errors import UsageError

#: Most bytes of a file that users write, and of one that runs write.
MOST_BYTES, MOST_STORED_BYTES = 2**24, 2**30
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
_CONFLICT = re.compile(rb"^<{7} .*^={7}$.*^>{7} ", re.M | re.S)


def open_regular(path: Path, *, append: bool = False) -> BinaryIO:
    """Opens a file for reading. Raises OSError, also for a FIFO, a device or a directory; it never blocks.

    ``append``: whether it is opened for appending, too, and made if it is missing.
    """
    access = os.O_RDWR | os.O_APPEND | os.O_CREAT if append else os.O_RDONLY
    descriptor = os.open(path, access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file")
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "a+b" if append else "rb")


def read_bytes(path: Path, max_bytes: int = MOST_BYTES) -> bytes:
    """Returns a text file's bytes: UTF-8 without a mark, lines that end with a line feed.

    Raises OSError; ValueError with a clause that says what the file is: too large, a pointer of git-lfs, in conflict.
    """
    with open_regular(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"it has more than {max_bytes} bytes")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16").encode()
    data = data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")
    if data.startswith(_LFS_POINTER):
        raise ValueError("it is a pointer of git-lfs, not the file: run git lfs pull")
    if b"<<<<<<< " in data and _CONFLICT.search(data):
        raise ValueError("it has the marks of a merge conflict: resolve it")
    return data


def read_text(path: Path, max_bytes: int = MOST_BYTES, *, name: str = "", remedy: str = "") -> str:
    """Returns a file's text as ``read_bytes`` does.

    Args:
        name: begin of the message, if not the path alone.
        remedy: end of the message.

    Raises UsageError with one sentence.
    """
    try:
        return read_bytes(path, max_bytes).decode()
    except (OSError, ValueError) as error:  # a path can have a zero byte
        raise UsageError(
            f"{name or path} cannot be read ({getattr(error, 'strerror', None) or error}){remedy}"
        ) from None
