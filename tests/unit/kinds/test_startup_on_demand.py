# SPDX-License-Identifier: BSD-3-Clause
"""Clients that come at fixed moments, and the accounts of their first round trips."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.net.sockets import parse_echo_reply
from pytest_icbench.kinds.startup import on_demand
from pytest_icbench.kinds.startup.on_demand import Clients, Gate, packet, serve
from pytest_icbench.model.startup import Retirement


def clients(count: int = 3) -> Clients:
    return Clients(
        [("198.18.0.1", f"198.18.0.{4 * number + 2}") for number in range(count)], 25_000_000, began_ns=1_000
    )


def test_a_round_trip_counts_from_the_moment_at_which_it_was_due() -> None:
    some = clients()
    some.answered_ns = {1: 1_000 + 9_000_000, 2: 1_000 + 25_000_000 + 40_000_000}
    assert some.first_trips(3) == (9_000_000, 40_000_000, 0)
    assert not some.complete
    some.answered_ns[3] = 1_000 + 50_000_000 + 5
    assert some.first_trips(3)[2] == 5
    assert some.complete
    assert some.first_trips(1) == (9_000_000,)


def test_a_frame_has_its_clients_addresses_and_number() -> None:
    frame = packet("198.18.0.5", "198.18.0.6", 300)
    assert (frame[12:16], frame[16:20]) == (socket.inet_aton("198.18.0.5"), socket.inet_aton("198.18.0.6"))
    assert frame[9] == socket.IPPROTO_ICMP
    assert int.from_bytes(frame[26:28], "big") == 300
    assert len(frame) == 28


def test_an_answer_reports_whose_it_is_and_a_request_is_none() -> None:
    request = packet("198.18.0.5", "198.18.0.6", 300)
    assert parse_echo_reply(request) is None
    assert parse_echo_reply(request[:20] + b"\0" + request[21:]) == bytes([0x01, 0xCB, 0x01, 0x2C])


def test_a_client_that_cannot_send_ends_the_arrivals_with_its_reason() -> None:
    class Deaf:
        def sendto(self, *_arguments: Any) -> None:
            raise OSError(101, "Network is unreachable")

    gate: Any = object.__new__(Gate)
    gate._clients, gate._stop, gate._sender, gate._failure = clients(), threading.Event(), Deaf(), None
    gate._clients.began_ns = 2**62  # it would wait for answers for years
    gate._stop.wait = lambda _s: False
    gate._send()
    with pytest.raises(ProvisionError, match="first frame of client 1 cannot be sent: Network is unreachable"):
        next(gate.arrivals())


def test_answers_are_waited_for_no_longer_if_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = time.time_ns()
    monkeypatch.setattr(on_demand, "LAST_ANSWER_S", 0.2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        gate: Any = object.__new__(Gate)
        gate._clients, gate._device, gate._receiver, gate._failure = clients(), receiver.fileno(), receiver, None
        gate._clients.began_ns = now_ns
        moments = chain([now_ns], repeat(now_ns - 3600 * 10**9))
        monkeypatch.setattr(time, "time_ns", lambda: next(moments))
        began = time.monotonic()
        for frame in gate.arrivals():
            assert frame is None
            assert time.monotonic() - began < 5
    assert time.monotonic() - began > 0.2


class Moments:
    """A gate whose moments are given: frames, and what happens between them."""

    def __init__(self, *moments: bytes | Callable[[], object]) -> None:
        self.moments, self.passed = moments, 0

    def begin(self) -> None: ...

    def arrivals(self) -> Iterator[bytes | None]:
        for moment in self.moments:
            yield moment if isinstance(moment, bytes) else cast(None, moment())

    def pass_on(self, _frame: bytes) -> None:
        self.passed += 1


def test_a_container_goes_when_its_client_is_silent_and_another_frame_of_it_creates_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some, clock, done = clients(2), [0], []
    monkeypatch.setattr(on_demand, "time", SimpleNamespace(time_ns=lambda: clock[0]))
    frames = [packet(source, target, number) for number, (source, target) in enumerate(some.addresses, start=1)]

    def later(second: float, answered_now: int = 0) -> Callable[[], object]:
        def happen() -> None:
            clock[0] = round(second * 1e9)
            if answered_now:
                some.answered_ns[answered_now] = clock[0]

        return happen

    gate = Moments(frames[0], later(1, 1), later(2.9), frames[1], later(3.0), later(3.1, 2), later(3.2), frames[0])

    def retire(number: int) -> int:
        done.append(("retire", number))
        clock[0] += 5_000_000
        return 5_000_000

    retired = serve(cast(Gate, gate), some, lambda number: done.append(("create", number)), retire)
    assert done == [("create", 1), ("create", 2), ("retire", 1), ("create", 1)]
    assert retired == (Retirement(5_000_000, 2_005_000_000),)
    assert gate.passed == 3
