# SPDX-License-Identifier: BSD-3-Clause
"""The path of the workload's executable."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from pytest_icbench.errors import WorkloadError

NAME = "icbench-workload"
VARIABLE = "ICBENCH_WORKLOAD"


def workload_path() -> Path:
    """Returns the program to run: ``$ICBENCH_WORKLOAD``, else the package's, else the one built in this checkout.

    Raises:
        WorkloadError: there is none, or it may not be executed.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return _executable(Path(named), f"{VARIABLE} names {named}, which is not an executable file")
    package = Path(str(files("pytest_icbench")))
    candidates = (package / "bin" / NAME, package.parent / "build" / "workload" / NAME)
    for candidate in candidates:
        if candidate.is_file():
            return _executable(candidate, f"{candidate} may not be executed")
    raise WorkloadError(
        f"the executable {NAME} is missing: install the package (`make`), build it (`meson compile -C build`),"
        f" or name it in {VARIABLE}"
    )


def _executable(path: Path, complaint: str) -> Path:
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise WorkloadError(complaint)
    return path.absolute()
