# SPDX-License-Identifier: BSD-3-Clause
"""Watches the CPUs that measure: what others take from them, and how long the rig's threads wait."""

from __future__ import annotations

import resource
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.host.cpu_quota import Quota, quotas_above, throttled
from pytest_icbench.host.cpu_time import (
    CpuTime,
    OwnProcesses,
    ProcessTime,
    ThreadTime,
    cpu_time,
    process_times,
    takers,
    thread_times,
)
from pytest_icbench.host.root import Root
from pytest_icbench.model.interference import Interference

NO_CPU_TIME = "/proc/stat does not have these CPUs: CPU time that others took is not known"
NO_RUN_DELAY = "the kernel counts no run delay (/proc/PID/schedstat): a thread that waits for its CPU is not seen"


@dataclass(frozen=True, slots=True)
class _Reading:
    at_ns: int
    cpus: CpuTime | None
    processes: Mapping[int, ProcessTime]
    threads: Mapping[int, Mapping[int, ThreadTime]]
    #: CPU time of the harness' children that ended and were waited for.
    ended_ns: int
    #: Periods, and those in which it was throttled, of each group with a quota.
    periods: tuple[tuple[int, int], ...] = ()


class HostWatch:
    """Watches some CPUs from its construction until ``read``. Each of the two takes one to three milliseconds.

    A process is the rig's if it has the session's mark, whatever its cgroup or namespace is.

    Args:
        own: tells the session's processes from others.
        cpus: the CPUs that measure.
        endpoints: pid of each endpoint's process, by index.
        workers: CPUs of the switch's workers.
    """

    def __init__(
        self,
        own: OwnProcesses,
        cpus: Collection[int],
        endpoints: Mapping[int, int] | None = None,
        workers: Collection[int] = (),
        base: Path = Path("/"),
    ) -> None:
        self._own = own
        self._cpus = frozenset(cpus)
        self._endpoints = dict(endpoints or {})
        self._workers = frozenset(workers)
        self._base = base
        self._quotas: list[Quota] | None = None
        self._first = self._reading()

    def _reading(self) -> _Reading:
        processes = process_times(self._base)
        pids = self._own.of(processes) | set(self._endpoints.values())
        threads = {pid: times for pid in pids if (times := thread_times(pid, self._base))}
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended_ns = round((ended.ru_utime + ended.ru_stime) * 1e9)
        root = Root(self._base)
        if self._quotas is None:
            self._quotas = quotas_above(root, pids)
        periods = tuple(quota.periods(root) for quota in self._quotas)
        return _Reading(time.monotonic_ns(), cpu_time(self._cpus, self._base), processes, threads, ended_ns, periods)

    def read(self) -> Interference:
        """Returns what happened since the construction."""
        first, last = self._first, self._reading()
        elapsed_ns = last.at_ns - first.at_ns
        seconds = elapsed_ns / 1e9
        if elapsed_ns <= 0:
            return Interference(len(self._cpus), 0.0, missing=(NO_CPU_TIME,))
        missing = []
        taken = stolen = None
        if first.cpus is None or last.cpus is None:
            missing.append(NO_CPU_TIME)
        else:
            stolen_ns = max(last.cpus.stolen_ns - first.cpus.stolen_ns, 0)
            idle_ns = max(last.cpus.idle_ns - first.cpus.idle_ns, 0)
            busy_ns = len(self._cpus) * elapsed_ns - idle_ns - stolen_ns
            taken = round(max(busy_ns - self._own_ns(first, last), 0) / elapsed_ns, 4)
            stolen = round(stolen_ns / elapsed_ns, 4)
        waits = self._waits(first, last)
        if waits is None:
            missing.append(NO_RUN_DELAY)
        name, waited_ns = max((waits or {}).items(), key=lambda item: item[1], default=("", 0.0))
        pids = {*first.threads, *last.threads}
        return Interference(
            cpus=len(self._cpus),
            seconds=round(seconds, 3),
            taken=taken,
            stolen=stolen,
            waited=None if waits is None else round(waited_ns / elapsed_ns, 4),
            waited_by=name,
            takers=takers(first.processes, last.processes, pids, self._cpus, seconds),
            missing=tuple(missing),
            throttled=throttled(self._quotas or [], first.periods, last.periods),
        )

    def _own_ns(self, first: _Reading, last: _Reading) -> float:
        """The CPU time of the rig's threads on the watched CPUs."""
        return sum(ran for _, _, ran in self._ran(first, last)) + self._ended_ns(first, last)

    def _ended_ns(self, first: _Reading, last: _Reading) -> int:
        """The CPU time of the rig's processes that have ended meanwhile.

        An endpoint that has ended was waited for by the harness, as were programs that it called meanwhile.
        """
        gone = [pid for pid in first.threads if pid not in last.threads]
        before = sum(thread.run_ns for pid in gone for thread in first.threads[pid].values())
        return max(last.ended_ns - first.ended_ns - before, 0)

    def _ran(self, first: _Reading, last: _Reading) -> list[tuple[int, int, int]]:
        """Process, thread and run time of the rig's threads on the watched CPUs."""
        ran = []
        for pid, threads in last.threads.items():
            before = first.threads.get(pid, {})
            for number, thread in threads.items():
                if thread.cpus & self._cpus:
                    old = before.get(number)
                    ran.append((pid, number, max(thread.run_ns - (old.run_ns if old else 0), 0)))
        return ran

    def _waits(self, first: _Reading, last: _Reading) -> dict[str, float] | None:
        """How long the polling threads waited for a CPU which none of the rig's threads had, in ns by name.

        None where the kernel does not count it. Threads of the rig that share a CPU wait for each other by design.
        """
        names = {pid: f"endpoint {index}" for index, pid in self._endpoints.items()}
        ran = self._ran(first, last)
        # A sender ends before its receiver, and had their CPU until then.
        ended = [
            thread.cpus for pid in first.threads if pid not in last.threads for thread in first.threads[pid].values()
        ]
        ended_ns = self._ended_ns(first, last)
        waits: dict[str, float] = {}
        for pid, number, _ in ran:
            thread, old = last.threads[pid][number], first.threads.get(pid, {}).get(number)
            name = names.get(pid) or ("switch" if thread.cpus <= self._workers else None)
            if name is None or old is None or thread.cpus - self._cpus:
                continue
            if thread.waited_ns is None or old.waited_ns is None:
                return None
            others = sum(
                others_ran
                for other_pid, other, others_ran in ran
                if other != number and last.threads[other_pid][other].cpus & thread.cpus
            )
            others += ended_ns if any(cpus & thread.cpus for cpus in ended) else 0
            waits[name] = max(waits.get(name, 0.0), thread.waited_ns - old.waited_ns - others, 0.0)
        return waits
