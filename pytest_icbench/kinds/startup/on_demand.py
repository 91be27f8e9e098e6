# SPDX-License-Identifier: BSD-3-Clause
"""Containers that are created on demand, by the first frame of a client.

Clients arrive at fixed times, whether or not earlier clients were served (open loop). All clients are in the network
namespace of the far ends of the containers' links. A TUN device there receives frames that have no container yet. For
each of these frames a container is created, and the frame is sent again over the container's link; its kernel answers.
A container is removed after its client has been silent for a while. Waiting frames are served before removals.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import links
from pytest_icbench.host.net.sockets import echo_request, parse_echo_reply
from pytest_icbench.model.startup import Retirement

_TUN = "/dev/net/tun"
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x1, 0x1000
_DEVICE = "start-failed"
_SO_TIMESTAMPNS = 35
_BUFFER_BYTES = 4 << 20
_SO_RCVBUFFORCE = 33
#: The identifier of the clients' echo requests.
_CLIENT = 0x1CB
#: How long the last client waits for its answer, in seconds.
LAST_ANSWER_S = 5.0
#: A container is removed after this many seconds without a frame of its client.
SILENCE_S = 2.0
#: Time from the start to the first client, in seconds.
_LEAD_S = 0.05


@dataclass(slots=True)
class Clients:
    """The clients of a case with the times of their arrivals and answers, in ns of the real-time clock.

    Args:
        addresses: source and destination of each client's frames.
        every_ns: the time between two clients.
    """

    addresses: list[tuple[str, str]]
    every_ns: int
    began_ns: int = 0
    answered_ns: dict[int, int] = field(default_factory=dict)

    def due_ns(self, number: int) -> int:
        """Returns when a client, counted from 1, sends its first frame."""
        return self.began_ns + (number - 1) * self.every_ns

    def first_trips(self, count: int) -> tuple[int, ...]:
        """Returns the round trip of the first ``count`` clients; 0 without an answer."""
        return tuple(
            max(self.answered_ns[number] - self.due_ns(number), 1) if number in self.answered_ns else 0
            for number in range(1, count + 1)
        )

    def silent(self, number: int, now_ns: int) -> bool:
        """Whether a client was answered at least ``SILENCE_S`` ago; it sends nothing after its answer."""
        answered_ns = self.answered_ns.get(number)
        return answered_ns is not None and now_ns - answered_ns >= SILENCE_S * 1e9

    @property
    def complete(self) -> bool:
        """Whether every client has its answer."""
        return len(self.answered_ns) == len(self.addresses)


class Gate:
    """A TUN device that receives frames without a container, and from which clients send. A context manager.

    Args:
        netns: path of the namespace of the clients.
        clients: the clients, which get the times of their answers.

    Raises ProvisionError.
    """

    def __init__(self, netns: str, clients: Clients) -> None:
        self._clients = clients
        self._stop = threading.Event()
        self._failure: str | None = None
        self._undo = ExitStack()
        try:
            with enter_netns(netns):
                self._device = self._opened(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
                request = struct.pack("16sH", _DEVICE.encode(), _IFF_TUN | _IFF_NO_PI)
                fcntl.ioctl(self._device, _TUNSETIFF, request)
                self._sender = self._undo.enter_context(
                    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
                )
                self._receiver = self._undo.enter_context(
                    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
                )
            self._receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
            self._receiver.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            self._receiver.setblocking(False)
            links.lead_all(_DEVICE, netns)
        except OSError as error:
            self._undo.close()
            raise ProvisionError(f"first frames of clients need {_TUN}: {error.strerror}") from None
        except BaseException:
            self._undo.close()
            raise
        self._thread = threading.Thread(target=self._send, name="clients", daemon=True)

    def _opened(self, descriptor: int) -> int:
        self._undo.callback(os.close, descriptor)
        return descriptor

    def begin(self) -> None:
        """Starts the clients."""
        self._clients.began_ns = time.time_ns() + round(_LEAD_S * 1e9)
        self._thread.start()

    def _send(self) -> None:
        for number, (source, destination) in enumerate(self._clients.addresses, start=1):
            wait_s = (self._clients.due_ns(number) - time.time_ns()) / 1e9
            if self._stop.wait(max(wait_s, 0.0)):
                return
            try:
                self._sender.sendto(packet(source, destination, number), (destination, 0))
            except OSError as error:
                self._failure = f"the first frame of client {number:,} cannot be sent: {error.strerror}"
                return

    def arrivals(self) -> Iterator[bytes | None]:
        """Yields the frames that have no container, until every client has its answer or waited too long.

        It yields None if there is no such frame, ten times a second and after answers.
        Raises ProvisionError if a client could not send.
        """
        last_ns = self._clients.due_ns(len(self._clients.addresses)) + round(LAST_ANSWER_S * 1e9)
        deadline = time.monotonic() + (last_ns - time.time_ns()) / 1e9  # the host's clock can be set back
        while not self._clients.complete and time.monotonic() < deadline:
            if self._failure is not None:
                raise ProvisionError(self._failure)
            ready, _, _ = select.select([self._device, self._receiver.fileno()], [], [], 0.1)
            if self._receiver.fileno() in ready:
                self.take_answers()
            yield os.read(self._device, 2048) if self._device in ready else None

    def pass_on(self, frame: bytes) -> None:
        """Sends a frame again after its container was created. Raises ProvisionError."""
        try:
            self._sender.sendto(frame, (socket.inet_ntoa(frame[16:20]), 0))
        except OSError as error:
            raise ProvisionError(f"a first frame cannot be passed on: {error.strerror}") from None

    def take_answers(self) -> None:
        """Records answers that have come, a thousand at most, with the kernel's times of their arrival."""
        for _ in range(1000):  # echoes of others may never end
            if not select.select([self._receiver], [], [], 0)[0]:
                return
            frame, reported, _, _ = self._receiver.recvmsg(2048, 256)
            request = parse_echo_reply(frame) or b""
            stamps = [struct.unpack("qq", data[:16]) for level, kind, data in reported if kind == _SO_TIMESTAMPNS]
            if request[:2] == _CLIENT.to_bytes(2, "big") and stamps:
                number = int.from_bytes(request[2:], "big")
                self._clients.answered_ns.setdefault(number, stamps[0][0] * 10**9 + stamps[0][1])

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._undo.close()


def packet(source: str, destination: str, number: int) -> bytes:
    """Returns the IP packet of a client's echo request; the kernel fills in length and checksum of its header."""
    payload = echo_request(_CLIENT, number)
    header = struct.pack(
        "!BBHHHBBH4s4s",
        *(0x45, 0, 20 + len(payload), number, 0, 64, socket.IPPROTO_ICMP, 0),
        *(socket.inet_aton(source), socket.inet_aton(destination)),
    )
    return header + payload


@contextmanager
def short_turns() -> Iterator[None]:
    """Makes Python switch threads often, so that the creation of a container does not delay a client."""
    old = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(old)


def serve(
    gate: Gate, clients: Clients, create: Callable[[int], None], retire: Callable[[int], int]
) -> tuple[Retirement, ...]:
    """Creates the container of each client at its first frame, and removes it once the client is silent.

    Args:
        create: creates the container of a client, counted from 1; raises ProvisionError.
        retire: removes it and returns the duration in ns; raises ProvisionError.

    Returns the containers that were removed meanwhile, in order.
    """
    numbers = {destination: number for number, (_, destination) in enumerate(clients.addresses, start=1)}
    made: set[int] = set()
    retired: list[Retirement] = []
    with short_turns():
        gate.begin()
        for frame in gate.arrivals():
            if frame is None:
                now_ns = time.time_ns()
                silent = next((number for number in clients.answered_ns if number in made), None)
                if silent is not None and clients.silent(silent, now_ns):
                    took_ns = retire(silent)
                    made.remove(silent)  # a later frame of its client would create it again
                    retired.append(Retirement(took_ns, time.time_ns() - clients.answered_ns[silent]))
                continue
            number = numbers.get(socket.inet_ntoa(frame[16:20])) if len(frame) >= 20 else None
            if number is None or number in made:
                continue
            create(number)
            made.add(number)
            gate.pass_on(frame)
    unanswered = [number for number in numbers.values() if number not in clients.answered_ns]
    if unanswered:
        raise ProvisionError(f"the first frame of client {unanswered[0]:,} was not answered")
    return tuple(retired)
