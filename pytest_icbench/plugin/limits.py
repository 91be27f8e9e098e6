# SPDX-License-Identifier: BSD-3-Clause
"""The limits of a session's tests. What judges is loaded for a file, or when a test judges, and not to collect."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_icbench.gate.file_names import LIMITS_FILE

if TYPE_CHECKING:
    from pytest_icbench.gate.thresholds import Thresholds


class LimitsFile:
    """The limits of the tests in a file.

    Args:
        path: the file with the limits, which is read at once; None without one. Raises UsageError.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        if path is not None:
            _ = self.thresholds

    @cached_property
    def thresholds(self) -> Thresholds:
        from pytest_icbench.gate.thresholds import Thresholds, load

        return Thresholds() if self._path is None else load(self._path)


class LimitsFiles:
    """The limits of all tests; each file is read once.

    Args:
        named: the file that the user names for all; None: the one beside each test's file, if there is one.
    """

    def __init__(self, named: Path | None) -> None:
        self._named = named
        self._read: dict[Path, LimitsFile] = {}

    def of(self, path: Path) -> LimitsFile:
        """Returns the limits of the tests in a file. Raises UsageError."""
        file = self._named or path.parent / LIMITS_FILE
        if file not in self._read:
            self._read[file] = LimitsFile(file if self._named is not None or file.is_file() else None)
        return self._read[file]
