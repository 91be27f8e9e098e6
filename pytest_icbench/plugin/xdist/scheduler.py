# SPDX-License-Identifier: BSD-3-Clause
"""Hands out cases to several hosts: each has a worker of pytest-xdist, with one case at a time, if possible of one rig.

Imported only if xdist distributes. Tests that are no benchmarks are handed out in xdist's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScheduling

from pytest_icbench.model.case_id import is_case, rig_group

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

#: A worker runs a test once it knows the next one: two tests keep it busy, and the rest stays free for other workers.
_AHEAD = 2


class HostScheduling(LoadScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out one test at a time: each worker gets tests of the rig that it has, then of one that no worker has.

    So a rig is built on one host, and on a second one only if that were idle otherwise. Since nothing is handed out
    early, all hosts end within the time of a case.

    Args:
        replaces: whether xdist replaces a lost worker. If not, it lets the remaining workers finish the tests that they
            were given. So they get all remaining tests then.
    """

    collection: list[str] | None
    pending: list[int]
    node2pending: dict[WorkerController, list[int]]

    def __init__(self, config: Any, log: Any = None, *, replaces: bool = True) -> None:
        super().__init__(config, log)
        self._replaces = replaces
        #: The group of each test by its index; empty if no test is a benchmark.
        self._groups: dict[int, tuple[object, ...] | None] = {}
        self._current: dict[WorkerController, tuple[object, ...] | None] = {}

    def schedule(self) -> None:
        """Hands out the first tests; called again when a worker comes later."""
        collections = list(self.node2collection.values())
        agreed = all(nodeids == collections[0] for nodeids in collections)
        if self.collection is not None or not agreed or not any(is_case(nodeid) for nodeid in collections[0]):
            super().schedule()
            return
        nodeids = collections[0]
        self.collection = nodeids
        self.pending[:] = range(len(nodeids))
        self._groups = {index: rig_group(nodeid) for index, nodeid in enumerate(nodeids)}
        for _ in range(_AHEAD):
            for node in self.nodes:
                self._hand_out(node)
        self._end_idle()

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Hands out the next test after one of the node has ended."""
        if not self._groups:
            super().check_schedule(node, duration)
            return
        if node.shutting_down:
            return
        while self.pending and len(self.node2pending[node]) < _AHEAD:
            self._hand_out(node)
        self._end_idle()

    def _end_idle(self) -> None:
        """Shuts down nodes with one test, which then run it. Until then they could take the tests of a lost node."""
        if self.pending:
            return
        for node in self.nodes:
            if len(self.node2pending[node]) < _AHEAD and not node.shutting_down:
                node.shutdown()

    def remove_node(self, node: WorkerController) -> str | None:
        """Removes a worker that has ended. Returns the test that it ran if it was lost."""
        crashed: str | None = super().remove_node(node)
        if self._replaces or (node.shutting_down and crashed is None):
            return crashed
        if self.collection is None:
            pytest.exit(f"worker {node.gateway.id} was lost before the cases were handed out: run it again")
        takers = [other for other in self.nodes if not other.shutting_down]
        while takers and self.pending:
            self._hand_out(min(takers, key=lambda taker: len(self.node2pending[taker])))
        left = len(self.pending)
        self._say(
            f"worker {node.gateway.id} is lost and not replaced: "
            + (
                f"{left} of its tests will not run, the other hosts are done"
                if left
                else "the other hosts have its tests"
            )
        )
        return crashed

    def _say(self, sentence: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"\n{sentence}")

    def _hand_out(self, node: WorkerController) -> None:
        """Sends the node its next test, if one is pending."""
        if not self.pending:
            return
        index = self.pending.pop(self.pending.index(self._choose(node)))
        self._current[node] = self._groups[index]
        self.node2pending[node].append(index)
        node.send_runtest_some([index])

    def _choose(self, node: WorkerController) -> int:
        """Returns the first pending test of the node's rig, else of the largest group that no other node works on."""
        waiting: dict[tuple[object, ...] | None, list[int]] = {}
        for index in self.pending:
            waiting.setdefault(self._groups[index], []).append(index)
        if node in self._current and self._current[node] in waiting:
            return waiting[self._current[node]][0]
        busy = {group for other, group in self._current.items() if other is not node and other in self.node2pending}
        free = [indexes for group, indexes in waiting.items() if group not in busy]
        return _largest(free or list(waiting.values()))[0]


def _largest(groups: Sequence[list[int]]) -> list[int]:
    """Returns the group with most tests; of equal ones the first."""
    return max(groups, key=lambda indexes: (len(indexes), -indexes[0]))
