# SPDX-License-Identifier: BSD-3-Clause
"""Which applications this host has, and their programs' versions. Changes nothing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace

from pytest_icbench.driver.application.protocol import Application, Program
from pytest_icbench.driver.application.registry import applications
from pytest_icbench.driver.guard import make_application
from pytest_icbench.driver.workload.executable import NAME as WORKLOAD
from pytest_icbench.driver.workload.version import workload_version
from pytest_icbench.errors import NotStarted, ProvisionError, Unsupported, WorkloadError
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.host.process import run
from pytest_icbench.measure.summary.summarize import Surroundings
from pytest_icbench.model.case import Case

#: How long a program may take to tell its version, in seconds.
_VERSION_S = 10.0


def versions(cls: type[Application]) -> dict[str, str]:
    """Returns the versions of an application's programs by name.

    Raises Unsupported with the remedy if one of them is not installed.
    """
    return {program.name: _version(cls, program) for program in (cls.server, cls.client)}


def _version(cls: type[Application], program: Program) -> str:
    if program.name == WORKLOAD:
        return _workload(cls)
    path = shutil.which(program.name)
    if path is None:
        remedy = program.remedy or f"apt install {program.package}"
        raise Unsupported(f"{cls.name} needs the program {program.name}, which is not installed: {remedy}")
    try:
        told = run(program.version_command or [path, *program.version_argv], timeout_s=_VERSION_S, check=False)
    except NotStarted as error:
        if program.version_command:
            return "unknown"
        raise Unsupported(f"{cls.name}: {str(error).splitlines()[0]}") from None
    match = re.search(program.version_pattern, told.stdout + told.stderr)
    return match[1] if match else "unknown"


def _workload(cls: type[Application]) -> str:
    try:
        return workload_version().workload
    except WorkloadError as error:
        raise Unsupported(f"{cls.name}: {error}") from None


def probed(label: str) -> Application:
    """Returns the application of a case's label, with the versions of its programs.

    Its calls are guarded. Raises Unsupported if one of them is not installed, UsageError for an unknown application.
    """
    return make_application(label, versions(applications()[label.partition(":")[0]]))


def with_application(case: Case, around: Surroundings) -> tuple[Application | None, Surroundings]:
    """Returns the application of a case, and the circumstances with its facts; without one None, and unchanged."""
    if case.app is None:
        return None, around
    chosen = probed(case.app)
    treatment = {**around.treatment, "application": dict(chosen.versions)}
    return chosen, replace(around, treatment=treatment, open_loop=chosen.open_loop)


def findings() -> Iterator[Finding]:
    """Returns findings for ``icbench doctor``, one for each application."""
    for name, cls in applications().items():
        try:
            told = versions(cls)
        except (Unsupported, ProvisionError) as error:
            sentence, _, remedy = str(error).partition(": ")
            yield Finding(Level.NOTE, f"app {name}", sentence, remedy)
        else:
            yield Finding(Level.GOOD, f"app {name}", ", ".join(f"{key} {value}" for key, value in told.items()))
