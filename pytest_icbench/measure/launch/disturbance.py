# SPDX-License-Identifier: BSD-3-Clause
"""Decides whether a launch was disturbed, from what other processes took and never from what was measured. Pure.

Three independent checks: CPU time that other processes took on the measured CPUs, the scheduler's run delay of the
polling threads, and gaps in the endpoints' loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.model.interference import Interference
from pytest_icbench.model.launch import EndpointWork

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
