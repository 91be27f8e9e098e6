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
from pytest_icbench.model.text_files import read_text

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


def read(path: Path, where: str = "") -> TomlFile:
    """Reads a file. Raises UsageError with one sentence; ``where`` is the option that names the file, if any does."""
    name = f"{where}: {path}" if where else str(path)
    text = read_text(path, name=name)
    return TomlFile(path, text, parse(text, name))


def parse(text: str, name: str) -> dict[str, Any]:
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
