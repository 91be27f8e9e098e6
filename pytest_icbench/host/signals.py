# SPDX-License-Identifier: BSD-3-Clause
"""Makes every signal that ends a process clean up as Ctrl-C does. A second signal does not interrupt the cleanup.

A lost terminal sends SIGHUP, job schedulers send SIGUSR1, SIGUSR2 or SIGXCPU before they kill, Ctrl-\\ sends SIGQUIT.
SIGKILL is not handled. Nor are the faults of the process itself (SIGSEGV and the like), after which its memory cannot
be trusted. Except for SIGINT and SIGTERM, a signal stays as it is if it is ignored (``nohup``) or has a handler
(pytest-timeout's SIGALRM, ``faulthandler.register``).
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_ALWAYS = (signal.SIGINT, signal.SIGTERM)
_FAULTS = {"SEGV", "BUS", "FPE", "ILL", "ABRT", "TRAP", "SYS"}
#: Those whose default action does not end a process, or that no process can handle.
_OTHERS = {"CHLD", "CLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "WINCH", "KILL"}
_SIGNALS = tuple(
    number
    for number in sorted(signal.valid_signals())
    if number not in {getattr(signal, f"SIG{name}", None) for name in _FAULTS | _OTHERS}
)
#: Signals within this time after the first count as impatience, not as a new request.
_GRACE_S = 10.0
#: Seconds until a signal whose exception Python swallowed is sent again.
_AGAIN_S = 0.01


def _ending(*, handled: bool) -> list[int]:
    """Returns the signals that would end this process.

    Args:
        handled: whether also those that have a handler in Python.
    """
    caught = 0
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("SigCgt:"):  # has the handlers of other libraries, too
            caught = int(line.split()[1], 16)
    return [
        number
        for number in _SIGNALS
        if number in _ALWAYS
        or (signal.getsignal(number) == signal.SIG_DFL and not caught >> (number - 1) & 1)
        or (handled and callable(signal.getsignal(number)))
    ]


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handles the signals that end a process by ``handler`` in the block. Has no effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = {number: signal.signal(number, handler) for number in _ending(handled=True)}
    try:
        yield
    finally:
        for number, before in old.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)


@contextmanager
def shield_signals() -> Iterator[None]:
    """Within the block, signals that end a process are only acknowledged. Has no effect outside the main thread."""
    with _handled(lambda _number, _frame: _say_cleaning()):
        yield


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defers signals that end a process until the end of the block, which is short. Works in the main thread alone."""
    came: list[int] = []
    try:
        with _handled(lambda number, _frame: came.append(number)):
            yield
    finally:
        if came:
            signal.raise_signal(came[0])


def _say_cleaning() -> None:
    with suppress(OSError, ValueError, RuntimeError):  # closed, or the signal came within a write to it
        sys.stderr.write("\nicbench: cleaning up, a few seconds more (after kill -9: icbench recover)\n")


class SignalGuard:
    """Turns the first signal that ends a process into a KeyboardInterrupt in the main thread, while it is installed.

    Further ones within ten seconds, while the first is being handled, are only acknowledged. In a finalizer or in a
    weak reference's callback Python swallows every exception: then the signal is sent until it is handled. A forked
    child has its handlers as they were before. ``received``: the first signal's number, None if there was none.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._handled_at = 0.0
        self._swallowing = False
        self._old: dict[int, object] = {}
        self._pid = os.getpid()
        self._unraisable: Callable[[sys.UnraisableHookArgs], object] = sys.__unraisablehook__

    def install(self) -> None:
        """Installs the handlers. Has no effect outside the main thread. Idempotent."""
        if self._old or threading.current_thread() is not threading.main_thread():
            return
        self._pid = os.getpid()
        for number in _ending(handled=False):
            self._old[number] = signal.signal(number, self._handle)
        self._unraisable, sys.unraisablehook = sys.unraisablehook, self._swallowed

    def restore(self) -> None:
        """Restores the previous handlers. Idempotent."""
        for number, handler in self._old.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)  # type: ignore[arg-type]
        self._old = {}
        if sys.unraisablehook == self._swallowed:
            sys.unraisablehook = self._unraisable

    def _swallowed(self, what: sys.UnraisableHookArgs) -> None:
        if self.received is None or not isinstance(what.exc_value, KeyboardInterrupt):
            self._unraisable(what)
            return
        self._swallowing, self._handled_at = True, -math.inf
        try:
            threading.Thread(target=self._send_until_handled, args=(self.received,), daemon=True).start()
        finally:
            self._swallowing = False

    def _send_until_handled(self, number: int) -> None:
        time.sleep(_AGAIN_S)
        while self._old and self._handled_at == -math.inf:
            os.kill(os.getpid(), number)
            time.sleep(_AGAIN_S)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            self.restore()
            signal.raise_signal(number)
            return
        if self._swallowing:  # an exception here would be swallowed, too; the signal comes again
            return
        now = time.monotonic()
        if self.received is not None and now - self._handled_at < _GRACE_S:
            _say_cleaning()
            return
        if self.received is None:
            self.received = number
        self._handled_at = now
        raise KeyboardInterrupt(_name(number))

    def __enter__(self) -> SignalGuard:
        self.install()
        return self

    def __exit__(self, *error: object) -> None:
        self.restore()
