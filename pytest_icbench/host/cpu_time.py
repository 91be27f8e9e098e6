# SPDX-License-Identifier: BSD-3-Clause
"""Who had the CPUs: times of CPUs, processes and threads from /proc, read within a millisecond. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.host.process import SESSION_VARIABLE
from pytest_icbench.model.interference import Taker

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


def cpu_ticks(base: Path = Path("/")) -> dict[int, CpuTicks]:
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


def cpu_time(cpus: Collection[int], base: Path = Path("/")) -> CpuTime | None:
    """Returns the times of these CPUs; None if not all of them are known. The resolution is a tick."""
    known, tick_ns = cpu_ticks(base), _tick_ns()
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


def process_times(base: Path = Path("/")) -> dict[int, ProcessTime]:
    """Returns every process by its pid; those that end meanwhile are left out."""
    times = {}
    with suppress(OSError), os.scandir(base / "proc") as entries:
        for entry in entries:
            if entry.name.isdigit() and (process := process_at(base / "proc" / entry.name / "stat")) is not None:
                times[int(entry.name)] = process
    return times


def process_at(path: Path) -> ProcessTime | None:
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


def thread_times(pid: int, base: Path = Path("/")) -> dict[int, ThreadTime]:
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
    process = process_at(directory / "stat")
    return None if process is None else (process.ticks * _tick_ns(), None)


def counts_run_delay(base: Path = Path("/")) -> bool:
    """Whether the kernel counts how long a thread waits for a CPU."""
    return len((_read(base / "proc/self/schedstat") or "").split()) >= 2


def _last_cpu(directory: Path, cpus: frozenset[int]) -> frozenset[int]:
    """Returns the CPUs of a thread: its only one, or the one on which it ran last."""
    if len(cpus) == 1:
        return cpus
    process = process_at(directory / "stat")
    return cpus if process is None else frozenset({process.cpu})


class OwnProcesses:
    """Tells the processes of a session from others: by the mark in their environment, which every one inherits.

    Args:
        session: the session's id.
        harness: pids that are the session's without a mark; this process by default.
    """

    def __init__(self, session: str, harness: Iterable[int] = (), base: Path = Path("/")) -> None:
        self._mark = f"{SESSION_VARIABLE}={session}".encode()
        self._base = base
        self._harness = set(harness) or {os.getpid()}
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
                is_own = pid in self._harness or process.is_path or self._marked(pid)
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


def takers(
    before: Mapping[int, ProcessTime],
    after: Mapping[int, ProcessTime],
    session_pids: Collection[int],
    cpus: Collection[int],
    seconds: float,
) -> tuple[Taker, ...]:
    """Returns the processes that are not the session's and used these CPUs between two readings, the greatest first.

    Args:
        session_pids: pids of the session.
        cpus: a process counts if it ran on one of these last.
        seconds: time between the readings.

    Processes of the same name are one taker.
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


def cpu_use(pids: Iterable[int]) -> dict[str, int]:
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
