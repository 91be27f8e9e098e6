# SPDX-License-Identifier: BSD-3-Clause
"""Decides whether a launch was disturbed, from what was taken from its CPUs and never from what was measured.

Three independent checks: CPU time that other processes took on the measured CPUs, the scheduler's run delay of the
polling threads, and gaps in the endpoints' loops. A launch in which the state of the CPUs changed is disturbed, too.
The state is read before and after a launch, because a reading uses the CPUs of the path.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.interference import Interference
from pytest_icbench.model.launch import EndpointWork, Launch
from pytest_icbench.model.placement import of_readings
from pytest_icbench.stats.states import has_changed

#: CPU time of others from which a launch is disturbed, as a share of the time of the CPUs that measure.
TAKEN_LIMIT = 0.05
#: The same for the time that the hypervisor takes.
STOLEN_LIMIT = 0.02
#: Share of the time that a polling thread waits for its CPU from which a launch is disturbed.
WAITED_LIMIT = 0.05
#: Share of the kept windows that an endpoint loses in gaps of its loop from which a launch is disturbed.
GAP_LIMIT = 0.05
#: The kernel counts CPU time in ticks, so less than this says nothing, in seconds.
LEAST_S = 0.03


def why_disturbed(
    interference: Interference | None, work: Sequence[EndpointWork] = (), kept_s: float = 0.0, *, shared: bool = False
) -> str | None:
    """Returns what disturbed a launch; None for one that was not disturbed, or of which nothing is known.

    Args:
        work: how evenly the endpoints had their CPUs.
        kept_s: length of the kept windows, in seconds.
        shared: whether endpoints share a CPU. Their loops then have gaps by design.
    """
    parts = []
    if interference is not None and interference.seconds > 0 and interference.cpus:
        over = [
            _exceeds(interference.taken, TAKEN_LIMIT * interference.cpus, interference.seconds),
            _exceeds(interference.stolen, STOLEN_LIMIT * interference.cpus, interference.seconds),
            _exceeds(interference.waited, WAITED_LIMIT, interference.seconds),
        ]
        parts += [interference.words] if any(over) or interference.throttled else []
    gaps = {endpoint.index: endpoint.gap_s / kept_s for endpoint in work if endpoint.gap_s is not None and kept_s > 0}
    if gaps and not shared:
        index = max(gaps, key=lambda number: gaps[number])
        if _exceeds(gaps[index], GAP_LIMIT, kept_s):
            parts.append(f"endpoint {index} lost {min(gaps[index], 1.0):.1%} of the time in gaps")
    return ", ".join(parts) or None


def _exceeds(share: float | None, limit: float, seconds: float) -> bool:
    return share is not None and share > limit and share * seconds > LEAST_S


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


def beside_cpu_states(rig: MeasuredRig, run: Callable[[], Launch]) -> Launch:
    """Runs a launch; returns it with the state of its CPUs before and after it. Raises what ``run`` raises.

    A launch in which the state changed is disturbed, whatever its value.
    """
    began = monotonic()
    before, before_s = rig.cpu_state(), monotonic() - began
    launch = run()
    began = monotonic()
    distances_ns, state = of_readings((before, rig.cpu_state()))
    launch = replace(
        launch,
        distances_ns=distances_ns,
        distance_ns=state.distance_ns,
        work_ns=state.work_ns,
        overhead_s=launch.overhead_s + before_s + monotonic() - began,
    )
    if not has_changed(distances_ns):
        return launch
    moved = f"the CPUs moved from {distances_ns[0]:.0f} to {distances_ns[-1]:.0f} ns apart"
    windows = tuple(replace(window, disturbed=True) for window in launch.windows)
    return replace(launch, disturbed=", ".join(filter(None, (launch.disturbed, moved))), windows=windows)
