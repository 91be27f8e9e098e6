# SPDX-License-Identifier: BSD-3-Clause
"""The declarations of a second host's calls: what it can run, its facts, a session. Its rigs have their own."""

# The body of a declared call never runs.
# mypy: disable-error-code="empty-body"
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_icbench.driver.workload.workload_version import WorkloadVersion
from pytest_icbench.host.findings import Finding
from pytest_icbench.host.host_session import SessionOptions
from pytest_icbench.model.calls import Forwarding, call, calls_of
from pytest_icbench.model.placement import Placement, Policy
from pytest_icbench.model.rig import RigCalls, RigFacts, RigSpec
from pytest_icbench.model.uplink import Uplink


@dataclass(frozen=True, slots=True)
class SwitchQuestion:
    """The question whether a host can run a switch.

    Attributes:
        port: kind of its ports, resolved.
        api: technique of the endpoints.
        node: kind of nodes.
        binary: path of the user's binary.
    """

    switch: str
    port: str
    api: str
    node: str
    hugepage_size_kib: int
    binary: str | None = None
    uplink: Uplink | None = None


@dataclass(frozen=True, slots=True)
class BuildAnswer:
    """The id of a rig that was built, for the calls to it, and its facts."""

    rig: str
    facts: RigFacts


class HostCalls(Forwarding):
    """The calls of a second host."""

    @call()
    def versions(self) -> WorkloadVersion:
        """Returns the versions of the workload and its DPDK. Raises WorkloadError without a workload."""

    @call()
    def examine(self, pf: str | None, asked: tuple[str, ...]) -> tuple[Finding, ...]:
        """Returns the findings of ``icbench doctor --switch ASKED``."""

    @call()
    def unsupported_reason(self, question: SwitchQuestion) -> str | None:
        """Returns why this host cannot run a switch, None if it can."""

    @call()
    def resolve_auto(self, needs: tuple[tuple[int, int], ...]) -> Policy:
        """Returns what ``cpu_placement.resolve_auto`` does, for (workers, endpoints) of each case."""

    @call()
    def plan(self, workers: int, endpoints: int, policy: str, cpus: tuple[int, ...] = ()) -> Placement:
        """Returns what ``cpu_placement.plan`` does, or ``plan_given`` where CPUs are given. Raises Unsupported."""

    @call()
    def identity(self) -> dict[str, Any]:
        """Returns the identity of the host: see ``host.host_facts``."""

    @call()
    def treatment(self) -> dict[str, Any]:
        """Returns the treatment of the host, with the versions of its workload: see ``host.host_facts``."""

    @call()
    def conditions(self, cpus: tuple[int, ...]) -> dict[str, Any]:
        """Returns the conditions on these CPUs: see ``host.host_facts``."""

    @call()
    def hold(self, options: SessionOptions, precedence: str) -> tuple[str, ...]:
        """Takes the host; returns a sentence for each change of dead sessions that was undone.

        ``precedence``: the value of ``--icbench-precedence``. Raises what opening a HostSession raises.
        """

    @call()
    def prepare_cpus(self, cpus: tuple[int, ...]) -> tuple[str, ...]:
        """Fixes the frequency of these CPUs; returns warnings."""

    @call()
    def build(self, spec: RigSpec) -> BuildAnswer:
        """Builds a rig. Raises ProvisionError."""

    @call()
    def undo(self, rig: str) -> None:
        """Removes a rig. Idempotent. Raises ProvisionError with what remains."""

    @call()
    def give_back(self) -> None:
        """Removes everything. Idempotent. Raises ProvisionError with what remains."""


#: Calls by name; a rig's calls have its id before their arguments.
HOST_CALLS = calls_of(HostCalls)
RIG_CALLS = calls_of(RigCalls)
