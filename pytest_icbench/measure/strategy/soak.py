# SPDX-License-Identifier: BSD-3-Clause
"""Long runs: windows on the disk while they run, and the losses in them with their times."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from pytest_icbench.driver.workload.output import WindowLine
from pytest_icbench.errors import ProvisionError
from pytest_icbench.measure.launch.commands import pair_of
from pytest_icbench.model.codec import encode
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.long_run import LossEvent
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings

#: Loss events that a result lists; it counts them all.
MOST_EVENTS = 1000
#: Windows of a long run: their length grows with it, so that what is kept of them has a bound.
MOST_WINDOWS = 10_000
WINDOW_S = 1.0
#: How often what was written is on the disk for sure, in seconds: what a crash can cost.
SYNC_S = 5.0


def soak_settings(settings: Settings, duration_s: float, stream: Path | None = None) -> Settings:
    """One launch of that length, with a fixed warm-up and every window kept, streamed to a file."""
    window_s = max(min(WINDOW_S, duration_s / 10), duration_s / MOST_WINDOWS)
    return replace(
        settings,
        repeats=1,
        duration_s=duration_s,
        window_s=window_s,
        max_warmup_s=0.0,
        skip_s=0.0,
        keep_s=None,
        reference=False,
        stream=None if stream is None else str(stream),
    )


def loss_events(launch: Launch, warmup_s: float) -> Iterator[LossEvent]:
    """The launch's loss events, pair by pair, in order of time."""
    if not launch.windows:
        return
    first_ns = min(window.start_ns for window in launch.windows)
    for pair in sorted({window.pair for window in launch.windows}):
        own = sorted((w for w in launch.windows if w.pair == pair and w.kept), key=lambda window: window.number)
        numbered = enumerate(window for window in own if window.lost + window.refused > 0)
        # Numbers that follow each other differ from their places by the same.
        for _, stretch in groupby(numbered, key=lambda each: each[1].number - each[0]):
            yield _event(pair, [window for _, window in stretch], launch.started_at + warmup_s, first_ns)


def _event(pair: int, windows: Sequence[Window], begin_s: float, first_ns: int) -> LossEvent:
    start_ns = windows[0].start_ns
    return LossEvent(
        pair=pair,
        started_at=begin_s + (start_ns - first_ns) / 1e9,
        duration_s=(windows[-1].start_ns + windows[-1].duration_ns - start_ns) / 1e9,
        windows=len(windows),
        lost=sum(window.lost for window in windows),
        refused=sum(window.refused for window in windows),
    )


def with_losses(measurement: Measurement) -> Measurement:
    """The same with its loss events; the first ``MOST_EVENTS`` are listed."""
    warmup_s = float(measurement.settings.get("warmup_s", 0.0))
    found = [event for launch in measurement.per_launch for event in loss_events(launch, warmup_s)]
    found.sort(key=lambda event: (event.started_at, event.pair))
    return replace(measurement, loss_events=tuple(found[:MOST_EVENTS]), loss_event_count=len(found))


class WindowStream:
    """Writes each window as soon as both ends have spoken about it, one JSON line each.

    A line has ``pair number start_ns duration_ns scheduled sent refused received lost``, and a client's ``rtt``.
    ``received`` is what had arrived when the next window's frames began to: the final count can be greater.

    Raises ProvisionError if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending: dict[tuple[int, int], WindowLine] = {}
        self._written: dict[int, int] = {}
        self._synced = time.monotonic()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> ProvisionError:
        return ProvisionError(f"{self._path} cannot be written ({error.strerror}): make room or name other reports")

    def take(self, lines: Iterable[WindowLine]) -> None:
        """Takes what was heard; what was written already, and servers, are passed over."""
        try:
            for line in lines:
                if line.role == "server" or line.window <= self._written.get(line.stream, 0):
                    continue
                other = None if line.role == "client" else self._pending.pop((line.stream, line.window), None)
                if line.role == "client":
                    self._write(line, line)
                elif other is None:
                    self._pending[line.stream, line.window] = line
                else:
                    self._write(*((line, other) if line.role == "sender" else (other, line)))
            if time.monotonic() - self._synced >= SYNC_S:
                self._sync()
        except OSError as error:
            raise self._error(error) from None

    def _write(self, leader: WindowLine, receiver: WindowLine) -> None:
        sent, received = leader.sent, receiver.received
        if sent is None or received is None:
            return
        self._written[leader.stream] = leader.window
        for key in [key for key in self._pending if key[0] == leader.stream and key[1] < leader.window]:
            del self._pending[key]
        data: dict[str, Any] = {
            "pair": pair_of(leader.stream),
            "number": leader.window,
            "start_ns": sent.start_ns,
            "duration_ns": sent.duration_ns,
            "scheduled": sent.scheduled,
            "sent": sent.sent,
            "refused": sent.refused,
            "received": received.received,
            "lost": sent.sent - received.received,
        }
        if leader.rtt is not None:
            data["rtt"] = encode(leader.rtt)
        self._file.write(json.dumps(data, separators=(",", ":")) + "\n")

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        """Idempotent."""
        if not self._file.closed:
            try:
                self._sync()
            except OSError as error:
                raise self._error(error) from None
            finally:
                self._file.close()
