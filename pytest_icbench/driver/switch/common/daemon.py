# SPDX-License-Identifier: BSD-3-Clause
"""What userspace switches have in common: processes that die, are paused and are ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress

from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.process import Process

#: How long a switch may take to tell how busy it is, in seconds: whoever asks hears no endpoint meanwhile.
SAMPLE_S = 1.0
_STOP_S = 2.0
_POLL_S = 0.005


def exit_sentence(code: int) -> str:
    """How a process ended, from its exit code."""
    if code < 0:
        return f"was killed by signal {-code} ({signal.strsignal(-code)})"
    return f"ended with exit code {code}"


class Daemon:
    """A switch's process.

    Args:
        name: what messages call it.
    """

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.process = process
        self._paused = False
        self._stopped = False

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if it has ended."""
        if self._stopped:
            raise ProvisionError(f"{self.name} was stopped")
        code = self.process.poll()
        if code is not None:
            raise ProvisionError(f"{self.name} {exit_sentence(code)}{self.evidence()}")

    def evidence(self) -> str:
        """The end of its log, as a message's further lines."""
        tail = self.process.tail()
        return f"; the end of its log:\n{tail}" if tail else "; its log is empty"

    def wait_until(self, done: Callable[[], bool], *, what: str, timeout_s: float) -> None:
        """Polls ``done`` every 5 ms.

        Raises ProvisionError with the log's tail if the process dies, or after ``timeout_s`` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while not done():
            self.check()
            if time.monotonic() > deadline:
                raise ProvisionError(f"{self.name} {what} within {timeout_s:g} s{self.evidence()}")
            time.sleep(_POLL_S)

    def pause(self) -> None:
        """Takes every thread off the CPU."""
        if not self._paused and not self._stopped:
            self.process.signal(signal.SIGSTOP)
            self._paused = True

    def resume(self) -> None:
        """Goes on after ``pause``."""
        if self._paused and not self._stopped:
            self.process.signal(signal.SIGCONT)
            self._paused = False

    def stop(self) -> None:
        """SIGTERM, then SIGKILL. Idempotent, takes at most some seconds."""
        if self._stopped:
            return
        self._stopped = True
        if self._paused:
            with suppress(ProcessLookupError):
                self.process.signal(signal.SIGCONT)
        self.process.stop(term_s=_STOP_S)


class DaemonSwitch(Switch):
    """A driver whose switch is one process: ``start`` sets ``daemon``; what else it made, its own ``stop`` removes."""

    daemon: Daemon | None = None

    def live(self) -> Daemon:
        """The running process. Raises ProvisionError with the log's tail if it has died, or was never started."""
        if self.daemon is None:
            raise ProvisionError(f"{self.name} was not started")
        self.daemon.check()
        return self.daemon

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if it has died."""
        self.live()

    def pause(self) -> None:
        """Takes all its threads off the CPUs."""
        if self.daemon is not None:
            self.daemon.pause()

    def resume(self) -> None:
        """Lets its threads go on."""
        if self.daemon is not None:
            self.daemon.resume()

    def stop(self) -> None:
        """Ends it. Idempotent, takes at most some seconds."""
        if self.daemon is not None:
            self.daemon.stop()
