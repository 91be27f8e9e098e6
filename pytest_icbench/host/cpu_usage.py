# SPDX-License-Identifier: BSD-3-Clause
"""CPU time of CPUs, processes and threads from /proc, CPU quotas of control groups, and a watch over measuring CPUs.

A reading takes milliseconds and changes nothing. Quotas that a session has set itself are left out.
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.findings import Finding, disturbance
from pytest_icbench.host.process import SESSION_VARIABLE
from pytest_icbench.host.root import Root
from pytest_icbench.model.interference import Interference, Taker, Throttled

#: Kernel threads that carry frames or serve a rig's devices: their time is the path's own.
PATH_THREADS = ("ksoftirqd/", "napi/", "vhost-", "irq/")
#: Processes with less than this share of a CPU are not named.
LEAST_NAMED = 0.02
#: A process younger than this may not have executed its program yet, so nothing about it is kept.
YOUNG_TICKS = 200
#: The parent of all kernel threads.
_KTHREADD = 2


def _tick_ns() -> int:
    return 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def _read(path: Path) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(descriptor, 4096).decode(errors="replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class CpuTime:
    """The time of some CPUs since boot, in ns: without work, and taken by the hypervisor."""

    idle_ns: int
    stolen_ns: int


@dataclass(frozen=True, slots=True)
class CpuTicks:
    """The ticks of a CPU since boot: all, those without work, and those that the hypervisor took."""

    total: int
    idle: int
    stolen: int


def read_cpu_ticks(base: Path = Path("/")) -> dict[int, CpuTicks]:
    """Returns the ticks of each CPU (proc(5), /proc/stat); empty without such a file."""
    try:
        lines = (base / "proc/stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return {}
    ticks = {}
    for line in lines:
        name, *fields = line.split() or [""]
        if name.startswith("cpu") and name != "cpu" and len(fields) >= 8:
            values = [int(field) for field in fields[:8]]  # guest time is in user time already
            ticks[int(name[3:])] = CpuTicks(sum(values), values[3] + values[4], values[7])
    return ticks


def read_cpu_time(cpus: Collection[int], base: Path = Path("/")) -> CpuTime | None:
    """Returns the times of these CPUs; None if not all of them are known. The resolution is a tick."""
    known, tick_ns = read_cpu_ticks(base), _tick_ns()
    if not known.keys() >= set(cpus):
        return None
    ticks = [known[cpu] for cpu in set(cpus)]
    return CpuTime(sum(one.idle for one in ticks) * tick_ns, sum(one.stolen for one in ticks) * tick_ns)


@dataclass(frozen=True, slots=True)
class ProcessTime:
    """A process: its name, the CPU time of all its threads in ticks, when it started, its parent, its last CPU."""

    name: str
    ticks: int
    started: int
    parent: int
    cpu: int

    @property
    def is_path(self) -> bool:
        """Whether it is a kernel thread that carries frames."""
        return self.parent == _KTHREADD and self.name.startswith(PATH_THREADS)


def read_process_times(base: Path = Path("/")) -> dict[int, ProcessTime]:
    """Returns every process by its pid; without those that end in the meantime."""
    times = {}
    with suppress(OSError), os.scandir(base / "proc") as entries:
        for entry in entries:
            if entry.name.isdigit() and (process := read_process(base / "proc" / entry.name / "stat")) is not None:
                times[int(entry.name)] = process
    return times


def read_process(path: Path) -> ProcessTime | None:
    """Returns the process of a ``stat`` file of the kernel's; None if it does not exist."""
    text = _read(path)
    head, bracket, tail = (text or "").rpartition(")")
    fields = tail.split()
    if not bracket or len(fields) < 37:
        return None
    name = head.partition("(")[2]
    return ProcessTime(name, int(fields[11]) + int(fields[12]), int(fields[19]), int(fields[1]), int(fields[36]))


@dataclass(frozen=True, slots=True)
class ThreadTime:
    """A thread: ns on a CPU, ns that it waited for one though it could run (None where not counted), its CPUs."""

    run_ns: int
    waited_ns: int | None
    cpus: frozenset[int]


def read_thread_times(pid: int, base: Path = Path("/")) -> dict[int, ThreadTime]:
    """Returns the threads of a process by id; empty if it has ended."""
    times: dict[int, ThreadTime] = {}
    with suppress(OSError), os.scandir(base / f"proc/{pid}/task") as entries:
        for entry in entries:
            directory = base / f"proc/{pid}/task/{entry.name}"
            thread = _scheduled(directory)
            with suppress(OSError):  # it has ended
                if thread is not None:
                    cpus = frozenset(os.sched_getaffinity(int(entry.name)))
                    times[int(entry.name)] = ThreadTime(*thread, _last_cpu(directory, cpus))
    return times


def _scheduled(directory: Path) -> tuple[int, int | None] | None:
    """Returns run time and waiting time; from ``stat``, without the waiting, where the kernel has no ``schedstat``."""
    fields = (_read(directory / "schedstat") or "").split()
    if len(fields) >= 2:
        return int(fields[0]), int(fields[1])
    process = read_process(directory / "stat")
    return None if process is None else (process.ticks * _tick_ns(), None)


def counts_run_delay(base: Path = Path("/")) -> bool:
    """Whether the kernel counts how long a thread waits for a CPU."""
    return len((_read(base / "proc/self/schedstat") or "").split()) >= 2


def _last_cpu(directory: Path, cpus: frozenset[int]) -> frozenset[int]:
    """Returns the CPUs of a thread: its only one, or the one on which it ran last."""
    if len(cpus) == 1:
        return cpus
    process = read_process(directory / "stat")
    return cpus if process is None else frozenset({process.cpu})


class OwnProcesses:
    """Recognizes this process, and those of a session by the mark in their environment, which children inherit.

    ``session``: the session's id.
    """

    def __init__(self, session: str, base: Path = Path("/")) -> None:
        self._mark = f"{SESSION_VARIABLE}={session}".encode()
        self._base = base
        self._pid = os.getpid()
        self._known: dict[tuple[int, int], bool] = {}

    def of(self, processes: Mapping[int, ProcessTime]) -> set[int]:
        """Returns the pids that are the session's. Kernel threads that carry frames count among them."""
        newest = max((process.started for process in processes.values()), default=0)
        pids = set()
        known = {}
        for pid, process in processes.items():
            key = (pid, process.started)
            is_own = self._known.get(key)
            if is_own is None:
                is_own = pid == self._pid or process.is_path or self._marked(pid)
            if newest - process.started > YOUNG_TICKS or is_own:
                known[key] = is_own
            if is_own:
                pids.add(pid)
        self._known = known
        return pids

    def _marked(self, pid: int) -> bool:
        try:
            return self._mark in (self._base / f"proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False


def find_takers(
    before: Mapping[int, ProcessTime],
    after: Mapping[int, ProcessTime],
    session_pids: Collection[int],
    cpus: Collection[int],
    seconds: float,
) -> tuple[Taker, ...]:
    """Returns the processes that are not the session's and used these CPUs between two readings, the largest first.

    Args:
        session_pids: pids of the session.
        cpus: a process counts if it ran on one of these last.
        seconds: time between the readings.

    Processes of the same name count as one.
    """
    rate = os.sysconf("SC_CLK_TCK") * seconds
    shares: dict[str, float] = {}
    for pid, process in after.items():
        if pid in session_pids or process.cpu not in cpus:
            continue
        old = before.get(pid)
        known = old is not None and old.started == process.started
        ticks = process.ticks - (old.ticks if known and old is not None else 0)
        if ticks > 0:
            shares[process.name] = shares.get(process.name, 0.0) + ticks / rate
    ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Taker(name, round(share, 4)) for name, share in ranked if share >= LEAST_NAMED)


def read_cpu_use(pids: Iterable[int]) -> dict[str, int]:
    """Returns the CPU time in ns and the context switches of all threads of processes; ended ones are left out."""
    use = dict.fromkeys(("cpu_ns", "voluntary_switches", "involuntary_switches"), 0)
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").glob("*"):
            time, status = _scheduled(thread), _read(thread / "status")
            if time is None or status is None:
                continue
            use["cpu_ns"] += time[0]
            fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            use["voluntary_switches"] += int(fields.get("voluntary_ctxt_switches", 0))
            use["involuntary_switches"] += int(fields.get("nonvoluntary_ctxt_switches", 0))
    return use


_SESSION_GROUP = re.compile(r"icb[a-z0-9]{6}")


@dataclass(frozen=True, slots=True)
class Quota:
    """A group's quota, in CPUs. ``group`` is its path below the mount point, ``directory`` where its files are."""

    group: str
    cpus: float
    directory: str

    def periods(self, root: Root) -> tuple[int, int]:
        """Returns the number of periods so far, and of the periods in which the group was throttled."""
        words = (root.read(f"{self.directory}/cpu.stat") or "").split()
        counts = dict(zip(words[::2], words[1::2], strict=False))
        return int(counts.get("nr_periods", 0)), int(counts.get("nr_throttled", 0))


def find_quotas(root: Root, pids: Iterable[int]) -> list[Quota]:
    """Returns the quotas that apply to any of these processes, outer groups first."""
    layout = Layout.read(root)
    hierarchy = layout.holding("cpu")
    if hierarchy is None:
        return []
    groups = {"": None}
    for pid in pids:
        path = dict(layout.groups_of(root, pid)).get(hierarchy, "/")
        names = [f"/{name}" for name in path.split("/") if name]
        ours = next((place for place, name in enumerate(names) if _SESSION_GROUP.match(name, 1)), len(names))
        groups |= dict.fromkeys(accumulate(names[:ours]))
    return list(_read_quotas(root, hierarchy.mount, groups))


def _read_quotas(root: Root, mount: str, groups: Iterable[str]) -> Iterator[Quota]:
    for group in groups:
        directory = mount + group
        words = (root.read(f"{directory}/cpu.max") or "").split()
        if len(words) != 2:
            words = [root.read(f"{directory}/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
        if all(word.isdigit() for word in words) and int(words[1]):  # else "max", or -1 in v1
            yield Quota(group or "/", int(words[0]) / int(words[1]), directory)


def find_throttled(
    quotas: Sequence[Quota], before: Sequence[tuple[int, int]], after: Sequence[tuple[int, int]]
) -> tuple[Throttled, ...]:
    """Returns the groups that were throttled between two readings of their periods."""
    return tuple(
        Throttled(quota.group, round(quota.cpus, 3), last[1] - first[1], last[0] - first[0])
        for quota, first, last in zip(quotas, before, after, strict=True)
        if last[1] > first[1]
    )


def quota_findings(root: Root, pid: int) -> Iterator[Finding]:
    """Yields the doctor's findings about the quotas above a process."""
    for quota in find_quotas(root, [pid]):
        yield disturbance(
            "CPU quota",
            f"group {quota.group} may use {quota.cpus:g} CPUs: a poller in it stands still once they are used",
            "start pytest outside of it, or raise its quota",
        )


NO_CPU_TIME = "/proc/stat does not have these CPUs: CPU time of other processes is not known"
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


class CpuWatch:
    """Watches CPUs from its construction until ``read``: other processes' CPU time, waits of the rig's threads.

    Construction and ``read`` take one to three milliseconds each.

    A process belongs to the rig if it has the session's mark, in any cgroup or namespace.

    Args:
        own: recognizes the session's processes.
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
        processes = read_process_times(self._base)
        pids = self._own.of(processes) | set(self._endpoints.values())
        threads = {pid: times for pid in pids if (times := read_thread_times(pid, self._base))}
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended_ns = round((ended.ru_utime + ended.ru_stime) * 1e9)
        root = Root(self._base)
        if self._quotas is None:
            self._quotas = find_quotas(root, pids)
        periods = tuple(quota.periods(root) for quota in self._quotas)
        return _Reading(
            time.monotonic_ns(), read_cpu_time(self._cpus, self._base), processes, threads, ended_ns, periods
        )

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
            own_ns = sum(ran for _, _, ran in self._ran(first, last)) + self._ended_ns(first, last)
            taken = round(max(busy_ns - own_ns, 0) / elapsed_ns, 4)
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
            # The kernel counts a wait at its end, also what was before the first reading.
            waited=None if waits is None else round(min(waited_ns / elapsed_ns, 1.0), 4),
            waited_by=name,
            takers=find_takers(first.processes, last.processes, pids, self._cpus, seconds),
            missing=tuple(missing),
            throttled=find_throttled(self._quotas or [], first.periods, last.periods),
        )

    def _ended_ns(self, first: _Reading, last: _Reading) -> int:
        """Returns the CPU time of the rig's processes that ended between the readings, in ns.

        The harness has waited for ended endpoints, and for programs that it called in that time.
        """
        gone = [pid for pid in first.threads if pid not in last.threads]
        before = sum(thread.run_ns for pid in gone for thread in first.threads[pid].values())
        return max(last.ended_ns - first.ended_ns - before, 0)

    def _ran(self, first: _Reading, last: _Reading) -> list[tuple[int, int, int]]:
        """Returns process, thread and run time in ns of each of the rig's threads on the watched CPUs."""
        ran = []
        for pid, threads in last.threads.items():
            before = first.threads.get(pid, {})
            for number, thread in threads.items():
                if thread.cpus & self._cpus:
                    old = before.get(number)
                    ran.append((pid, number, max(thread.run_ns - (old.run_ns if old else 0), 0)))
        return ran

    def _waits(self, first: _Reading, last: _Reading) -> dict[str, float] | None:
        """Returns how long the polling threads waited for a CPU that none of the rig's threads had, in ns by name.

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
