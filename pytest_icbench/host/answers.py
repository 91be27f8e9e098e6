# SPDX-License-Identifier: BSD-3-Clause
"""Reads the answers of programs and servers, with a deadline for the whole answer and a bound of its size."""

from __future__ import annotations

import errno
import os
import select
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from typing import IO

#: The most bytes of an answer, and of a command's output.
ANSWER_MAX_BYTES = 64 * 2**20
_CHUNK = 65536


class Unanswered(TimeoutError):
    """No whole answer came in time. ``came``: the part of the answer that came."""

    def __init__(self, came: bytes) -> None:
        super().__init__("no whole answer came in time")
        self.came = came


def _too_long() -> OSError:
    return OSError(errno.EMSGSIZE, f"it has written more than {ANSWER_MAX_BYTES >> 20} MiB")


def left_s(deadline: float) -> float:
    """Returns the seconds until a deadline, as a timeout of a socket: 0 would be none."""
    return max(deadline - time.monotonic(), 0.001)


def read_answer(
    source: socket.socket | IO[bytes], whole: Callable[[bytearray], object], deadline: float, before: bytes = b""
) -> bytes:
    """Reads from a socket or pipe until the answer is whole, or the other side ends it.

    If this process was stopped meanwhile, it reads what has come before it checks the deadline.

    Args:
        whole: returns whether the bytes so far are the whole answer.
        deadline: in seconds of ``time.monotonic``.
        before: the beginning of the answer, read earlier.

    Raises Unanswered at the deadline, OSError for a broken connection and for more than ``ANSWER_MAX_BYTES``.
    """
    came = bytearray(before)
    while not whole(came):
        late = time.monotonic() >= deadline
        try:
            part = _receive(source, left_s(deadline))
        except TimeoutError:
            raise Unanswered(bytes(came)) from None
        if not part:
            break
        came += part
        if late and not whole(came):
            raise Unanswered(bytes(came))
        if len(came) > ANSWER_MAX_BYTES:
            raise _too_long()
    return bytes(came)


def _receive(source: socket.socket | IO[bytes], timeout_s: float) -> bytes:
    """Returns what has come, waiting for some; nothing at the end. Raises TimeoutError, OSError."""
    if isinstance(source, socket.socket):
        source.settimeout(timeout_s)
        return source.recv(_CHUNK)
    poller = select.poll()
    poller.register(source, select.POLLIN)
    if not poller.poll(1000 * timeout_s):
        raise TimeoutError
    return os.read(source.fileno(), _CHUNK)


def read_outputs(pipes: Sequence[IO[bytes]], deadline: float) -> list[bytes]:
    """Reads pipes side by side to their ends. Raises as ``read_answer`` does."""
    came = [bytearray() for _ in pipes]
    with selectors.DefaultSelector() as selector:
        for pipe, text in zip(pipes, came, strict=True):
            selector.register(pipe, selectors.EVENT_READ, text)
        while selector.get_map():
            late = time.monotonic() >= deadline
            ready = selector.select(left_s(deadline))
            for key, _ in ready:
                if not (part := os.read(key.fd, _CHUNK)):
                    selector.unregister(key.fd)
                key.data.extend(part)
            if selector.get_map() and (late or not ready):
                raise Unanswered(b"")
            if sum(map(len, came)) > ANSWER_MAX_BYTES:
                raise _too_long()
    return [bytes(text) for text in came]
