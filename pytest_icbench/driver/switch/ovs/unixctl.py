# SPDX-License-Identifier: BSD-3-Clause
"""The work of ``ovs-appctl``, without starting a program.

A program that starts while a launch is measured takes its CPU time from an endpoint where both share a CPU, and a busy
share is asked for twice a launch.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_icbench.errors import ProvisionError

_CHUNK = 65536


def ask(path: Path, command: str, *arguments: str, timeout_s: float) -> str:
    """Returns the answer of the daemon that listens on a control socket (``--unixctl``), by its JSON-RPC.

    Raises ProvisionError if it refuses the command, with its reason, if it is gone, or if it takes longer than that.
    """
    with asked(path, command, *arguments, timeout_s=timeout_s) as answer:
        return answer()


@contextmanager
def asked(path: Path, command: str, *arguments: str, timeout_s: float) -> Iterator[Callable[[], str]]:
    """Asks as ``ask`` does, and yields the call that waits for the answer. Errors are those of ``ask``."""
    deadline = time.monotonic() + timeout_s
    request = json.dumps({"id": 0, "method": command, "params": list(arguments)}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:

        @contextmanager
        def explained() -> Iterator[None]:
            try:
                yield
            except TimeoutError:
                raise ProvisionError(f"{path} has not answered {command} within {timeout_s:g} s") from None
            except OSError as error:
                raise ProvisionError(f"{path} does not take {command}: {error.strerror or error}") from None

        def answer() -> str:
            with explained():
                told = _read(connection, deadline)
            if told.get("error") is not None:
                raise ProvisionError(f"{path} refuses {command}: {str(told['error']).strip()}")
            return str(told.get("result") or "")

        with explained():
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            connection.sendall(request)
        yield answer


def _read(connection: socket.socket, deadline: float) -> dict[str, object]:
    """Reads one JSON object, whose end is known by its last brace only. Raises OSError."""
    text = b""
    while True:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        more = connection.recv(_CHUNK)
        if not more:
            raise ConnectionError("it has hung up")
        text += more
        if text.rstrip().endswith(b"}"):
            try:
                answer = json.loads(text)
            except ValueError:
                continue  # the brace was inside the object
            return dict(answer)
