# SPDX-License-Identifier: BSD-3-Clause
"""Round trips of an open loop, rebuilt from the schedule and from times of arrival. Pure.

The workload's round trips, histograms and counts of what is missing take no part: a request is due when the rate says
so, and one that did not come back is slower than all that did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_icbench.model.launch import Window

#: Parts of all requests at which distributions are compared.
PARTS = (0.5, 0.9, 0.99, 0.999)
#: The fewest requests beyond a percentile.
BEYOND = 10


@dataclass(frozen=True)
class RoundTrips:
    """Round trips in ns, in ascending order, of that many requests."""

    answered: tuple[float, ...]
    requests: int

    def percentile(self, part: float) -> float | None:
        """None if fewer than ten requests lie beyond it, or if it has no answer."""
        if round(self.requests * (1 - part), 6) < BEYOND:
            return None
        rank = math.ceil(round(self.requests * part, 6))
        return self.answered[rank - 1] if rank <= len(self.answered) else None


def of_windows(windows: Iterable[Window], rate_pps: float) -> RoundTrips:
    """Rebuilds round trips from the first and the last arrival of each window, between which the others lie evenly.

    A window's frames are due evenly from its start on, so what is found is right to a window's length.
    """
    found: list[float] = []
    requests = 0
    for window in windows:
        due = round(rate_pps * window.duration_ns / 1e9)
        requests += max(due, window.received)
        if not window.received or window.first_ns is None or window.last_ns is None:
            continue
        apart = (window.last_ns - window.first_ns) / max(window.received - 1, 1)
        between = window.duration_ns / max(due, window.received)
        found += [
            window.first_ns + number * apart - (window.start_ns + number * between) for number in range(window.received)
        ]
    return RoundTrips(tuple(sorted(found)), requests)


def of_capture(
    left: Mapping[int, int], came: Mapping[int, int], rate_pps: float, burst: int, sequences: Iterable[int]
) -> RoundTrips:
    """Rebuilds round trips at the client's interface from sequence numbers.

    Args:
        left, came: when the first copy of a request left, and of its answer came, in ns by sequence number.
        sequences: the requests that count; they were all given a number, whether or not they were seen.
    """
    between = burst / rate_pps * 1e9
    # No request leaves before its time: the earliest one against the schedule tells when that began.
    began = min(at - sequence // burst * between for sequence, at in left.items())
    numbers = list(sequences)
    found = sorted(came[number] - began - number // burst * between for number in numbers if number in came)
    return RoundTrips(tuple(found), len(numbers))


def agree(measured: float | None, true: float | None, resolution_ns: float) -> bool:
    """Whether two percentiles are within 1 % or the resolution, or both do not exist."""
    if measured is None or true is None:
        return measured is true
    return abs(measured - true) <= max(0.01 * true, resolution_ns)


def shown_ms(percentiles: Sequence[float | None]) -> str:
    """Percentiles in ms: ``0.021 / 0.035 / 251 / -``."""
    return " / ".join("-" if value is None else f"{value / 1e6:.3g}" for value in percentiles)
