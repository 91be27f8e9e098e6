# SPDX-License-Identifier: BSD-3-Clause
"""The candidates of a run: the binary, configuration and workload that a case's name stands for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_icbench.config.candidates import select_for_switch
from pytest_icbench.config.options import Options
from pytest_icbench.config.switches import SwitchConfig
from pytest_icbench.driver.node.registry import node_kinds, node_sides
from pytest_icbench.driver.workload.executable import NAME, workload_path
from pytest_icbench.driver.workload.workload_version import WorkloadVersion, version_of
from pytest_icbench.errors import ProvisionError, UsageError, WorkloadError
from pytest_icbench.host.host_facts import sha256
from pytest_icbench.host.resource.sysctl import check_options
from pytest_icbench.host.root import Root
from pytest_icbench.model.candidate import WORKLOAD, Candidate, OldVersion, Replaced
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import function_key
from pytest_icbench.wording import alternatives


class Candidates:
    """The candidates that ``--icbench-candidate`` names. Each differs from its base in the one thing that is named.

    Args:
        configs: configurations of candidates, by their keys.
        root: files of the host, for its kernel options.

    ``binaries``: paths by candidate, such as ``ovs:new`` and ``workload:new``. Raises UsageError for a replacement that
    has no effect here: a file that is not a workload, a kernel option that the host lacks or has already.
    """

    def __init__(
        self,
        catalogue: Iterable[str],
        options: Options,
        configs: Mapping[str, SwitchConfig] = MappingProxyType({}),
        root: Root | None = None,
    ) -> None:
        self.binaries: dict[str, Path] = {}
        self._configs = configs
        self._known: dict[tuple[str, str], Candidate] = {}
        self._versions: dict[str, WorkloadVersion] = {}
        #: Workloads of images, by the name of the candidate.
        self._inside: dict[str, Path] = {}
        for candidate in options.candidate:
            where = f"--icbench-candidate: {candidate.key}"
            check_options(root or Root(), candidate.options, where)
            check_image(candidate, options.node, where)
            self._take_workload(candidate, where)
        for switch in catalogue:
            for candidate in select_for_switch(options.candidate, switch):
                self._known[switch, candidate.name] = candidate
                has_binary = candidate.target == switch and candidate.kind == "binary"
                binary = candidate.path if has_binary else options.binaries.get(switch)
                if binary is not None:
                    self.binaries[f"{switch}:{candidate.name}"] = binary

    def _take_workload(self, candidate: Candidate, where: str) -> None:
        """Registers the workload that a candidate brings: a binary, or the one in its image. Raises UsageError."""
        if candidate.target == WORKLOAD and candidate.kind == "binary":
            self.binaries[candidate.key] = candidate.path
            self._versions[candidate.name] = _version(candidate.path, where)
        elif candidate.kind == "image" and (inside := _inside(candidate.path)) is not None:
            self._inside[candidate.name] = inside
            if os.geteuid() == 0:  # without root this is a plan only
                self._versions[candidate.name] = _version(inside, where, candidate.path)

    def add_old(self, case: Case, candidate: Candidate) -> Case:
        """Makes a baseline's version a candidate, in place of an earlier one. Returns its case."""
        self._known[case.switch, candidate.name] = candidate
        old = candidate.old or OldVersion()
        for key, program in ((case.switch, old.switch), (WORKLOAD, old.workload)):
            self.binaries.pop(f"{key}:{candidate.name}", None)
            if program is not None and program.path is not None:
                self.binaries[f"{key}:{candidate.name}"] = Path(program.path)
        if (workload := self.binaries.get(f"{WORKLOAD}:{candidate.name}")) is not None:
            self._versions[candidate.name] = _version(workload, f"the old version of {case.id}")
        return replace(case, candidate=candidate.name)

    def find(self, case: Case) -> Candidate | None:
        """Returns the candidate of a case, None for a base."""
        return None if case.candidate is None else self._known[case.switch, case.candidate]

    def resolve(self, case: Case) -> Case:
        """Returns the case for which the rig is built and launched: with another mode of the switch, or another API."""
        candidate = self.find(case)
        if candidate is not None and candidate.kind == "mode":
            return replace(case, mode=candidate.value or None)
        return case if candidate is None or candidate.kind != "api" else replace(case, api=candidate.value)

    def find_replacements(self, case: Case) -> Replaced:
        """Returns the parts of a case's rig that replace its base's."""
        candidate = self.find(case)
        if candidate is None:
            return Replaced()
        if candidate.old is not None:
            return _of_old(candidate.old, case.switch)
        if candidate.kind in ("binary", "config") and candidate.target != WORKLOAD:
            name = candidate.component or candidate.target
            if candidate.kind == "binary":
                return Replaced(programs={name: candidate.path})
            key = function_key(name) if candidate.component else name
            return Replaced(configs={key: self._configs[candidate.key].values})
        env = {"LD_LIBRARY_PATH": candidate.value} if candidate.kind == "lib" else {}
        image = candidate.path if candidate.kind == "image" else None
        return Replaced(env=env, sysctl=candidate.options, image=image)

    def workload(self, case: Case) -> Path | None:
        """Returns the workload of a case's candidate, None if it has the installed one."""
        name = case.candidate or ""
        return self.binaries.get(f"{WORKLOAD}:{name}") or self._inside.get(name)

    def workload_treatment(self, case: Case) -> dict[str, Any]:
        """Returns version and build of that workload, as a result keeps them; empty without one."""
        version = self._versions.get(case.candidate or "")
        if version is None:
            return {}
        return {"workload": version.workload, "workload_build": version.build, "dpdk": version.dpdk}

    def treatment(self, case: Case) -> dict[str, Any] | None:
        """Returns a candidate as results keep it: the replaced part and the new one, without directories."""
        candidate = self.find(case)
        if candidate is None:
            return None
        kept: dict[str, Any] = {"target": candidate.target, "kind": candidate.kind, "value": candidate.value}
        if candidate.kind in ("binary", "config", "lib", "image"):
            kept["value"] = candidate.path.name
        if candidate.config is not None:
            return {**kept, "sha256": candidate.config.sha256}
        return {**kept, "sha256": sha256(candidate.path)} if candidate.kind == "binary" else kept


def _of_old(old: OldVersion, switch: str) -> Replaced:
    component = old.component or ""
    programs = {switch: old.switch, component: old.function}
    configs = {switch: old.config, function_key(component): old.function_config}
    return Replaced(
        programs={name: Path(program.path) for name, program in programs.items() if program and program.path},
        configs={name: config.get("values", {}) for name, config in configs.items()},
    )


def check_image(candidate: Candidate, node: str, where: str) -> None:
    """Raises UsageError for an image that nodes of a kind do not take, or that lacks a directory."""
    if candidate.kind != "image":
        return
    if not all(getattr(cls, "takes_image", False) for cls in node_sides(node).values()):
        able = [cls.kind for cls in node_kinds() if getattr(cls, "takes_image", False)]
        raise UsageError(f"{where}: nodes of kind {node} take no image: give --icbench-node {alternatives(able)}")
    with suppress(WorkloadError):  # without a workload nothing can run
        program = workload_path().parent
        if program.is_relative_to("/usr") and not (candidate.path / program.relative_to("/")).is_dir():
            raise UsageError(f"{where}: the image has no directory {program}, where the workload is mounted: make it")


def _inside(image: Path) -> Path | None:
    """Returns the path, in an image, of the workload that it brings; None if it brings none."""
    paths = (Path("/usr/local/bin", NAME), Path("/usr/bin", NAME))
    return next((path for path in paths if (image / path.relative_to("/")).is_file()), None)


def _version(workload: Path, where: str, image: Path | None = None) -> WorkloadVersion:
    try:
        return version_of(workload, image)
    except (WorkloadError, ProvisionError) as error:
        raise UsageError(f"{where}: {error}") from None
