# SPDX-License-Identifier: BSD-3-Clause
"""The calls of a rig on one host that look around it: questions to servers, what processes used, and the CPUs."""

from __future__ import annotations

from functools import cached_property

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.host.net import sockets
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.cpu_state import CpuState
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import Question, RigCalls, Usage
from pytest_icbench.testbed.processes import RunningLaunch


class NodeCalls(RigCalls):
    """The part of a ``HostRig`` that asks servers in nodes, and CPUs; the rig keeps the launches."""

    _launches: dict[str, RunningLaunch]
    _session: HostSession
    placement: Placement

    def cpu_state(self) -> CpuState:
        return self._session.cpu_meter.read(workload_path(), self.placement.hand_overs)

    @cached_property
    def _inits(self) -> dict[int, int]:
        """The process that stays in each node, by endpoint index."""
        return {}

    def usage(self, launch_id: str) -> dict[int, Usage]:
        return self._launches[launch_id].usage()

    def ask(self, index: int, address: str, question: Question) -> str:
        return sockets.ask(f"/proc/{self._inits[index]}/ns/net", address, question)
