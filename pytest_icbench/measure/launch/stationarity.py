# SPDX-License-Identifier: BSD-3-Clause
"""A launch that waits for its rate, or its round trips, to become stationary: what its processes say, as a series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pytest_icbench.measure.launch.processes import LaunchOutput
from pytest_icbench.model.launch import Window
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.warmup import FEWEST_WINDOWS, Settled, settle, truncation


class Settling:
    """Watches one launch; knows at its end which windows are the measured part."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._measured = max(round(settings.duration_s / settings.window_s), 1)
        self._most = max(round((settings.sending_s - settings.duration_s) / settings.window_s), 0)
        self._seen = 0
        self.found: Settled | None = None

    @property
    def stationary(self) -> bool | None:
        """Whether it became stationary; None if that cannot be told."""
        return self.found is not None and self.found.stationary

    @property
    def discarded_s(self) -> float:
        return self.found.discard * self._settings.window_s if self.found else 0.0

    def enough(self, launch_output: LaunchOutput) -> bool:
        """Whether the launch has its measured part and can end."""
        self._look(received_by_window(launch_output))
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


#: Part of the median round trip by which it changes before anybody minds: windows tell it to two digits only.
LEAST_CHANGE_OF_TIMES = 0.03


class SettlingTimes(Settling):
    """The same for round trips, by their median in each window.

    Histograms cannot be taken apart again. So a launch is judged when it could end: if what it recorded first is unlike
    the rest, its clients begin their histograms anew, and it goes on for as long again.
    """

    def __init__(self, settings: Settings, launch_output: LaunchOutput, restart: Callable[[], None]) -> None:
        super().__init__(settings)
        self._choir = launch_output
        self._restart = restart
        self._asked_after = 0
        self._told = True

    @property
    def stationary(self) -> bool | None:
        return super().stationary if self._told else None

    def enough(self, launch_output: LaunchOutput) -> bool:
        clients = [output.windows for output in launch_output.outputs.values() if output.leads]
        ended = min((max(windows, default=0) for windows in clients), default=0)
        begin = max((windows[max(windows)].rtt_from for windows in clients if windows), default=1)
        if self.found is not None or begin <= self._asked_after or ended - begin + 1 < self._measured:
            return self.found is not None
        if self._steady(begin, ended) is False and ended + 2 <= self._most:
            self._asked_after = ended  # they hear it in the next window, and begin two later
            self._restart()
            return False
        self._judge(begin, ended)
        return True

    def _judge(self, begin: int, last: int) -> None:
        steady = self._steady(begin, last)
        self._told = steady is not None
        self.found = Settled(begin - 1, last, stationary=steady is True)

    def _steady(self, begin: int, last: int) -> bool | None:
        """Whether the medians of these windows are alike; None if too few windows have answers enough for one."""
        clients = [output.windows for output in self._choir.outputs.values() if output.leads]
        medians = []
        for number in range(begin, last + 1):
            lines = [windows.get(number) for windows in clients]
            times = [line.rtt.p50_ns for line in lines if line and line.rtt and line.rtt.p50_ns is not None]
            if len(times) == len(clients):
                medians.append(float(sum(times)))
        return None if len(medians) < FEWEST_WINDOWS else truncation(medians, LEAST_CHANGE_OF_TIMES) == 0

    def keep(self, windows: Sequence[Window]) -> list[Window]:
        """The same windows, of which those are kept whose answers the histograms have."""
        first = {
            output.pair: output.summary.rtt_from
            for output in self._choir.outputs.values()
            if output.leads and output.summary is not None
        }
        last = max((window.number for window in windows), default=0)
        if self.found is None:
            self._judge(max(first.values(), default=1), last)
        return [replace(window, kept=window.number >= first.get(window.pair, 1)) for window in windows]


def received_by_window(launch_output: LaunchOutput) -> list[float]:
    """Frames received in each window that is complete, over all pairs.

    A receiver to which nothing comes says nothing: a window without its line counts as empty once the senders have
    ended the next one.
    """
    leaders = [output.windows for output in launch_output.outputs.values() if output.leads]
    receivers = [output.windows for output in launch_output.outputs.values() if not output.leads]
    ended = min((max(windows, default=0) for windows in leaders), default=0)
    found = []
    for number in range(1, ended + 1):
        lines = [windows.get(number) for windows in receivers]
        if number == ended and None in lines:
            break
        found.append(float(sum(line.received.received for line in lines if line and line.received)))
    return found
