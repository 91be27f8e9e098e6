# SPDX-License-Identifier: BSD-3-Clause
"""The path of the workload's executable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

from pytest_icbench.errors import WorkloadError

NAME = "icbench-workload"
VARIABLE = "ICBENCH_WORKLOAD"
#: The directory of the package that is imported.
_SOURCES = Path(__file__).parents[2]
#: The end of a remedy for a workload that lacks something, or is none.
REBUILD = "install the package again (in a checkout: `make`)"


def workload_path() -> Path:
    """Returns the program to run: ``$ICBENCH_WORKLOAD``, else the package's, else one built here or installed.

    Raises WorkloadError: there is none, or it may not be executed.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return _executable(Path(named), f"{VARIABLE} names {named}, which is not an executable file")
    candidates = list(_candidates())
    for candidate in candidates:
        if candidate.is_file():
            return _executable(candidate, f"{candidate} may not be executed")
    raise WorkloadError(
        f"the executable {NAME} is in none of {', '.join(map(str, candidates))}: {REBUILD}, or name it in {VARIABLE}"
    )


def _candidates() -> Iterator[Path]:
    """Yields where the program may be.

    In a checkout ``python -m pytest`` imports the sources, which have none; then it is that of the installed package.
    Of an editable install the files are in several directories, and only one that is there has a path.
    """
    resource = files("pytest_icbench").joinpath("bin").joinpath(NAME)
    if isinstance(resource, Path):
        yield resource
    yield _SOURCES.parent / "build" / "workload" / NAME
    with suppress(PackageNotFoundError):
        yield Path(str(distribution("pytest-icbench").locate_file(f"pytest_icbench/bin/{NAME}")))


def _executable(path: Path, complaint: str) -> Path:
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise WorkloadError(complaint)
    return path.absolute()
