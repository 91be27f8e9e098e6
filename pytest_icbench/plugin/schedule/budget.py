# SPDX-License-Identifier: BSD-3-Clause
"""A session's time shared out over its cases. Pure.

Each case gets its least. The rest goes, launch by launch, to the case whose interval it narrows most per second: half
widths shrink with the square root of the number of launches. The width of a case is unknown before it is measured, so
the rest is shared out anew whenever a case begins, over those that are left. The others get the time that a precise
case did not need, and measured cases predict the widths of similar ones. Tests run one after the other and are judged
at their end, so no case is measured again later.

With several hosts each has its own budget over all cases, since it is unknown which ones a host will be given. It
knows the cases that it has had, and assumes that the other hosts are as far as it is.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import sqrt

from pytest_icbench.stats.dependence import FEWEST_DECIDING
from pytest_icbench.stats.quantiles import median

#: The ratio of half-width to precision that is assumed before anything was measured.
UNKNOWN_WIDTH = 2.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A case in the budget.

    Attributes:
        least_s: the time that the case takes at least; 0 for one that is skipped.
        launch_s: the time of another launch, with its reference.
        launches: the fewest launches, those of ``least_s``.
        precision: the relative half-width at which the case ends.
        adaptive: whether more time makes it more precise; it does not for a search or a fixed number of launches.
        group: cases of one group are assumed to have equal widths.
    """

    least_s: float
    launch_s: float
    launches: int
    precision: float
    adaptive: bool = True
    group: Hashable = None


def share_out(rest_s: float, entries: Sequence[Entry], widths: Sequence[float]) -> list[float]:
    """Returns the seconds for each entry in addition to its least.

    Args:
        rest_s: the seconds to share out; if negative, all shares are 0.
        widths: the relative half-width that each entry is expected to have after its least.
    """
    extra = [0.0] * len(entries)
    places = [place for place, entry in enumerate(entries) if entry.adaptive and entry.least_s > 0]
    queue = [(-_gain(entries[place], widths[place], 0), place, 0) for place in places]
    heapq.heapify(queue)
    while queue and queue[0][0] < 0:
        _, place, more = heapq.heappop(queue)
        entry = entries[place]
        if entry.launch_s > rest_s:
            continue
        rest_s -= entry.launch_s
        extra[place] += entry.launch_s
        heapq.heappush(queue, (-_gain(entry, widths[place], more + 1), place, more + 1))
    # Cases that turn out wider than expected share what is left.
    for place in places:
        extra[place] += max(rest_s, 0.0) / len(places)
    return extra


def _gain(entry: Entry, width: float, more: int) -> float:
    """Returns by how much the next launch narrows the interval, per second; 0 once it is narrow enough."""
    scale, launches = width * sqrt(entry.launches), entry.launches + more
    now = scale / sqrt(launches)
    # Fewer launches claim no precision, however narrow their interval is.
    wanted = now > entry.precision or launches <= FEWEST_DECIDING
    return (now - scale / sqrt(launches + 1)) / entry.launch_s if wanted else 0.0


class Budget:
    """The time that is left of a session while its cases run.

    Args:
        total_s: the time of the session.
        entries: its cases in the order of the plan.
        hosts: the number of hosts that share the cases.
    """

    def __init__(self, total_s: float, entries: Sequence[Entry], hosts: int = 1) -> None:
        self.total_s = total_s
        self._hosts = hosts
        self._entries = list(entries)
        #: Places of entries that have not been finished here, the current one first.
        self._left = list(range(len(self._entries)))
        self._done_s = 0.0
        self._spent_s = 0.0
        self._seen: list[tuple[Hashable, float]] = []

    @property
    def least_s(self) -> float:
        """The least time of all cases, spread evenly over the hosts; a case is on one host."""
        seconds = [entry.least_s for entry in self._entries]
        return max(sum(seconds) / self._hosts, *seconds, 0.0)

    def begin(self, place: int) -> None:
        """Makes the case at a place of the plan the current one, if it has not been finished."""
        if place in self._left:
            self._left.remove(place)
            self._left.insert(0, place)

    def _open_s(self) -> float:
        """Returns the least time of the cases that no host has finished."""
        left_s = sum(self._entries[place].least_s for place in self._left)
        return max(left_s - (self._hosts - 1) * self._done_s, self._entries[self._left[0]].least_s)

    def allotments(self) -> list[float]:
        """Returns the seconds for each case that is left, the current one first; none is less than the case's least."""
        if not self._left:
            return []
        left = [self._entries[place] for place in self._left]
        host_s, open_s = self.total_s - self._spent_s, self._open_s()
        # Only open cases share the rest. It is scaled up as if all cases that are left here were open.
        scale = sum(entry.least_s for entry in left) / open_s if open_s > 0 else 1.0
        extra = share_out((self._hosts * host_s - open_s) * scale, left, [self._width(entry) for entry in left])
        # The current case leaves each host its part of the other cases, or the last ones would begin too late.
        most_s = [self.most_s(), *(host_s for _ in left[1:])]
        return [
            max(min(entry.least_s + more, most), entry.least_s)
            for entry, more, most in zip(left, extra, most_s, strict=True)
        ]

    def allotted(self) -> dict[int, float]:
        """Returns the seconds for each case that is left, by its place in the plan."""
        return dict(zip(self._left, self.allotments(), strict=True))

    def most_s(self) -> float:
        """Returns the time of the current case that leaves the other cases their least, but never less than its own."""
        least_s = self._entries[self._left[0]].least_s
        left_s = self.total_s - self._spent_s - (self._open_s() - least_s) / self._hosts
        return max(left_s, least_s)

    def _width(self, entry: Entry) -> float:
        of_group = [width for group, width in self._seen if group == entry.group]
        known = of_group or [width for _, width in self._seen]
        return (median(known) if known else UNKNOWN_WIDTH) * entry.precision

    def charge(self, elapsed_s: float) -> None:
        """Sets the time that has passed since the session began, in cases or between them."""
        self._spent_s = max(self._spent_s, elapsed_s)

    def finish(self, elapsed_s: float, width: float | None = None, launches: int = 0) -> None:
        """Ends the current case, whose rigs are closed unless the next one needs them.

        Args:
            elapsed_s: the seconds since the session began.
            width: the relative half-width that it reached; None if it has none.
            launches: the number of launches that it took.
        """
        if not self._left:
            return
        entry = self._entries[self._left.pop(0)]
        self._done_s += entry.least_s
        self.charge(elapsed_s)
        if width is not None and entry.adaptive and launches:
            self._seen.append((entry.group, width * sqrt(launches / entry.launches) / entry.precision))
