# SPDX-License-Identifier: BSD-3-Clause
"""Handlers by which SIGTERM cleans up as Ctrl-C does, and a second signal does not cut the clean-up short."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Signals within this time after the first are taken for impatience, not for a new request.
_GRACE_S = 10.0


@contextmanager
def shielded() -> Iterator[None]:
    """Only acknowledges SIGINT and SIGTERM within the block. Has no effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ignore(_number: int, _frame: FrameType | None) -> None:
        _say("cleaning up, a few seconds more (after kill -9: icbench recover)")

    old = {number: signal.signal(number, ignore) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


@contextmanager
def deferred() -> Iterator[None]:
    """Lets SIGINT and SIGTERM act after the block only, which is short. Has no effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    old = {number: signal.signal(number, lambda number, _frame: came.append(number)) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        if came:
            signal.raise_signal(came[0])


def _say(text: str) -> None:
    with suppress(OSError, ValueError, RuntimeError):  # closed, or the signal came within a write to it
        sys.stderr.write(f"\nicbench: {text}\n")


class SignalGuard:
    """Turns the first SIGINT or SIGTERM into a KeyboardInterrupt in the main thread, while it is installed.

    Further ones within ten seconds, while the first is being handled, are only acknowledged.

    Attributes:
        received: the first signal's number, None if there was none.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._handled_at = 0.0
        self._old: dict[int, object] = {}

    def install(self) -> None:
        """Installs the handlers. Has no effect outside the main thread. Idempotent."""
        if self._old or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            self._old[number] = signal.signal(number, self._handle)

    def restore(self) -> None:
        """Restores the previous handlers. Idempotent."""
        for number, handler in self._old.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)  # type: ignore[arg-type]
        self._old = {}

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.received is not None and now - self._handled_at < _GRACE_S:
            _say("cleaning up, a few seconds more (after kill -9: icbench recover)")
            return
        if self.received is None:
            self.received = number
        self._handled_at = now
        raise KeyboardInterrupt(signal.Signals(number).name)

    def __enter__(self) -> SignalGuard:
        self.install()
        return self

    def __exit__(self, *error: object) -> None:
        self.restore()
