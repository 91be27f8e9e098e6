# SPDX-License-Identifier: BSD-3-Clause
"""The versions of the workload and of its DPDK."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pytest_icbench.driver.workload.executable import REBUILD, workload_path
from pytest_icbench.errors import WorkloadError
from pytest_icbench.host.process import run

_LINE = re.compile(r"icbench-workload (?P<workload>[^,\s]+), (?:DPDK (?P<dpdk>\S+)|without DPDK)")


@dataclass(frozen=True, slots=True)
class WorkloadVersion:
    """The version of a workload.

    Attributes:
        dpdk: version of its DPDK; None if it was built without.
        build: compiler and flags; None if unknown.
        xdp: whether it was built with AF_XDP sockets.
    """

    workload: str
    dpdk: str | None
    build: str | None = None
    xdp: bool = False


@lru_cache(maxsize=1)
def workload_version() -> WorkloadVersion:
    """Returns the version of the installed workload. Raises WorkloadError if there is none that runs."""
    return version_of(workload_path())


def version_of(path: Path, image: Path | None = None) -> WorkloadVersion:
    """Returns the version of a workload, or of that in an image. Raises WorkloadError for another program."""
    within = [] if image is None else ["chroot", str(image)]
    output = run([*within, str(path), "--version"], timeout_s=10, check=False)
    match = _LINE.search(output.stdout)
    if match is None:
        tail = (output.stderr or output.stdout).strip().splitlines()[-1:] or ["nothing"]
        raise WorkloadError(f"{path} --version says '{tail[0]}': {REBUILD}")
    build = re.search(r"^built with (.+)$", output.stdout, re.MULTILINE)
    return WorkloadVersion(
        match["workload"], match["dpdk"], build[1] if build else None, "\nwith AF_XDP\n" in output.stdout
    )
