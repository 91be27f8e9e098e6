# SPDX-License-Identifier: BSD-3-Clause
"""Reads the user's TOML files in one place, so that all errors in them are reported alike."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError


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
        """The hash of the file's bytes."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read(path: Path, where: str = "") -> TomlFile:
    """Reads a file. Raises UsageError with one sentence; ``where`` is the option that names the file, if any does."""
    name = f"{where}: {path}" if where else str(path)
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} cannot be read ({getattr(error, 'strerror', None) or error})") from None
    return TomlFile(path, text, parse(text, name))


def parse(text: str, name: str) -> dict[str, Any]:
    """Returns the data of a document. Raises UsageError with one sentence that begins with ``name``."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{name} is not valid TOML: {error}") from None
