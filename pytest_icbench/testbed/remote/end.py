# SPDX-License-Identifier: BSD-3-Clause
"""A host as its other end sees it: what it can run, its facts, a session, rigs. Arguments and results are plain JSON.

The same questions are asked of the host on which pytest runs; see ``bench``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, Unsupported, UsageError, WorkloadError
from pytest_icbench.host import facts
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.uplink import Uplink
from pytest_icbench.testbed.doctor import examine
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.probe import unsupported_reason
from pytest_icbench.testbed.remote.uplinks import check as check_uplink
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

#: Calls that go to a rig.
RIG_CALLS = frozenset(
    (
        *("launch", "start", "tell", "poll", "log_tail", "pids", "end", "counters", "busy", "hardware", "batches"),
        *("assignment", "set_ageing", "check", "uplink_fault", "pause", "resume", "undo"),
    )
)
CALLS = frozenset(
    ("versions", "examine", "unsupported_reason", "resolve_auto", "plan", "identity", "treatment", "conditions")
)
SESSION_CALLS = frozenset(("hold", "prepare_cpus", "build", "give_back"))
#: Stands in a command line for the workload, whose place each host knows itself.
WORKLOAD = "@workload"


class HostEnd:
    """Takes the calls of one connection.

    Args:
        wake: descriptor that becomes readable when there is another call: a poll ends then.
    """

    def __init__(self, wake: int | None = None) -> None:
        self._wake = wake
        self._switches = builtin_switches()
        self._session = HostSession.probing()
        self._rigs: dict[str, HostRig] = {}
        self._numbers = itertools.count(1)

    def call(self, name: str, arguments: Sequence[Any]) -> Any:
        """A call by its name. Raises UsageError for one that there is not, and what the call raises."""
        if name in CALLS or name in SESSION_CALLS:
            return getattr(self, name)(*arguments)
        if name in RIG_CALLS:
            rig_id, *rest = arguments
            return self._on_rig(str(rig_id), name, rest)
        raise UsageError(f"there is no call '{name}': install the same version on both hosts")

    def _on_rig(self, rig_id: str, name: str, arguments: list[Any]) -> Any:
        if name == "undo":
            rig = self._rigs.pop(rig_id, None)
            return None if rig is None else rig.undo()
        if rig_id not in self._rigs:
            raise ProvisionError("the rig is not built")
        if name == "launch":
            program = str(workload_path())
            for process in arguments[0]["processes"]:
                process["argv"] = [program if word == WORKLOAD else word for word in process["argv"]]
        return getattr(self._rigs[rig_id], name)(*arguments)

    def versions(self) -> dict[str, Any]:
        """Of the workload and its DPDK. Raises WorkloadError where there is none."""
        from pytest_icbench.driver.workload.version import workload_version

        return asdict(workload_version())

    def examine(self, pf: str | None) -> list[dict[str, Any]]:
        """What ``icbench doctor`` finds."""
        return [finding.to_dict() for finding in examine(pf=pf)]

    def unsupported_reason(self, switch: str, api: str, asked: Mapping[str, Any]) -> str | None:
        """Why this host cannot run a switch with an API technique, None if it can.

        Args:
            asked: ``node`` (kind), ``binary`` (path or null), ``hugepage_size_kib``, ``uplink`` (``Uplink.to_dict``, or
                left out).
        """
        cls = self._switches.get(switch)
        if cls is None:
            return f"{switch} comes from another package, and such a switch runs on one host only"
        binary = Path(asked["binary"]) if asked.get("binary") else None
        if binary is not None and not binary.is_file():
            return f"there is no file {binary}, which is named for {switch}"
        if asked.get("uplink"):
            try:
                check_uplink(Uplink(**asked["uplink"]))
            except Unsupported as error:
                return str(error)
        session = HostSession.probing(hugepage_size_kib=int(asked["hugepage_size_kib"]))
        return unsupported_reason(cls, api, session, node=str(asked["node"]), binary=binary)

    def resolve_auto(self, needs: Sequence[Sequence[int]]) -> str:
        """See ``placement.resolve_auto``."""
        from pytest_icbench.testbed.placement import resolve_auto

        return resolve_auto(Topology.read(self._session.root), [(workers, ends) for workers, ends in needs])

    def plan(self, workers: int, endpoints: int | Sequence[int], policy: Any) -> dict[str, Any]:
        """See ``placement.plan``, and ``plan_given`` where CPUs are given. Raises Unsupported."""
        from pytest_icbench.testbed.placement import plan, plan_given

        topology = Topology.read(self._session.root)
        if not isinstance(endpoints, int):
            return asdict(plan_given(topology, workers=workers, endpoints=endpoints, policy=policy))
        return asdict(plan(topology, workers=workers, endpoints=endpoints, policy=policy))

    def identity(self) -> dict[str, Any]:
        return facts.identity(self._session.root)

    def treatment(self) -> dict[str, Any]:
        """Versions included."""
        return {**facts.treatment(self._session.root), "workload": self.versions()}

    def conditions(self, cpus: Sequence[int]) -> dict[str, Any]:
        return facts.conditions(self._session.root, cpus)

    def hold(self, arguments: Mapping[str, Any]) -> list[str]:
        """Takes the host; what was undone for dead sessions, a sentence each.

        Args:
            arguments: ``binaries`` (paths by switch), ``hugepage_size_kib``, ``pf``, ``configs``.

        Raises what opening a HostSession raises.
        """
        if self._session.live:
            return []
        binaries = {name: Path(path) for name, path in arguments["binaries"].items()}
        try:
            self._session = HostSession(UNDO_KINDS, **{**arguments, "binaries": binaries})
        except Unsupported as error:
            raise ProvisionError(str(error)) from None
        return self._session.recovered

    def prepare_cpus(self, cpus: Sequence[int]) -> list[str]:
        """Fixes the frequency of these CPUs; warnings."""
        from pytest_icbench.host.resource.frequency import prepare_cpus

        return list(prepare_cpus(self._session, set(cpus)).warnings)

    def build(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A rig: what ``HostRig.prepare`` says of it, and its ``rig`` for the calls to it."""
        rig = HostRig(self._session, self._switches, wake=self._wake)
        made = rig.prepare(spec)
        rig_id = f"x{next(self._numbers)}"
        self._rigs[rig_id] = rig
        return {**made, "rig": rig_id}

    def give_back(self) -> None:
        """Unmakes everything. Idempotent. Raises ProvisionError with what remains."""
        failures = []
        for rig in [self._rigs.pop(rig_id) for rig_id in list(self._rigs)]:
            try:
                rig.undo()
            except (ProvisionError, WorkloadError) as error:
                failures.append(str(error))
        session, self._session = self._session, HostSession.probing()
        session.close()
        if failures:
            raise ProvisionError("\n".join(failures))
