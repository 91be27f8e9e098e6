# SPDX-License-Identifier: BSD-3-Clause
"""The process of a userspace switch: it can die, is paused and is ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress

from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.process import Process, exit_sentence, refused_memory, stopped_sentence

#: How long a switch may take to tell how busy it is, in seconds. No endpoint is read meanwhile.
SAMPLE_S = 1.0
_STOP_S = 2.0
_POLL_S = 0.005


class Daemon:
    """A switch's process.

    Args:
        name: its name in messages.
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
            why = refused_memory(self.process.tail())
            raise ProvisionError(f"{self.name} {exit_sentence(code)}{why}{self.evidence()}")

    def fault(self) -> str | None:
        """Returns that someone else has stopped it, so that frames wait in it; None if it runs."""
        if self._paused or self._stopped or not self.process.is_stopped:
            return None
        return stopped_sentence(self.name, self.process.pid)

    def evidence(self) -> str:
        """Returns the end of its log, as further lines of a message."""
        tail = self.process.tail()
        return f"; the end of its log:\n{tail}" if tail else "; its log is empty"

    def late(self, failure: str, timeout_s: float) -> str:
        """Returns what it has not done in a time, after who has stopped it, with the end of its log."""
        fault = self.fault()
        return f"{f'{fault}; ' if fault else ''}{self.name} {failure} within {timeout_s:g} s{self.evidence()}"

    def wait_until(self, done: Callable[[], bool], *, failure: str, timeout_s: float) -> None:
        """Polls ``done`` every 5 ms.

        Args:
            failure: what the process has not done, for the message: ``has not opened its socket``.

        Raises ProvisionError with the log's tail if the process dies, or after ``timeout_s`` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while not done():
            self.check()
            if time.monotonic() > deadline:
                raise ProvisionError(self.late(failure, timeout_s))
            time.sleep(_POLL_S)

    def pause(self) -> None:
        """Takes every thread off the CPU."""
        if not self._paused and not self._stopped:
            self.process.signal(signal.SIGSTOP)
            self._paused = True

    def resume(self) -> None:
        """Lets it go on after ``pause``."""
        if self._paused and not self._stopped:
            self.process.signal(signal.SIGCONT)
            self._paused = False

    def leave(self) -> None:
        """Sends SIGTERM, so that ``stop`` finds it ended, or ending."""
        if not self._stopped:
            self.process.signal(signal.SIGTERM)
            self.process.signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends it by SIGTERM, then by SIGKILL. Idempotent, takes a few seconds at most."""
        if self._stopped:
            return
        self._stopped = True
        if self._paused:
            with suppress(ProcessLookupError):
                self.process.signal(signal.SIGCONT)
        self.process.stop(term_s=_STOP_S)


class DaemonSwitch(Switch):
    """A driver whose switch is one process.

    ``start`` of the driver sets ``daemon``. If it makes anything else, its ``stop`` removes that.
    """

    daemon: Daemon | None = None

    def live(self) -> Daemon:
        """Returns the running process. Raises ProvisionError with the log's tail if it has died or was not started."""
        if self.daemon is None:
            raise ProvisionError(f"{self.name} was not started")
        self.daemon.check()
        return self.daemon

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if it has died."""
        self.live()

    def fault(self) -> str | None:
        """Returns that someone else has stopped it; None if it runs."""
        return None if self.daemon is None else self.daemon.fault()

    def pause(self) -> None:
        """Takes all its threads off the CPUs."""
        if self.daemon is not None:
            self.daemon.pause()

    def resume(self) -> None:
        """Lets its threads go on."""
        if self.daemon is not None:
            self.daemon.resume()

    def stop(self) -> None:
        """Ends it. Idempotent, takes a few seconds at most."""
        if self.daemon is not None:
            self.daemon.stop()
