# SPDX-License-Identifier: BSD-3-Clause
"""Clients that come at fixed moments, and the accounts of their first round trips."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.net.echo import answered
from pytest_icbench.testbed.arrivals import Clients, Gate, packet


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


def test_an_answer_tells_whose_it_is_and_a_request_is_none() -> None:
    request = packet("198.18.0.5", "198.18.0.6", 300)
    assert answered(request) is None
    assert answered(request[:20] + b"\0" + request[21:]) == bytes([0x01, 0xCB, 0x01, 0x2C])


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
