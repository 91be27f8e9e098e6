# SPDX-License-Identifier: BSD-3-Clause
"""The candidates of a run: the binary, configuration and workload that a case's name stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_icbench.config.candidates import of_switch
from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, UsageError, WorkloadError
from pytest_icbench.host.facts import sha256
from pytest_icbench.model.candidate import WORKLOAD, Candidate
from pytest_icbench.model.case import Case

if TYPE_CHECKING:
    from pytest_icbench.driver.workload.version import WorkloadVersion


class Candidates:
    """The candidates that ``--icbench-variant`` names. Each has what its base has, but for the one thing that is named.

    Attributes:
        binaries: paths by candidate, such as ``ovs:new`` and ``workload:new``.

    Raises UsageError for a file that is no workload.
    """

    def __init__(self, catalogue: Iterable[str], options: Options) -> None:
        self.binaries: dict[str, Path] = {}
        self._known: dict[tuple[str, str], Candidate] = {}
        self._versions: dict[str, WorkloadVersion] = {}
        for candidate in options.variant:
            if candidate.target == WORKLOAD:
                self.binaries[candidate.key] = candidate.path
                self._versions[candidate.name] = _version(candidate)
        for switch in catalogue:
            for candidate in of_switch(options.variant, switch):
                self._known[switch, candidate.name] = candidate
                has_binary = candidate.target == switch and candidate.kind == "binary"
                binary = candidate.path if has_binary else options.binaries.get(switch)
                if binary is not None:
                    self.binaries[f"{switch}:{candidate.name}"] = binary

    def of(self, case: Case) -> Candidate | None:
        """Returns the candidate of a case, None for a base."""
        return None if case.candidate is None else self._known[case.switch, case.candidate]

    def built(self, case: Case) -> Case:
        """Returns the case for which the rig is built: a candidate can be another mode of the switch."""
        candidate = self.of(case)
        return case if candidate is None or candidate.kind != "variant" else replace(case, mode=candidate.value or None)

    def workload(self, case: Case) -> Path | None:
        """Returns the workload of a case's candidate, None if it has the installed one."""
        candidate = self.of(case)
        return None if candidate is None or candidate.target != WORKLOAD else candidate.path

    def workload_treatment(self, case: Case) -> dict[str, Any]:
        """Returns version and build of that workload, as a result keeps them; empty without one."""
        if self.workload(case) is None:
            return {}
        version = self._versions[case.candidate or ""]
        return {"workload": version.workload, "workload_build": version.build, "dpdk": version.dpdk}

    def treatment(self, case: Case) -> dict[str, Any] | None:
        """Returns what a result keeps of a case's candidate: what is replaced and by what, without directories."""
        candidate = self.of(case)
        if candidate is None:
            return None
        if candidate.kind == "variant":
            return {"target": candidate.target, "kind": candidate.kind, "value": candidate.value}
        path = candidate.path
        digest = sha256(path) if candidate.config is None else candidate.config.sha256
        return {"target": candidate.target, "kind": candidate.kind, "value": path.name, "sha256": digest}


def _version(candidate: Candidate) -> WorkloadVersion:
    from pytest_icbench.driver.workload.version import version_of

    try:
        return version_of(candidate.path)
    except (WorkloadError, ProvisionError) as error:
        raise UsageError(f"--icbench-variant: {candidate.key}: {error}") from None
