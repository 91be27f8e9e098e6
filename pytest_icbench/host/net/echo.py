# SPDX-License-Identifier: BSD-3-Clause
"""Asks kernels in other network namespaces for an answer to a frame: an ICMP echo (RFC 792)."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from types import TracebackType
from typing import Self

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.namespaces import entered

_REQUEST, _REPLY = 8, 0
#: The time in seconds after which a request is sent again.
_AGAIN_S = 0.1


class Echo:
    """A socket that asks from one network namespace. A context manager.

    Args:
        netns: path of the namespace.

    Raises ProvisionError.
    """

    def __init__(self, netns: str) -> None:
        with entered(netns):
            try:
                self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            except OSError as error:
                raise ProvisionError(f"no frame can be sent from {netns} ({error.strerror}): run as root") from None
        self._socket.setblocking(False)
        self._sequence = 0

    def ask(self, ip: str, *, timeout_s: float = 2.0) -> None:
        """Asks an address until it answers. Raises ProvisionError after ``timeout_s`` seconds."""
        self._sequence = (self._sequence + 1) & 0xFFFF
        request = echo_request(os.getpid() & 0xFFFF, self._sequence)
        deadline = time.monotonic() + timeout_s
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                self._socket.sendto(request, (ip, 0))
            except OSError as error:
                raise ProvisionError(f"no frame can be sent to {ip}: {error.strerror}") from None
            if self._answered(ip, request[4:8], min(left_s, _AGAIN_S)):
                return
        raise ProvisionError(f"{ip} has answered no frame within {timeout_s:g} s")

    def _answered(self, ip: str, identity: bytes, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while select.select([self._socket], [], [], max(deadline - time.monotonic(), 0))[0]:
            packet, (sender, _) = self._socket.recvfrom(2048)
            if sender == ip and answered(packet) == identity:
                return True
        return False

    def close(self) -> None:
        """Closes the socket. Idempotent."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def echo_request(identifier: int, sequence: int) -> bytes:
    """Returns an echo request without data, with its checksum (RFC 1071)."""
    total = (_REQUEST << 8) + identifier + sequence
    total = (total & 0xFFFF) + (total >> 16)
    total += total >> 16
    return struct.pack("!BBHHH", _REQUEST, 0, ~total & 0xFFFF, identifier, sequence)


def answered(packet: bytes) -> bytes | None:
    """Returns identifier and sequence number, 2 bytes each, of the request that an IP packet answers; else None."""
    reply = packet[(packet[0] & 0xF) * 4 :]
    return reply[4:8] if reply[:1] == bytes([_REPLY]) else None
