# SPDX-License-Identifier: BSD-3-Clause
"""How far a session is, and how long its rest will take, corrected by the time of its first cases. Pure."""

from __future__ import annotations

from collections.abc import Sequence


class Schedule:
    """The cases that are done and those that are left.

    Args:
        estimates_s: the seconds of each case, in the order in which they run.
    """

    def __init__(self, estimates_s: Sequence[float]) -> None:
        self._estimates = list(estimates_s)
        self._whole = tuple(estimates_s)
        self._done = 0
        self._running: int | None = None
        self._spent = 0.0
        self._foreseen = 0.0

    @property
    def total(self) -> int:
        return len(self._estimates)

    @property
    def current(self) -> int:
        """The number of the case that runs, from 1."""
        return min((self._done if self._running is None else self._running) + 1, self.total)

    def begin_part(self, place: int) -> None:
        """Begins a part of a case, by its place from 0, before its turn comes."""
        self._running = place

    def finish_part(self, share: float, spent_s: float) -> None:
        """Ends a part, which is a share of its case: the rest is left for other parts, and for its turn."""
        assert self._running is not None
        part = min(share * self._whole[self._running], self._estimates[self._running])
        self._estimates[self._running] -= part
        self._foreseen += part
        self._spent += spent_s
        self._running = None

    def finish(self, spent_s: float | None) -> None:
        """Ends the current case; ``spent_s`` is None for one that was not measured and so says nothing about others."""
        if self._done >= self.total:
            return
        if spent_s is not None:
            self._spent += spent_s
            self._foreseen += self._estimates[self._done]
        self._done += 1

    def left_s(self, case_left_s: float | None) -> float:
        """Returns the seconds until the end, if the current case still takes ``case_left_s`` (None: unknown)."""
        factor = self._spent / self._foreseen if self._foreseen > 0 else 1.0
        if self._done >= self.total:
            return case_left_s or 0.0
        if case_left_s is None:
            return factor * sum(self._estimates[self._done :])
        return case_left_s + factor * sum(self._estimates[self._done + 1 :])
