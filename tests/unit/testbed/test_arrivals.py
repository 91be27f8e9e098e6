# SPDX-License-Identifier: BSD-3-Clause
"""Clients that come at fixed moments, and the accounts of their first round trips."""

from __future__ import annotations

import socket

from pytest_icbench.testbed.arrivals import Clients, packet


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
