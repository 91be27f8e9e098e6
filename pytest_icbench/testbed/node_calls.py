# SPDX-License-Identifier: BSD-3-Clause
"""The calls of a rig on one host that look into its nodes: questions to servers, and what processes used."""

from __future__ import annotations

from functools import cached_property

from pytest_icbench.host.net import sockets
from pytest_icbench.model.rig import Question, RigCalls, Usage
from pytest_icbench.testbed.processes import RunningLaunch


class NodeCalls(RigCalls):
    """The part of a ``HostRig`` that asks servers in nodes; the rig keeps the launches."""

    _launches: dict[str, RunningLaunch]

    @cached_property
    def _inits(self) -> dict[int, int]:
        """The process that stays in each node, by endpoint index."""
        return {}

    def usage(self, launch_id: str) -> dict[int, Usage]:
        return self._launches[launch_id].usage()

    def ask(self, index: int, address: str, question: Question) -> str:
        return sockets.ask(f"/proc/{self._inits[index]}/ns/net", address, question)
