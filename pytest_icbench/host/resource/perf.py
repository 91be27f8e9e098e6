# SPDX-License-Identifier: BSD-3-Clause
"""Hardware events by perf_event_open(2): cycles, instructions, misses of the last-level cache."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_icbench.host.namespaces import check_result

#: PERF_TYPE_HARDWARE and its configurations.
_HARDWARE = 0
EVENTS = {"cycles": 0, "instructions": 1, "llc_misses": 3}
#: The consequence of missing events, for messages.
LACKED = "results have no instructions and cache misses per frame"
#: The first size of struct perf_event_attr, which every kernel takes (PERF_ATTR_SIZE_VER0), and its fields.
_ATTRIBUTE_BYTES = 64
_TIME_ENABLED_AND_RUNNING = 1 | 2
_ANY = -1
_CLOSE_ON_EXEC = 8
_SYSCALLS = {"x86_64": 298, "aarch64": 241}


def _open(event: int, pid: int, cpu: int) -> int:
    """Returns the descriptor of a counter. Raises OSError.

    Args:
        event: a value of ``EVENTS``.
        pid, cpu: as perf_event_open takes them.
    """
    number = _SYSCALLS.get(os.uname().machine)
    if number is None:
        raise OSError(f"the number of perf_event_open on {os.uname().machine} is not known")
    attribute = bytearray(_ATTRIBUTE_BYTES)
    struct.pack_into("IIQQQQQ", attribute, 0, _HARDWARE, _ATTRIBUTE_BYTES, event, 0, 0, _TIME_ENABLED_AND_RUNNING, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = (ctypes.c_char * _ATTRIBUTE_BYTES).from_buffer(attribute)
    return check_result(int(libc.syscall(number, buffer, pid, cpu, _ANY, _CLOSE_ON_EXEC)))


class Counters:
    """A counter of each event for each target: a thread on any CPU, or a CPU with all that runs on it.

    Args:
        targets: pairs (pid, cpu) as perf_event_open takes them.

    Raises OSError if the kernel refuses one. No counter is open then.
    """

    def __init__(self, targets: Iterable[tuple[int, int]]) -> None:
        self._descriptors: list[tuple[str, int]] = []
        try:
            for pid, cpu in targets:
                for name, event in EVENTS.items():
                    self._descriptors.append((name, _open(event, pid, cpu)))
        except OSError:
            self.close()
            raise

    def read(self) -> dict[str, int]:
        """Returns the events of all targets since the constructor, extrapolated if counters took turns."""
        totals = dict.fromkeys(EVENTS, 0)
        for name, descriptor in self._descriptors:
            count, enabled, running = struct.unpack("QQQ", os.read(descriptor, 24))
            totals[name] += round(count * enabled / running) if running else 0
        return totals

    def close(self) -> None:
        """Closes the counters. Idempotent."""
        while self._descriptors:
            os.close(self._descriptors.pop()[1])


def count_on_cpus(cpus: Sequence[int]) -> Counters:
    """Opens counters for all that runs on these CPUs, the kernel included. Raises OSError."""
    return Counters((_ANY, cpu) for cpu in cpus)


def count_in_processes(pids: Iterable[int]) -> Counters:
    """Opens counters for the present threads of these processes, and the kernel's work for them. Raises OSError."""
    threads = [int(task.name) for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
    return Counters((thread, _ANY) for thread in threads)


def explain_missing_events() -> str | None:
    """Returns a sentence on what results lack because this kernel counts no hardware events; None if it does."""
    reason = unsupported_reason()
    return reason and f"the kernel gives no hardware events ({reason}): {LACKED}"


def unsupported_reason() -> str | None:
    """Returns why this kernel counts no hardware events, in the system's words; None if it does."""
    try:
        count_on_cpus([min(os.sched_getaffinity(0))]).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


class HardwareEvents:
    """The hardware events of one launch at a time, counted from the first ``read`` for it."""

    def __init__(self) -> None:
        self._launch_id = ""
        self._groups: dict[str, Counters] = {}

    def read(self, launch_id: str, pids: Iterable[int], workers: Sequence[int]) -> dict[str, dict[str, int]] | None:
        """Returns the events by name, for ``endpoints`` and ``switch``; None where the kernel counts none."""
        if self._launch_id != launch_id:
            self.end()
        if not self._groups:
            try:
                self._groups = {"endpoints": count_in_processes(pids)}
                if workers:
                    self._groups["switch"] = count_on_cpus(workers)
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
