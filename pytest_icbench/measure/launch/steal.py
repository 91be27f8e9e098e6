# SPDX-License-Identifier: BSD-3-Clause
"""Measures the time that the hypervisor took from the endpoints' CPUs, and attributes it to windows."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

#: Returns stolen nanoseconds since boot by CPU.
StealReader = Callable[[], Mapping[int, int]]

_STEAL_FIELD = 8


def read_steal(path: Path = Path("/proc/stat")) -> dict[int, int]:
    """Returns the stolen nanoseconds of each CPU since boot (proc(5), /proc/stat); empty without such a file."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    stolen = {}
    for line in lines:
        fields = line.split()
        if len(fields) > _STEAL_FIELD and fields[0].startswith("cpu") and fields[0] != "cpu":
            stolen[int(fields[0][3:])] = int(fields[_STEAL_FIELD]) * tick_ns
    return stolen


class StealTrack:
    """The samples of the stolen time over a launch. The kernel counts it in ticks, so the resolution is 10 ms."""

    def __init__(self, cpus: Sequence[int], reader: StealReader = read_steal) -> None:
        self._cpus = tuple(sorted(set(cpus)))
        self._reader = reader
        self._times: list[int] = []
        self._totals: list[dict[int, int]] = []

    def sample(self, now_ns: int) -> None:
        """Takes a sample; ``now_ns`` is CLOCK_MONOTONIC."""
        read = self._reader()
        totals = {cpu: read.get(cpu, 0) for cpu in self._cpus}
        if self._totals[-2:] == [totals, totals]:
            self._times[-1] = now_ns  # hours without steal are one stretch
            return
        self._times.append(now_ns)
        self._totals.append(totals)

    def _at(self, cpu: int, time_ns: int) -> float:
        index = bisect_right(self._times, time_ns)
        if index == 0:
            return self._totals[0][cpu]
        if index == len(self._times):
            return self._totals[-1][cpu]
        before, after = self._times[index - 1], self._times[index]
        share = (time_ns - before) / (after - before)
        low, high = self._totals[index - 1][cpu], self._totals[index][cpu]
        return low + (high - low) * share

    def between(self, cpu: int, begin_ns: int, end_ns: int) -> int:
        """Returns the nanoseconds stolen from ``cpu``, interpolated between samples; 0 without samples."""
        if not self._times or cpu not in self._totals[0]:
            return 0
        return round(self._at(cpu, end_ns) - self._at(cpu, begin_ns))

    @property
    def share(self) -> float:
        """The share of all tracked CPUs' time that was stolen between the first and the last sample, 0 to 1."""
        if len(self._times) < 2 or not self._cpus or self._times[-1] == self._times[0]:
            return 0.0
        stolen = sum(self._totals[-1][cpu] - self._totals[0][cpu] for cpu in self._cpus)
        return stolen / (len(self._cpus) * (self._times[-1] - self._times[0]))
