# SPDX-License-Identifier: BSD-3-Clause
"""The place of the packaged scenarios."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from pytest_icbench.errors import UsageError


def packaged_scenarios() -> Path:
    """Returns the directory of the package's scenarios, else of the checkout's. Raises UsageError if there is none."""
    package = Path(str(files("pytest_icbench")))
    for directory in (package / "scenarios", package.parent / "scenarios"):
        if any(directory.glob("test_*.py")):
            return directory
    raise UsageError(f"this installation has no scenarios below {package}: reinstall the package")
