# SPDX-License-Identifier: BSD-3-Clause
"""Hardware events of a launch: those of its processes, and those of the switch's worker CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_icbench.host.resource import perf


class HardwareEvents:
    """The counters of one launch at a time, from the first question for it on."""

    def __init__(self) -> None:
        self._launch_id = ""
        self._groups: dict[str, perf.Counters] = {}

    def read(self, launch_id: str, pids: Iterable[int], workers: Sequence[int]) -> dict[str, dict[str, int]] | None:
        """Returns the events by name, for ``endpoints`` and ``switch``; None where the kernel counts none."""
        if self._launch_id != launch_id:
            self.end()
        if not self._groups:
            try:
                self._groups = {"endpoints": perf.of_processes(pids)}
                if workers:
                    self._groups["switch"] = perf.of_cpus(workers)
            except OSError:
                self._groups = {}
                return None
            self._launch_id = launch_id
        return {group: counters.read() for group, counters in self._groups.items()}

    def end(self) -> None:
        """Ends the counting. Idempotent."""
        for counters in self._groups.values():
            counters.close()
        self._groups = {}
