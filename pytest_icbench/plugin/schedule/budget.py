# SPDX-License-Identifier: BSD-3-Clause
"""A session's time shared out over its cases. Pure.

Each case gets its least. The rest goes, launch by launch, to the case whose interval it narrows most per second: half
widths shrink with the square root of the number of launches. How wide a case is nobody knows before it was measured, so
the rest is shared out anew whenever a case begins, over those that are left: what a case did not need, because it was
precise enough, is the others', and cases that were measured tell how wide their like will be. Tests run one after the
other and are judged at their end, so nobody is visited twice.

On several hosts at once each has a budget of its own, over all cases, since nobody knows which ones it will be given.
It learns of those that it has had, and takes the other hosts to be as far as it is.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import sqrt

from pytest_icbench.stats.quantiles import median

#: Half-width over the precision asked for, before anything was measured.
UNKNOWN_WIDTH = 2.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One case as the budget sees it.

    Attributes:
        least_s: what it takes in any case; 0 for one that is skipped.
        launch_s: what another launch takes, with its reference.
        launches: fewest launches, those of ``least_s``.
        precision: half-width at which it ends.
        adaptive: whether more time makes it more precise; a fixed number of launches, or a search, takes what it takes.
        group: cases of one group are taken to be equally wide.
    """

    least_s: float
    launch_s: float
    launches: int
    precision: float
    adaptive: bool = True
    group: Hashable = None


def share_out(rest_s: float, entries: Sequence[Entry], widths: Sequence[float]) -> list[float]:
    """Seconds for each entry beyond its least.

    Args:
        rest_s: to share out; nobody gets less than nothing.
        widths: half-width that each entry has, as far as is known, after its least.
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
    # Whoever is wider than foreseen shall find something.
    for place in places:
        extra[place] += max(rest_s, 0.0) / len(places)
    return extra


def _gain(entry: Entry, width: float, more: int) -> float:
    """By how much the next launch narrows the interval, per second; 0 once it is narrow enough."""
    scale, launches = width * sqrt(entry.launches), entry.launches + more
    now = scale / sqrt(launches)
    return (now - scale / sqrt(launches + 1)) / entry.launch_s if now > entry.precision else 0.0


class Budget:
    """What is left of a session's time while its cases run.

    Args:
        total_s: what the session may take.
        hosts: that share its cases.
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
        """What all cases take at least, evenly over the hosts; a case is on one."""
        seconds = [entry.least_s for entry in self._entries]
        return max(sum(seconds) / self._hosts, *seconds, 0.0)

    def begin(self, place: int) -> None:
        """The case that stands there in the plan is the current one, if it has not been finished."""
        if place in self._left:
            self._left.remove(place)
            self._left.insert(0, place)

    def _open_s(self) -> float:
        """Least of the cases that no host has finished."""
        left_s = sum(self._entries[place].least_s for place in self._left)
        return max(left_s - (self._hosts - 1) * self._done_s, self._entries[self._left[0]].least_s)

    def allotments(self) -> list[float]:
        """Seconds for each case that is left, the current one first: never less than its least, whatever was spent."""
        if not self._left:
            return []
        left = [self._entries[place] for place in self._left]
        own_s, open_s = self.total_s - self._spent_s, self._open_s()
        # What is open has the rest to itself; as if all that is left here were open, there would be more of it.
        scale = sum(entry.least_s for entry in left) / open_s if open_s > 0 else 1.0
        extra = share_out((self._hosts * own_s - open_s) * scale, left, [self._width(entry) for entry in left])
        return [max(min(entry.least_s + more, own_s), entry.least_s) for entry, more in zip(left, extra, strict=True)]

    def most_s(self) -> float:
        """What the current case may take so that those after it have their least; never less than its own least."""
        least_s = self._entries[self._left[0]].least_s
        left_s = self.total_s - self._spent_s - (self._open_s() - least_s) / self._hosts
        return max(left_s, least_s)

    def _width(self, entry: Entry) -> float:
        like = [width for group, width in self._seen if group == entry.group]
        known = like or [width for _, width in self._seen]
        return (median(known) if known else UNKNOWN_WIDTH) * entry.precision

    def charge(self, elapsed_s: float) -> None:
        """So much time has passed since the session began, whoever took it: cases, or what lies between them."""
        self._spent_s = max(self._spent_s, elapsed_s)

    def finish(self, elapsed_s: float, width: float | None = None, launches: int = 0) -> None:
        """The current case is over, and its rigs are closed where nobody needs them.

        Args:
            elapsed_s: since the session began.
            width: half-width that it reached with so many ``launches``; None if it has none.
        """
        if not self._left:
            return
        entry = self._entries[self._left.pop(0)]
        self._done_s += entry.least_s
        self.charge(elapsed_s)
        if width is not None and entry.adaptive and launches:
            self._seen.append((entry.group, width * sqrt(launches / entry.launches) / entry.precision))
