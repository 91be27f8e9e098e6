# SPDX-License-Identifier: BSD-3-Clause
"""The load of VPP's workers, which VPP itself does not report. Pure but for the running times, which the kernel keeps.

A worker runs round a loop all the time, and the frames that a round brought say little about the time it took. But a
round without frames always takes about the same time, which is measured while there are no frames. VPP counts all
rounds and those that brought frames. The idle time follows, and the rest of a worker's running time was work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

#: Share of the rounds: a worker counts as idle if fewer brought frames.
_IDLE_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of a worker since its start.

    Attributes:
        loops: rounds.
        dispatches: calls of the node behind its ports: in each round one for each port that brought frames.
    """

    loops: int
    dispatches: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters of all workers at a moment, by the names of their threads.

    Attributes:
        at_ns: when it was taken, CLOCK_MONOTONIC.
        run_ns: time on a CPU since their start, as of the kernel's last tick.
        ports: number of ports that bring frames.
    """

    at_ns: int
    rounds: Mapping[str, Rounds]
    run_ns: Mapping[str, int]
    ports: Mapping[str, int]


class Load:
    """The busy time of the workers, added up from sample to sample."""

    def __init__(self) -> None:
        self._round_ns: float | None = None
        self._last: Sample | None = None
        self._busy_ns = 0.0

    def calibrate(self, first: Sample, then: Sample) -> None:
        """Measures a round without frames, by two samples between which there were none.

        The shortest one counts: a worker that lost its CPU meanwhile took longer.
        """
        passed = then.at_ns - first.at_ns
        for name, after in then.rounds.items():
            before = first.rounds.get(name, Rounds(0, 0))
            loops = after.loops - before.loops
            if loops > 0 and after.dispatches - before.dispatches <= _IDLE_SHARE * loops:
                self._round_ns = min(self._round_ns or passed / loops, passed / loops)

    def busy_ns(self, now: Sample) -> int | None:
        """Returns the nanoseconds of work by all workers since the first sample; None before ``calibrate``."""
        if self._round_ns is None:
            return None
        last, self._last = self._last, now
        if last is not None:
            self._busy_ns += sum(self._worked_ns(name, last, now) for name in now.rounds if name in last.rounds)
        return round(self._busy_ns)

    def _worked_ns(self, name: str, last: Sample, now: Sample) -> float:
        loops = now.rounds[name].loops - last.rounds[name].loops
        dispatches = now.rounds[name].dispatches - last.rounds[name].dispatches
        ran = now.run_ns.get(name, 0) - last.run_ns.get(name, 0)
        if loops <= 0:
            return max(0, ran)
        # An empty round takes no longer than the average round.
        self._round_ns = min(self._round_ns or inf, ran / loops)
        empty = loops - filled_rounds(loops, dispatches, now.ports.get(name, 1))
        return ran - empty * self._round_ns


def filled_rounds(loops: int, dispatches: int, ports: int) -> float:
    """Returns how many rounds brought frames, if ports bring them independently of each other."""
    if loops <= 0:
        return 0.0
    ports = max(ports, 1)
    share = min(dispatches / (ports * loops), 1.0)
    return float(loops * (1 - (1 - share) ** ports))


def running_ns(pid: int) -> dict[str, int]:
    """Returns the time of each thread of a process on a CPU, by name; empty where the kernel does not keep it."""
    run_ns = {}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            name = (task / "comm").read_text(encoding="utf-8").strip()
            run_ns[name] = int((task / "schedstat").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError):
            continue  # the thread has ended, or the kernel lacks CONFIG_SCHED_INFO
    return run_ns
