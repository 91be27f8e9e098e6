# SPDX-License-Identifier: BSD-3-Clause
"""What a frame costs the hardware: events by perf_event_open(2), and the energy of the CPU packages by RAPL."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pytest_icbench.host.namespaces import check_result
from pytest_icbench.host.root import Root

#: PERF_TYPE_HARDWARE and its configurations.
_HARDWARE = 0
EVENTS = {"cycles": 0, "kernel_cycles": 0, "instructions": 1, "llc_misses": 3}
#: Bits of struct perf_event_attr by event: exclude_user.
_BITS = {"kernel_cycles": 1 << 4}
#: The consequence of missing events, for messages.
LACKED = "results have no instructions and cache misses per frame"
#: The zones of the powercap framework, one a package with its cores as zones below it; psys is the whole machine.
_ZONES = "/sys/class/powercap/*:*"
#: The first size of struct perf_event_attr, which every kernel takes (PERF_ATTR_SIZE_VER0), and its fields.
_ATTRIBUTE_BYTES = 64
_TIME_ENABLED_AND_RUNNING = 1 | 2
_ANY = -1
_CLOSE_ON_EXEC = 8
_SYSCALLS = {"x86_64": 298, "aarch64": 241}


def _open(event: int, bits: int, pid: int, cpu: int) -> int:
    """Returns the descriptor of a counter. Raises OSError.

    Args:
        event, bits: values of ``EVENTS`` and ``_BITS``.
        pid, cpu: as perf_event_open takes them.
    """
    number = _SYSCALLS.get(os.uname().machine)
    if number is None:
        raise OSError(f"the number of perf_event_open on {os.uname().machine} is not known")
    attribute = bytearray(_ATTRIBUTE_BYTES)
    fields = (_HARDWARE, _ATTRIBUTE_BYTES, event, 0, 0, _TIME_ENABLED_AND_RUNNING, bits)
    struct.pack_into("IIQQQQQ", attribute, 0, *fields)
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = (ctypes.c_char * _ATTRIBUTE_BYTES).from_buffer(attribute)
    return check_result(int(libc.syscall(number, buffer, pid, cpu, _ANY, _CLOSE_ON_EXEC)))


class Counters:
    """A counter of each event for each target: a thread on any CPU, or a CPU with all that runs on it.

    ``targets``: pairs (pid, cpu) as perf_event_open takes them. Raises OSError if the kernel refuses one. No counter is
    open then.
    """

    def __init__(self, targets: Iterable[tuple[int, int]]) -> None:
        self._descriptors: list[tuple[str, int]] = []
        try:
            for pid, cpu in targets:
                for name, event in EVENTS.items():
                    self._descriptors.append((name, _open(event, _BITS.get(name, 0), pid, cpu)))
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


class Energy:
    """The energy of all CPU packages since the constructor. It has the whole packages, the idle cores among them."""

    def __init__(self, root: Root) -> None:
        """Raises OSError if no package reports its energy."""
        self._root = root
        self._last = {
            zone: energy for zone in _packages(root) if (energy := root.read_int(f"{zone}/energy_uj")) is not None
        }
        self._total = 0
        if not self._last:
            raise OSError("no CPU package in /sys/class/powercap reports its energy")

    def read(self) -> dict[str, int]:
        """Returns ``energy_uj``. A counter begins anew at its range, some minutes apart."""
        for zone, before in self._last.items():
            now = self._root.read_int(f"{zone}/energy_uj")
            if now is None:
                continue
            span = self._root.read_int(f"{zone}/max_energy_range_uj") or 0
            self._total += now - before if now >= before else now - before + span
            self._last[zone] = now
        return {"energy_uj": self._total}

    def close(self) -> None:
        """Does nothing."""


def _packages(root: Root) -> list[str]:
    return [zone for zone in root.glob(_ZONES) if (root.read(f"{zone}/name") or "").startswith("package")]


def explain_missing_energy(root: Root) -> str | None:
    """Returns why results lack the energy of a frame; None if they have it."""
    try:
        Energy(root)
    except OSError as error:
        return str(error)
    return None


def count_on_cpus(cpus: Sequence[int]) -> Counters:
    """Opens counters for all that runs on these CPUs, the kernel included. Raises OSError."""
    return Counters((_ANY, cpu) for cpu in cpus)


def count_in_processes(pids: Iterable[int]) -> Counters:
    """Opens counters for the present threads of these processes, and the kernel's work for them. Raises OSError."""
    threads = [int(task.name) for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
    return Counters((thread, _ANY) for thread in threads)


def explain_missing_events(root: Root) -> str | None:
    """Returns a sentence on what results lack because this host counts neither events nor energy; None if it does.

    Few machines that give the events do not report the energy, so that alone is left to ``icbench doctor``.
    """
    reason = unsupported_reason()
    if reason is None:
        return None
    lacked = LACKED if explain_missing_energy(root) is None else f"{LACKED}, and no energy"
    return f"the kernel gives no hardware events ({reason}): {lacked}"


def unsupported_reason() -> str | None:
    """Returns why this kernel counts no hardware events, in the system's words; None if it does."""
    try:
        count_on_cpus([min(os.sched_getaffinity(0))]).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


class HardwareEvents:
    """The hardware events of one launch at a time, counted from the first ``read`` for it.

    ``root``: where the packages report their energy.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._launch_id = ""
        self._groups: dict[str, Counters | Energy] = {}

    def read(self, launch_id: str, pids: Iterable[int], workers: Sequence[int]) -> dict[str, dict[str, int]] | None:
        """Returns the events by name for ``endpoints`` and ``switch``, and the energy of ``packages``; None: none."""
        if self._launch_id != launch_id:
            self.end()
        if not self._groups:
            with suppress(OSError):
                self._groups["endpoints"] = count_in_processes(pids)
                if workers:
                    self._groups["switch"] = count_on_cpus(workers)
            with suppress(OSError):
                self._groups["packages"] = Energy(self._root)
            self._launch_id = launch_id
        return {group: counters.read() for group, counters in self._groups.items()} or None

    def end(self) -> None:
        """Ends the counting. Idempotent."""
        for counters in self._groups.values():
            counters.close()
        self._groups = {}
