# SPDX-License-Identifier: BSD-3-Clause
"""Freezes and thaws the functions of a rig while a launch runs, as its load says."""

from __future__ import annotations

import math
import time

from pytest_icbench.measure.rig import MeasuredRig
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Window
from pytest_icbench.model.settings import Settings


class Freezing:
    """The schedule of one launch; nothing happens for a load that freezes no function.

    Attributes:
        due: when the next change is due, by ``time.monotonic``; inf if none is.
    """

    def __init__(self, rig: MeasuredRig, case: Case, settings: Settings) -> None:
        trace = case.rate.trace
        self._trace = trace if trace is not None and trace.freezes else None
        self._rig, self._pairs, self._window_s = rig, case.pairs, settings.window_s
        self._first_window = self.due = math.inf
        self._second = 0

    def begin(self) -> None:
        """Freezes those of the first second, for the warm-up too."""
        self._freeze(0)

    def follow(self, first_window: float) -> None:
        """Takes note of when the first second begins, by ``time.monotonic``."""
        if self._trace is not None:
            self._first_window, self.due = first_window, first_window + 1

    def step(self, now: float) -> float:
        """Does what is due; returns the seconds that it took."""
        if self._trace is None or now < self.due:
            return 0.0
        self._second += 1
        self.due = self._first_window + self._second + 1 if self._second + 1 < self._trace.seconds else math.inf
        self._freeze(self._second)
        return time.monotonic() - now

    def end(self) -> None:
        """Lets all run. Idempotent."""
        if self._trace is not None:
            self.due = math.inf
            self._rig.freeze(())

    def awaits(self, window: Window) -> bool:
        """Whether the function of a window's pair ran, so that its frames should arrive."""
        second = int((window.number - 1) * self._window_s + 1e-9)
        return self._trace is None or window.pair not in self._trace.frozen(second, self._pairs)

    def _freeze(self, second: int) -> None:
        if self._trace is not None:
            self._rig.freeze(self._trace.frozen(second, self._pairs))
