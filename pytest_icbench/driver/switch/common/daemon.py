# SPDX-License-Identifier: BSD-3-Clause
"""The process of a userspace switch: whether it is alive, its pause, its end, and the cores for its queues."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar

from pytest_icbench.driver.switch.protocol import Attachment, Switch
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.process import Process, exit_sentence, refused_memory, stopped_sentence
from pytest_icbench.model.case import Family
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.traffic import MAX_FRAME_BYTES
from pytest_icbench.wording import counted

#: Seconds within which a switch has to report how busy it is. No endpoint is read in that time.
SAMPLE_S = 1.0
_STOP_S = 2.0
#: Lines of a log in a message, and of the stack after them.
_LOG_LINES, _MOST_FRAMES = 15, 40
_FRAME = re.compile(r"#\d+ +0x[0-9a-f]{6,}| {5}from /")
_POLL_S = 0.005


def check_cores(switch: str, cores: int, pairs: int, queues: int, unit: str = "receive queues") -> None:
    """Raises Unsupported for more cores than receive queues.

    Args:
        queues: queue pairs of each port.
        unit: the switch's word for queues.
    """
    of_all = len(FramePath(pairs).endpoints) * queues
    if cores > of_all:
        ports = counted(pairs, "pair") + (f" of {queues} queues" if queues > 1 else "")
        raise Unsupported(
            f"{switch} cannot use {cores} cores for {ports}, which are {of_all} {unit}: ask for at most {of_all} switch"
            " cores"
        )


def share_queues(attachments: Sequence[Attachment], cores: int, queues: int) -> dict[int, tuple[int, ...]]:
    """Returns the core (0 to ``cores`` - 1) of each queue, by the index of its port.

    Cores are assigned in turn, first to the queues of senders' ports. So with as many cores as pairs and one queue,
    each core has one sender's port. No core has two queues while another has none.
    """
    ordered = sorted(attachments, key=lambda attachment: (attachment.side, attachment.index))
    return {
        attachment.index: tuple((position * queues + queue) % cores for queue in range(queues))
        for position, attachment in enumerate(ordered)
    }


def divide_ports(ports: int, cores: int) -> list[int]:
    """Returns the core of each port: blocks of ports share a core, and the last cores have one more if need be."""
    ports_a_core, remainder = divmod(ports, cores)
    sizes = [ports_a_core] * (cores - remainder) + [ports_a_core + 1] * remainder
    return [core for core, size in enumerate(sizes) for _ in range(size)]


class Daemon:
    """A switch's process. ``name``: its name in messages."""

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
        """Returns a message if another process has stopped it, so that frames wait in it; None if it runs."""
        if self._paused or self._stopped or not self.process.is_stopped:
            return None
        return stopped_sentence(self.name, self.process.pid)

    def evidence(self) -> str:
        """Returns the end of its log, as additional lines of a message.

        The stack that a program prints as it aborts is left out, because the reason stands before it.
        """
        lines = self.process.tail(_LOG_LINES + _MOST_FRAMES).splitlines()
        tail = "\n".join([line for line in lines if not _FRAME.match(line)][-_LOG_LINES:])
        return f"; the end of its log:\n{tail}" if tail else "; its log is empty"

    def late(self, failure: str, timeout_s: float) -> str:
        """Returns the message for a timeout: a stop by another process, the failure, the end of the log."""
        fault = self.fault()
        return f"{f'{fault}; ' if fault else ''}{self.name} {failure} within {timeout_s:g} s{self.evidence()}"

    def wait_until(self, done: Callable[[], bool], *, failure: str, timeout_s: float) -> None:
        """Polls ``done`` every 5 ms.

        ``failure``: what the process has not done, for the message: ``has not opened its socket``. Raises
        ProvisionError with the log's tail if the process dies, or after ``timeout_s`` seconds.
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
        """Lets it continue after ``pause``."""
        if self._paused and not self._stopped:
            self.process.signal(signal.SIGCONT)
            self._paused = False

    def leave(self) -> None:
        """Sends SIGTERM without waiting; ``stop`` waits."""
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
    """A driver whose switch is one process, with the traits that most of these share.

    ``start`` of the driver sets ``daemon``. Its ``stop`` also removes whatever else it has created.
    """

    family: ClassVar[Family] = "dpdk"
    apis: ClassVar[tuple[str, ...]] = ("dpdk",)
    default_apis: ClassVar[tuple[str, ...]] = ("dpdk",)
    default_cores = 1
    max_frame_bytes = MAX_FRAME_BYTES
    max_pairs: ClassVar[int | None] = None

    daemon: Daemon | None = None

    def live(self) -> Daemon:
        """Returns the running process. Raises ProvisionError with the log's tail if it has died or was not started."""
        if self.daemon is None:
            raise ProvisionError(f"{self.name} was not started")
        self.daemon.check()
        return self.daemon

    def check(self) -> None:
        self.live()

    def fault(self) -> str | None:
        return None if self.daemon is None else self.daemon.fault()

    def pause(self) -> None:
        if self.daemon is not None:
            self.daemon.pause()

    def resume(self) -> None:
        if self.daemon is not None:
            self.daemon.resume()

    def stop(self) -> None:
        if self.daemon is not None:
            self.daemon.stop()
