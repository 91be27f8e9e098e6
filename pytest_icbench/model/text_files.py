# SPDX-License-Identifier: BSD-3-Clause
"""Reads files that people edit, copy and keep in git, TOML too, in one place: all are read and refused alike.

A byte order mark and line ends of Windows are no part of a text, and UTF-16 with its mark is read as Windows' tools
write it. A file that has no end is refused before it is read.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pytest_icbench.errors import UsageError

#: The limits of cases, next to a scenario's file (``store.thresholds`` reads them).
LIMITS_FILE = "thresholds.toml"
#: The greatest depth of tables and lists.
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A TOML file as it was read.

    Attributes:
        text: the whole text, as a run keeps it.
        data: the parsed text.
    """

    path: Path
    text: str
    data: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        """The hash of the text in UTF-8."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_toml(path: Path, where: str = "") -> TomlFile:
    """Reads a file. Raises UsageError with one sentence; ``where`` is the option that names the file, if any does."""
    name = f"{where}: {path}" if where else str(path)
    text = read_text(path, name=name)
    return TomlFile(path, text, parse_toml(text, name))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Returns the data of a document. Raises UsageError with one sentence that begins with ``name``."""
    try:
        data = tomllib.loads(text)
        _check_numbers(data)
    except (ValueError, RecursionError) as error:  # ValueError: also of dates, and of numbers with thousands of digits
        raise UsageError(f"{name} is not valid TOML: {error}") from None
    return data


def _check_numbers(data: Any, depth: int = 0) -> None:
    """Raises ValueError for an integer beyond TOML's 64 bits, and for tables that are nested deeply."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(data, int) and not -(2**63) <= data < 2**63:
        raise ValueError("an integer has more than 64 bits")
    for item in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        _check_numbers(item, depth + 1)


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
