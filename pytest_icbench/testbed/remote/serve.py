# SPDX-License-Identifier: BSD-3-Clause
"""The server at the other end of a connection. It takes calls one at a time and gives its host back at the end.

When the connection ends, also by the death of the other side, everything that was made for it is unmade.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import queue
from contextlib import suppress
from typing import Any

from pytest_icbench.errors import IcbenchError, Invalid, UsageError, WorkloadError
from pytest_icbench.host.session import RUN_DIR
from pytest_icbench.host.signals import shielded
from pytest_icbench.testbed.remote.connection import ALIVE, SILENCE_S
from pytest_icbench.testbed.remote.end import HostEnd

log = logging.getLogger(__name__)


def serve(channel: Any) -> None:
    """Serves an execnet channel until its end."""
    Server(channel).run()


class Server:
    """The main thread's loop over the calls of a channel, which a thread of execnet receives."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._calls: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._end = HostEnd(self._wake)

    def _hear(self, message: str | None) -> None:
        self._calls.put(message)
        if message != ALIVE:
            os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Answers calls until the channel ends, or the other side is silent for ``SILENCE_S`` seconds."""
        self._channel.setcallback(self._hear, endmarker=None)
        try:
            while (message := self._calls.get(timeout=SILENCE_S)) is not None:
                if message == ALIVE:
                    continue
                self._quiet()
                self._channel.send(json.dumps(self._answer(json.loads(message))))
        except (queue.Empty, OSError, KeyboardInterrupt):
            log.info("the other side is gone")
        finally:
            with shielded(), suppress(IcbenchError):  # what remains is in the journal
                self._end.give_back()

    def _quiet(self) -> None:
        """Leaves ``wake`` readable only if there is another call."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        if not self._calls.empty():
            os.eventfd_write(self._wake, 1)

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        number = call["id"]
        try:
            return {"id": number, "result": self._end.answer(call["call"], call["arguments"])}
        except Invalid as error:
            return {"id": number, "error": "Invalid", "message": "", "reason": error.reason, "evidence": error.evidence}
        except WorkloadError as error:
            return {"id": number, "error": "WorkloadError", "message": str(error), "crashed": error.crashed}
        except UsageError as error:  # SessionBusyError too
            return {"id": number, "error": "UsageError", "message": str(error)}
        except IcbenchError as error:
            return {"id": number, "error": type(error).__name__, "message": str(error)}
        except OSError as error:
            return {"id": number, "error": "ProvisionError", "message": _system_error(error)}
        except Exception as error:  # a bug here is reported: the server has to live to give the host back
            return {"id": number, "error": "ProvisionError", "message": f"{type(error).__name__}: {error}"}


def _system_error(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"its disk is full{where or f' (below {RUN_DIR}, mostly)'}: free some space there"
    return f"{error.strerror or error}{where}"
