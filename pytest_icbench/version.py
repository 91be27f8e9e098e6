# SPDX-License-Identifier: BSD-3-Clause
"""The version of this package."""

from __future__ import annotations

from importlib import metadata


def package_version() -> str:
    """Returns the version of the installed package; ``unknown`` in a source tree that is not installed."""
    try:
        return metadata.version("pytest-icbench")
    except metadata.PackageNotFoundError:
        return "unknown"
