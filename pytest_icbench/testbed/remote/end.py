# SPDX-License-Identifier: BSD-3-Clause
"""A host as the other end of a connection sees it: what it can run, its facts, a session, rigs.

``Testbed`` does the same on the host on which pytest runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_icbench.driver.node.precedence import precede
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.driver.workload.version import WorkloadVersion, workload_version
from pytest_icbench.errors import ProvisionError, Unsupported, UsageError, WorkloadError
from pytest_icbench.host import facts
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.resource.frequency import prepare_cpus
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.placement import Placement, Policy
from pytest_icbench.model.rig import RigSpec
from pytest_icbench.testbed.doctor import examine
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.placement import plan, plan_given, resolve_auto
from pytest_icbench.testbed.probe import unsupported_reason, why_not
from pytest_icbench.testbed.remote.calls import (
    HOST_CALLS,
    RIG_CALLS,
    HostCalls,
    RemoteRigFacts,
    SessionArguments,
    SwitchQuestion,
)
from pytest_icbench.testbed.remote.uplinks import check as check_uplink
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS


class HostEnd(HostCalls):
    """The host behind a connection, which takes its calls.

    Args:
        wake: descriptor that becomes readable when there is another call, which ends a poll.
    """

    def __init__(self, wake: int | None = None) -> None:
        self._wake = wake
        self._switches = builtin_switches()
        self._session = HostSession.probing()
        self._rigs: dict[str, HostRig] = {}
        self._numbers = itertools.count(1)

    def answer(self, name: str, arguments: Sequence[Any]) -> Any:
        """Answers a call by its name, with plain JSON data in and out.

        Raises UsageError for an unknown call, and what the call raises.
        """
        if name in HOST_CALLS:
            return HOST_CALLS[name].answer(self, arguments)
        if name not in RIG_CALLS:
            raise UsageError(f"there is no call '{name}': install the same version on both hosts")
        rig, *rest = arguments
        if rig not in self._rigs:
            raise ProvisionError("the rig is not built")
        return RIG_CALLS[name].answer(self._rigs[rig], rest)

    def versions(self) -> WorkloadVersion:
        return workload_version()

    def examine(self, pf: str | None, asked: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
        return tuple(finding.to_dict() for finding in examine(pf=pf, asked=asked))

    def unsupported_reason(self, question: SwitchQuestion) -> str | None:
        cls = self._switches.get(question.switch)
        if cls is None:
            return f"{question.switch} comes from another package, and such a switch runs on one host only"
        binary = None if question.binary is None else Path(question.binary)
        if binary is not None and not binary.is_file():
            return f"there is no file {binary}, which is named for {question.switch}"
        uplink = question.uplink
        if uplink is not None and (reason := why_not(lambda: check_uplink(uplink))) is not None:
            return reason
        session = HostSession.probing(hugepage_size_kib=question.hugepage_size_kib)
        return unsupported_reason(cls, question.port, question.api, session, node=question.node, binary=binary)

    def resolve_auto(self, needs: tuple[tuple[int, int], ...]) -> Policy:
        return resolve_auto(Topology.read(self._session.root), needs)

    def plan(self, workers: int, endpoints: int, policy: Any, cpus: tuple[int, ...] = ()) -> Placement:
        topology = Topology.read(self._session.root)
        if cpus:
            return plan_given(topology, workers=workers, endpoints=cpus, policy=policy)
        return plan(topology, workers=workers, endpoints=endpoints, policy=policy)

    def identity(self) -> dict[str, Any]:
        return facts.identity(self._session.root)

    def treatment(self) -> dict[str, Any]:
        known = facts.treatment(self._session.root)
        return {**known, "workload": asdict(self.versions()), "precedence": self._session.precedence}

    def conditions(self, cpus: tuple[int, ...]) -> dict[str, Any]:
        return facts.conditions(self._session.root, cpus)

    def hold(self, arguments: SessionArguments) -> tuple[str, ...]:
        if self._session.live:
            return ()
        try:
            self._session = HostSession(
                UNDO_KINDS,
                binaries={name: Path(path) for name, path in arguments.binaries.items()},
                hugepage_size_kib=arguments.hugepage_size_kib,
                pf=arguments.pf,
                configs=arguments.configs,
            )
        except Unsupported as error:
            raise ProvisionError(str(error)) from None
        if arguments.precedence == "all":
            precede(self._session)
        return tuple(self._session.recovered)

    def prepare_cpus(self, cpus: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(prepare_cpus(self._session, set(cpus)).warnings)

    def build(self, spec: RigSpec) -> RemoteRigFacts:
        rig = HostRig(self._session, self._switches, wake=self._wake)
        rig_facts = rig.prepare(spec)
        rig_id = f"x{next(self._numbers)}"
        self._rigs[rig_id] = rig
        return RemoteRigFacts(rig_id, rig_facts)

    def undo(self, rig: str) -> None:
        built = self._rigs.pop(rig, None)
        if built is not None:
            built.undo()

    def give_back(self) -> None:
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
