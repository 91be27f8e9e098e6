# SPDX-License-Identifier: BSD-3-Clause
"""The progress line: live on a terminal, whole lines at long intervals in a pipe; and the time that is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_icbench.plugin.terminal import is_live, write_own_line
from pytest_icbench.wording import clock, printable

#: Least time between two updates, since writing takes the harness' CPU some microseconds.
LIVE_INTERVAL_S = 0.2
#: Seconds. In a pipe, a case that is over sooner has only its result's line; a longer one has a line at this interval.
PLAIN_PATIENCE_S = 10.0
PLAIN_INTERVAL_S = 30.0


def rate_text(mpps: float) -> str:
    """Returns a rate for the line; one that is far too low for Mpps in frames per second."""
    return f"{mpps:.2f} Mpps" if mpps >= 0.1 else f"{mpps * 1e6:,.0f} frames/s"


class Schedule:
    """The cases that are done and those that are left.

    ``estimates_s``: the seconds of each case, in the order in which they run.
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


class ProgressLine:
    """Shows how far the run is. It is silent in xdist's workers, and with ``-q`` in a pipe.

    On a terminal the line stands below pytest's and is removed before pytest goes on; it uses no colours. In a pipe
    there are lines only for a case that takes long.
    """

    def __init__(self, config: pytest.Config, schedule: Schedule) -> None:
        self.schedule = schedule
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")
        self._reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._writer = config.get_terminal_writer() if self._reporter is not None else None
        quiet = config.get_verbosity() < 0
        self._live = self._reporter is not None and is_live(self._reporter) and config.get_verbosity() > -2
        self._plain = self._reporter is not None and not self._live and not quiet
        self._config = config
        self._shown = False
        #: Whether the live line stands in a separate row, below pytest's.
        self._below = False
        self._column = 0
        self._last: float | None = None
        self._began = self._case_began = time.monotonic()

    def update(self, case: str, phase: str, *, mpps: float | None = None, left_s: float | None = None) -> None:
        """Shows the progress of the current case, if the last update was long enough ago.

        Args:
            case: the id of the case.
            phase: the phase of the case, for example ``build`` or ``launch 3/7``.
            mpps: the current receive rate in millions of frames per second; None for a case of latency, too.
            left_s: the seconds that the case itself still takes.
        """
        now = time.monotonic()
        if not self._is_due(now):
            return
        self._last = now
        parts = [f"case {self.schedule.current} of {self.schedule.total}", printable(case), phase]
        if mpps:  # a launch begins with a window without frames
            parts.append(rate_text(mpps))
        parts.append(f"{clock(now - self._began)} elapsed, {clock(self.schedule.left_s(left_s))} left")
        self._write("  ".join(parts))

    def _is_due(self, now: float) -> bool:
        if self._live:
            return self._last is None or now - self._last >= LIVE_INTERVAL_S
        if not self._plain:
            return False
        if self._last is None:
            return now - self._case_began >= PLAIN_PATIENCE_S
        return now - self._last >= PLAIN_INTERVAL_S

    def next_case(self) -> None:
        """Makes the next update show at once; in a pipe, the first one after some seconds."""
        self._last = None
        self._case_began = time.monotonic()

    def clear(self) -> None:
        """Removes the live line and puts the cursor back where pytest left it."""
        if self._shown:
            self._shown = False
            with self._uncaptured():
                up = "\x1b[A" if self._below else ""
                sys.stdout.write(f"\r\x1b[K{up}" + (f"\x1b[{self._column}C" if self._column else ""))
                sys.stdout.flush()

    def _write(self, text: str) -> None:
        with self._uncaptured():
            if not self._live:
                write_own_line(self._config, f"icbench: {text}")
                return
            assert self._writer is not None
            width = max(self._writer.fullwidth, 20)
            if not self._shown:
                self._column = self._writer.width_of_current_line % width
                self._below = bool(self._writer.width_of_current_line)
                sys.stdout.write("\n" if self._below else "")
                self._shown = True
            sys.stdout.write("\r" + text[: width - 1] + "\x1b[K")
            sys.stdout.flush()

    @contextmanager
    def _uncaptured(self) -> Iterator[None]:
        if self._capture is None:
            yield
            return
        with self._capture.global_and_fixture_disabled():
            yield
