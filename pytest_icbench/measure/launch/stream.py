# SPDX-License-Identifier: BSD-3-Clause
"""Writes the windows of a long run to the disk while it runs, so that a crash costs only a few seconds of them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_icbench.driver.workload.output import WindowLine
from pytest_icbench.errors import ProvisionError
from pytest_icbench.measure.launch.commands import pair_of
from pytest_icbench.model.codec import encode

#: How often the file is synchronized with the disk, in seconds: the most that a crash can cost.
SYNC_S = 5.0


class WindowStream:
    """Writes each window as one JSON line as soon as both ends have written theirs.

    A line has ``pair number start_ns duration_ns scheduled sent refused received lost``, and a client's ``rtt``.
    ``received`` counts frames until those of the next window began to arrive: the final count can be greater.

    Raises:
        ProvisionError: the file cannot be written.
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
        """Takes new windows; skips those written already, and those of servers."""
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
        """Closes the file. Idempotent."""
        if not self._file.closed:
            try:
                self._sync()
            except OSError as error:
                raise self._error(error) from None
            finally:
                self._file.close()
