# SPDX-License-Identifier: BSD-3-Clause
"""A launch that waits for its rate to become stationary: what its processes say, as a series of rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.measure.settings import Settings
from pytest_icbench.measure.voices import Choir
from pytest_icbench.measure.warmup import Settled, settle
from pytest_icbench.result_launch import Window


class Settling:
    """Watches one launch; knows at its end which windows are the measured part."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._measured = max(round(settings.duration_s / settings.window_s), 1)
        self._most = max(round((settings.sending_s - settings.duration_s) / settings.window_s), 0)
        self._seen = 0
        self.found: Settled | None = None

    @property
    def stationary(self) -> bool:
        return self.found is not None and self.found.stationary

    @property
    def discarded_s(self) -> float:
        return self.found.discard * self._settings.window_s if self.found else 0.0

    def enough(self, choir: Choir) -> bool:
        """Whether the launch has its measured part and can end."""
        self._look(received_by_window(choir))
        return self.found is not None

    def _look(self, rates: Sequence[float]) -> None:
        """At each number of windows once, however many have come since the last look."""
        while self.found is None and self._seen < len(rates):
            self._seen += 1
            self.found = settle(rates[: self._seen], self._measured, self._most)

    def keep(self, windows: Sequence[Window]) -> list[Window]:
        """The same windows, of which the measured part is kept; of a launch that ended before it had one, the last."""
        last = max((window.number for window in windows), default=0)
        if self.found is None:
            rates = [0.0] * last
            for window in windows:
                rates[window.number - 1] += window.received
            self._look(rates)
        found = self.found or Settled(max(last - self._measured, 0), last, stationary=False)
        self.found = found
        return [replace(window, kept=found.discard < window.number <= found.last) for window in windows]


def received_by_window(choir: Choir) -> list[float]:
    """Frames received in each window that is complete, over all pairs.

    A receiver to which nothing comes says nothing: a window without its line counts as empty once the senders have
    ended the next one.
    """
    leaders = [voice.windows for voice in choir.voices.values() if voice.leads]
    receivers = [voice.windows for voice in choir.voices.values() if not voice.leads]
    ended = min((max(windows, default=0) for windows in leaders), default=0)
    found = []
    for number in range(1, ended + 1):
        lines = [windows.get(number) for windows in receivers]
        if number == ended and None in lines:
            break
        found.append(float(sum(line.received.received for line in lines if line and line.received)))
    return found
