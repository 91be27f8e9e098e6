# SPDX-License-Identifier: BSD-3-Clause
"""Sockets in network namespaces: listeners, interface counters, questions to servers, and ICMP echoes (RFC 792)."""

from __future__ import annotations

import math
import os
import select
import socket
import ssl
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.host.answers import Unanswered, left_s, read_answer
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.model.rig import Question

#: State of a socket in /proc/net/tcp that listens, and in /proc/net/udp of one without a peer.
_LISTENS = {"tcp": "0A", "udp": "07"}


def is_listening(pid: int, where: str) -> bool:
    """Whether a socket listens in a process' network namespace. ``where``: protocol and port: ``tcp:6379``."""
    protocol, _, port = where.partition(":")
    for table in (protocol, f"{protocol}6"):
        with suppress(OSError, ValueError, IndexError):
            lines = Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]
            for line in lines:
                fields = line.split()
                if int(fields[1].rpartition(":")[2], 16) == int(port) and fields[3] == _LISTENS[protocol]:
                    return True
    return False


def received_counters(pid: int) -> tuple[int, int]:
    """Returns bytes and frames that a namespace's interfaces received, without the loopback."""
    octets = frames = 0
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/net/dev").read_text(encoding="utf-8", errors="replace").splitlines()[2:]:
            name, _, rest = line.partition(":")
            fields = rest.split()
            if name.strip() != "lo" and len(fields) > 9:
                octets, frames = octets + int(fields[0]), frames + int(fields[1])
    return octets, frames


def ask(netns: str, address: str, question: Question) -> str:
    """Sends a question to a server and returns the answer. ``netns``: path of the network namespace in which it starts.

    Raises WorkloadError if there is no connection, or no whole answer in time.
    """
    port, length, via, limit_s = question.port, question.length, question.via, question.timeout_s
    deadline = time.monotonic() + limit_s
    try:
        with enter_netns(netns):  # a socket stays in the namespace in which it was made
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if via == "udp" else socket.SOCK_STREAM)
        with opened as plain:
            plain.settimeout(limit_s)
            plain.connect((address, port))
            plain.settimeout(left_s(deadline))
            talk = _unchecked().wrap_socket(plain) if via == "tls" else plain
            with talk:
                talk.settimeout(left_s(deadline))
                talk.sendall(question.request.encode("latin-1"))
                enough = length or (1 if via == "udp" else math.inf)
                answer = read_answer(talk, lambda came: len(came) >= enough, deadline)
    except TimeoutError as error:
        begun = error.came if isinstance(error, Unanswered) else b""
        came = f"only {len(begun)} bytes came: {begun[:40]!r}" if begun else "nothing came"
        asked = repr(question.request[:20])
        raise WorkloadError(
            f"the server at {address} port {port} has not answered {asked} within {limit_s:g} s; {came}"
        ) from None
    except OSError as error:
        raise WorkloadError(
            f"the server at {address} port {port} cannot be asked ({error.strerror or error})"
        ) from None
    return answer.decode("latin-1")


def _unchecked() -> ssl.SSLContext:
    """Returns a context for a server with a self-signed certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_REQUEST, _REPLY = 8, 0
#: The time in seconds after which a request is sent again.
_AGAIN_S = 0.1


class Echo:
    """A socket that asks from one network namespace. A context manager. ``netns``: path of the namespace.

    Raises ProvisionError.
    """

    def __init__(self, netns: str) -> None:
        with enter_netns(netns):
            try:
                self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            except OSError as error:
                raise ProvisionError(f"no frame can be sent from {netns} ({error.strerror}): run as root") from None
        self._socket.setblocking(False)
        self._sequence = 0

    def ask(self, ip: str, *, timeout_s: float = 2.0) -> None:
        """Sends echo requests to an address until it answers. Raises ProvisionError after ``timeout_s`` seconds."""
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
        raise ProvisionError(f"{ip} has not answered an echo request within {timeout_s:g} s")

    def _answered(self, ip: str, identity: bytes, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while select.select([self._socket], [], [], max(deadline - time.monotonic(), 0))[0]:
            packet, (sender, _) = self._socket.recvfrom(2048)
            if sender == ip and parse_echo_reply(packet) == identity:
                return True
            if time.monotonic() >= deadline:  # other hosts' packets may never end
                break
        return False

    def close(self) -> None:
        """Closes the socket. Idempotent."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def echo_request(identifier: int, sequence: int) -> bytes:
    """Returns an echo request without data, with its checksum (RFC 1071)."""
    total = (_REQUEST << 8) + identifier + sequence
    total = (total & 0xFFFF) + (total >> 16)
    total += total >> 16
    return struct.pack("!BBHHH", _REQUEST, 0, ~total & 0xFFFF, identifier, sequence)


def parse_echo_reply(packet: bytes) -> bytes | None:
    """Returns identifier and sequence number, 2 bytes each, of the request that an IP packet answers; else None."""
    reply = packet[(packet[0] & 0xF) * 4 :]
    return reply[4:8] if reply[:1] == bytes([_REPLY]) else None
