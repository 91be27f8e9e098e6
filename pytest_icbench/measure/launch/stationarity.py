# SPDX-License-Identifier: BSD-3-Clause
"""Decides when the rate of a launch, or its round trips, are stationary, from the windows of its processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_icbench.measure.launch.processes import LaunchOutput
from pytest_icbench.model.launch import Window
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.warmup import FEWEST_WINDOWS, truncation


@dataclass(frozen=True, slots=True)
class SteadyPart:
    """The measured part of a launch: windows ``discard`` + 1 to ``last``; ``stationary``: whether its rate was."""

    discard: int
    last: int
    stationary: bool


def settle(rates: Sequence[float], measured: int, most: int) -> SteadyPart | None:
    """Returns the measured part of a launch; None while another window is needed.

    Args:
        rates: of every window so far.
        measured: number of windows to be measured; at least ``FEWEST_WINDOWS`` are judged.
        most: number of windows that may be discarded; then the last ones are measured, stationary or not.
    """
    n = len(rates)
    if n < max(measured, FEWEST_WINDOWS):
        return None
    discard = truncation(rates)
    if n - discard >= measured:
        return SteadyPart(discard, n, stationary=True)
    return SteadyPart(n - measured, n, stationary=False) if n >= measured + most else None


class Settling:
    """Watches one launch; decides at its end which windows are the measured part."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._measured = max(round(settings.duration_s / settings.window_s), 1)
        self._most = max(round((settings.sending_s - settings.duration_s) / settings.window_s), 0)
        self._seen = 0
        self.settled: SteadyPart | None = None

    @property
    def stationary(self) -> bool | None:
        """Whether the launch became stationary; None if that cannot be decided."""
        return self.settled is not None and self.settled.stationary

    @property
    def discarded_s(self) -> float:
        return self.settled.discard * self._settings.window_s if self.settled else 0.0

    def enough(self, launch_output: LaunchOutput) -> bool:
        """Whether the launch has its measured part and can end."""
        self._look(received_by_window(launch_output))
        return self.settled is not None

    def _look(self, rates: Sequence[float]) -> None:
        """Judges each number of windows once, however many have come since the last call."""
        while self.settled is None and self._seen < len(rates):
            self._seen += 1
            self.settled = settle(rates[: self._seen], self._measured, self._most)

    def keep(self, windows: Sequence[Window]) -> list[Window]:
        """Returns the windows with the measured part marked as kept; without one, the last windows are kept."""
        last = max((window.number for window in windows), default=0)
        if self.settled is None:
            rates = [0.0] * last
            for window in windows:
                rates[window.number - 1] += window.received
            self._look(rates)
        settled = self.settled or SteadyPart(max(last - self._measured, 0), last, stationary=False)
        self.settled = settled
        return [replace(window, kept=settled.discard < window.number <= settled.last) for window in windows]


#: Least change of the median round trip that counts, as a share: windows have it to two digits only.
LEAST_CHANGE_OF_TIMES = 0.03


class SettlingTimes(Settling):
    """Watches the round trips of one launch, by their median in each window.

    Histograms cannot be taken apart again. Therefore a launch is judged when it could end. If its first windows are
    unlike the rest, its clients begin their histograms anew, and it goes on for as long again.
    """

    def __init__(self, settings: Settings, launch_output: LaunchOutput, restart: Callable[[], None]) -> None:
        super().__init__(settings)
        self._launch_output = launch_output
        self._restart = restart
        self._restarted_after = 0
        self._decided = True

    @property
    def stationary(self) -> bool | None:
        return super().stationary if self._decided else None

    def enough(self, launch_output: LaunchOutput) -> bool:
        clients = [output.windows for output in launch_output.outputs.values() if output.asks]
        ended = min((max(windows, default=0) for windows in clients), default=0)
        begin = max((windows[max(windows)].rtt_from for windows in clients if windows), default=1)
        if self.settled is not None or begin <= self._restarted_after or ended - begin + 1 < self._measured:
            return self.settled is not None
        if self._steady(begin, ended) is False and ended + 2 <= self._most:
            self._restarted_after = ended  # clients read it in the next window, and begin two later
            self._restart()
            return False
        self._judge(begin, ended)
        return True

    def _judge(self, begin: int, last: int) -> None:
        steady = self._steady(begin, last)
        self._decided = steady is not None
        self.settled = SteadyPart(begin - 1, last, stationary=steady is True)

    def _steady(self, begin: int, last: int) -> bool | None:
        """Whether the medians of these windows are alike; None if too few windows have enough answers for a median."""
        clients = [output.windows for output in self._launch_output.outputs.values() if output.asks]
        medians = []
        for number in range(begin, last + 1):
            lines = [windows.get(number) for windows in clients]
            times = [line.rtt.p50_ns for line in lines if line and line.rtt and line.rtt.p50_ns is not None]
            if len(times) == len(clients):
                medians.append(float(sum(times)))
        return None if len(medians) < FEWEST_WINDOWS else truncation(medians, LEAST_CHANGE_OF_TIMES) == 0

    def keep(self, windows: Sequence[Window]) -> list[Window]:
        """Returns the windows; those whose answers are in the histograms are marked as kept."""
        first = {
            output.pair: output.summary.rtt_from
            for output in self._launch_output.outputs.values()
            if output.asks and output.summary is not None
        }
        last = max((window.number for window in windows), default=0)
        if self.settled is None:
            self._judge(max(first.values(), default=1), last)
        return [replace(window, kept=window.number >= first.get(window.pair, 1)) for window in windows]


def received_by_window(launch_output: LaunchOutput) -> list[float]:
    """Returns the frames received in each complete window, over all pairs.

    A receiver without frames writes no line. A window without its line counts as empty once the senders have ended the
    next one.
    """
    leaders = [output.windows for output in launch_output.outputs.values() if output.leads]
    receivers = [output.windows for output in launch_output.outputs.values() if output.receives]
    ended = min((max(windows, default=0) for windows in leaders), default=0)
    received = []
    for number in range(1, ended + 1):
        lines = [windows.get(number) for windows in receivers]
        if number == ended and None in lines:
            break
        received.append(float(sum(line.received.received for line in lines if line and line.received)))
    return received
