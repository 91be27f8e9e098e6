# SPDX-License-Identifier: BSD-3-Clause
"""Versions of the workload and of the DPDK inside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import WorkloadError
from pytest_icbench.host.process import run

_LINE = re.compile(r"icbench-workload (?P<workload>[^,\s]+), (?:DPDK (?P<dpdk>\S+)|without DPDK)")


@dataclass(frozen=True, slots=True)
class WorkloadVersion:
    """``dpdk`` is None for a workload built without it; ``build`` says by which compiler and how, None if unknown."""

    workload: str
    dpdk: str | None
    build: str | None = None


@lru_cache(maxsize=1)
def workload_version() -> WorkloadVersion:
    """What ``icbench-workload --version`` says. Raises WorkloadError if there is no workload that runs."""
    return version_of(workload_path())


def version_of(path: Path) -> WorkloadVersion:
    """What a workload's ``--version`` says. Raises WorkloadError if it is none."""
    said = run([str(path), "--version"], timeout_s=10, check=False)
    match = _LINE.search(said.stdout)
    if match is None:
        tail = (said.stderr or said.stdout).strip().splitlines()[-1:] or ["nothing"]
        raise WorkloadError(f"{path} --version says '{tail[0]}': build the workload anew (make)")
    build = re.search(r"^built with (.+)$", said.stdout, re.MULTILINE)
    return WorkloadVersion(match["workload"], match["dpdk"], build[1] if build else None)
