# SPDX-License-Identifier: BSD-3-Clause
"""The place of the packaged scenarios."""

from __future__ import annotations

from pathlib import Path

from pytest_icbench.errors import UsageError


def packaged_scenarios() -> Path:
    """Returns the directory of the package's scenarios, else of the checkout's. Raises UsageError if there is none."""
    package = Path(__file__).parents[1]
    for directory in (package / "scenarios", package.parent / "scenarios"):
        if any(directory.glob("test_*.py")):
            return directory
    raise UsageError(f"this installation has no scenarios below {package}: reinstall the package")
