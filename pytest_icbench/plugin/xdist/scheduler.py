# SPDX-License-Identifier: BSD-3-Clause
"""Cases over several hosts: a worker of pytest-xdist on each, with one case at a time, kept to one rig if possible.

Imported only where xdist distributes. Tests that are no benchmarks are handed out as xdist does it by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdist.scheduler import LoadScheduling

from pytest_icbench.model.case_id import is_case, rig_group

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

#: A worker runs a test when it knows the next one: two each keep it busy, and the rest free for whoever is first.
_AHEAD = 2


class RigScheduling(LoadScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out one test after the other: to each worker of the rig that it has, then of one that nobody has.

    So a rig is built once on a host, and once more only where a host would be idle otherwise; and since nothing is
    handed out early, hosts end within a case of each other.
    """

    collection: list[str] | None
    pending: list[int]
    node2pending: dict[WorkerController, list[int]]

    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        self._groups: dict[int, tuple[object, ...] | None] = {}
        self._current: dict[WorkerController, tuple[object, ...] | None] = {}

    @property
    def _ours(self) -> bool:
        return bool(self.collection) and any(is_case(nodeid) for nodeid in self.collection or ())

    def schedule(self) -> None:
        """Initial distribution, and again when a worker comes later."""
        if self.collection is not None:
            super().schedule()
            return
        collections = list(self.node2collection.values())
        if not collections or not any(is_case(nodeid) for nodeid in collections[0]):
            super().schedule()
            return
        if not self._check_nodes_have_same_collection():
            return
        nodeids = collections[0]
        self.collection = nodeids
        self.pending[:] = range(len(nodeids))
        self._groups = {index: rig_group(nodeid) for index, nodeid in enumerate(nodeids)}
        for _ in range(_AHEAD):
            for node in self.nodes:
                self._send_tests(node, 1)
        if not self.pending:
            for node in self.nodes:
                node.shutdown()

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """A test of the node has ended."""
        if not self._ours:
            super().check_schedule(node, duration)
            return
        if node.shutting_down:
            return
        while self.pending and len(self.node2pending[node]) < _AHEAD:
            self._send_tests(node, 1)
        if not self.pending:
            # Nothing is left to tell the others about either: each runs its last test only then.
            for each in self.nodes:
                if not each.shutting_down:
                    each.shutdown()

    def _send_tests(self, node: WorkerController, num: int) -> None:
        if not self._groups:
            super()._send_tests(node, num)
            return
        for _ in range(min(num, len(self.pending))):
            index = self.pending.pop(self.pending.index(self._choose(node)))
            self._current[node] = self._groups[index]
            self.node2pending[node].append(index)
            node.send_runtest_some([index])

    def _choose(self, node: WorkerController) -> int:
        """The first pending test of the node's rig; else of the largest group that nobody works on; else of any."""
        waiting: dict[tuple[object, ...] | None, list[int]] = {}
        for index in self.pending:
            waiting.setdefault(self._groups[index], []).append(index)
        own = self._current.get(node)
        if node in self._current and own in waiting:
            return waiting[own][0]
        busy = {group for each, group in self._current.items() if each is not node and each in self.node2pending}
        free = [indexes for group, indexes in waiting.items() if group not in busy]
        return _largest(free or list(waiting.values()))[0]


def _largest(groups: Sequence[list[int]]) -> list[int]:
    """The group with most tests; of equal ones the first."""
    return max(groups, key=lambda indexes: (len(indexes), -indexes[0]))
