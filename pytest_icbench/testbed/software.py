# SPDX-License-Identifier: BSD-3-Clause
"""How the software of a rig is started again, as a baseline keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_icbench.config.switches import SwitchConfig
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import WorkloadError
from pytest_icbench.host.programs import program_at
from pytest_icbench.model.function_facts import function_key
from pytest_icbench.model.old_version import OldVersion, Program
from pytest_icbench.testbed.rig import Rig


def software_of(
    rig: Rig,
    binaries: Mapping[str, Path],
    program: Path | None,
    workload: Path | None,
    configs: Mapping[str, SwitchConfig],
) -> OldVersion:
    """Returns the software of a rig.

    Args:
        binaries: the user's paths by name.
        program: that of the switch, None for a switch of the kernel.
        workload: that of a candidate; None: the installed one.
        configs: the user's configurations, by switch and ``function:COMPONENT``.
    """
    first = rig.function_facts[0] if rig.function_facts else None
    function = None
    if first is not None:
        # A driver does not tell where it found a program that the user has not named.
        function = program_at(binaries.get(first.component), first.version) or Program(version=first.version)
    return OldVersion(
        switch=program_at(program, rig.switch_facts.version),
        # The reference link has the same endpoints, so their libraries tell nothing about the switch.
        workload=program_at(workload or _workload(), own_libraries=False),
        function=function,
        component=None if first is None else first.component,
        config=_config(configs.get(rig.case.switch)),
        function_config={} if first is None else _config(configs.get(function_key(first.component))),
        kernel=rig.session.root.read("/proc/sys/kernel/osrelease"),
    )


def _config(config: SwitchConfig | None) -> dict[str, Any]:
    return {} if config is None else {"sha256": config.file.sha256, "values": dict(config.values)}


def _workload() -> Path | None:
    try:
        return workload_path()
    except WorkloadError:
        return None
