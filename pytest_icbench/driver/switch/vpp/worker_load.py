# SPDX-License-Identifier: BSD-3-Clause
"""The load of VPP's workers, which VPP does not report, from the output of ``show runtime``.

A worker runs in a loop all the time, and the frames of a round say little about its duration. But a round without
frames always takes about the same time, which is measured without traffic. VPP counts all rounds and those with frames.
So the idle time is known, and the rest of a worker's running time was work.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from pytest_icbench.driver.switch.protocol import Batches

#: A worker is idle if less than this share of its rounds had frames.
_IDLE_SHARE = 0.01
_LIBRARY = re.compile(rb"libvlib\.so\.(\d+\.\d+(?:\.\d+)?)")
_NODE = re.compile(r"^(\S+)\s+(active|polling|any wait|event wait|done|interrupt wait)\s+(\d+)\s+(\d+)\s+\d+\s", re.M)
_THREAD = re.compile(r"^Thread \d+ (\S+)", re.M)


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of a worker since its start.

    ``dispatches``: calls of the node after its ports: in each round one per port with frames.
    """

    loops: int
    dispatches: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters of all workers at a moment, by the names of their threads.

    Attributes:
        at_ns: its time, CLOCK_MONOTONIC.
        run_ns: time on a CPU since the start, up to the kernel's last tick.
        ports: number of ports with frames.
    """

    at_ns: int
    rounds: Mapping[str, Rounds]
    run_ns: Mapping[str, int]
    ports: Mapping[str, int]


class Load:
    """The busy time of the workers, summed over samples."""

    def __init__(self) -> None:
        self._round_ns: float | None = None
        self._last: Sample | None = None
        self._busy_ns = 0.0

    def calibrate(self, first: Sample, then: Sample) -> None:
        """Measures a round without frames from two samples without traffic between them.

        The shortest counts, because a worker that lost its CPU took longer.
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
    """Returns the number of rounds with frames, if the ports are independent of each other."""
    if loops <= 0:
        return 0.0
    ports = max(ports, 1)
    share = min(dispatches / (ports * loops), 1.0)
    return float(loops * (1 - (1 - share) ** ports))


def read_run_times(pid: int) -> dict[str, int]:
    """Returns the CPU time of each thread of a process, by name; empty if the kernel does not keep it."""
    run_ns = {}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            name = (task / "comm").read_text(encoding="utf-8").strip()
            run_ns[name] = int((task / "schedstat").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError):
            continue  # the thread has ended, or the kernel lacks CONFIG_SCHED_INFO
    return run_ns


def read_wakeups(pid: int, names: Collection[str]) -> int:
    """Returns how often threads of a process slept so far (``voluntary_ctxt_switches`` of proc(5))."""
    count = 0
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            fields = dict(re.findall(r"^(\w+):\s*(\S+)", (task / "status").read_text(encoding="utf-8"), re.M))
            count += int(fields["voluntary_ctxt_switches"]) if fields["Name"] in names else 0
    return count


def linked_version(program: bytes) -> str | None:
    """Returns the version of the VPP libraries of a program, such as ``26.06``; None if it is not VPP.

    The program is not executed, because ``vpp --version`` starts a VPP before 26.02.
    """
    match = _LIBRARY.search(program)
    return match.group(1).decode() if match else None


def parse_batches(text: str, node: str) -> Batches:
    """Returns the calls of a node and their frames, over all threads."""
    calls = frames = 0
    for name, _, called, handled in _NODE.findall(text):
        if name == node:
            calls, frames = calls + int(called), frames + int(handled)
    return Batches(frames=frames, calls=calls)


def parse_frames(text: str, node: str) -> dict[str, int]:
    """Returns the frames of a node by the name of the thread."""
    parts = _THREAD.split(text)[1:]
    return {
        thread: sum(int(handled) for name, _, _, handled in _NODE.findall(part) if name == node)
        for thread, part in zip(parts[::2], parts[1::2], strict=True)
    }


def parse_rounds(text: str, node: str) -> dict[str, Rounds]:
    """Returns the rounds of each polling thread by its name. A polling node is called once per round."""
    rounds = {}
    parts = _THREAD.split(text)[1:]
    for thread, part in zip(parts[::2], parts[1::2], strict=True):
        nodes = _NODE.findall(part)
        loops = max((int(called) for _, state, called, _ in nodes if state == "polling"), default=0)
        if loops:
            rounds[thread] = Rounds(loops, sum(int(called) for name, _, called, _ in nodes if name == node))
    return rounds
