# SPDX-License-Identifier: BSD-3-Clause
"""A firewall for each subscriber: what do many active clients get, and how much longer do they wait?

Each client sends 10 Mbit/s through a firewall of its own, in a network namespace of its own. With few CPUs the kernel
forwards on the sender's, which then falls short of the rate: this is the most that the machine carries.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(
    switch="veth",
    functions="subscribers100+firewall+acl10",
    active=[1, 50],
    api="raw-mmsg",
    packet_size=1518,
    burst=8,
    rate="10Mbit",
    repeats=3,
    duration=0.5,
    reference=False,
)
def test_in_short(icbench: Icbench) -> None:
    """Total rate and fairness of one and of fifty active clients."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch="veth",
    functions="subscribers100+firewall+acl10",
    active=[1, 10, 50, 100],
    api="raw-mmsg",
    packet_size=1518,
    burst=8,
    rate="10Mbit",
    repeats=3,
    duration=0.5,
)
def test_active_clients(icbench: Icbench) -> None:
    """Total rate and fairness of one to a hundred active clients.

    Reproduces: E13
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    dimension="latency",
    switch="veth",
    functions="subscribers100+firewall+acl10",
    active=[10, 100],
    api="raw-mmsg",
    packet_size=1518,
    burst=1,
    rate="1Mbit",
    repeats=3,
    duration=0.5,
)
def test_round_trips(icbench: Icbench) -> None:
    """Round trips of many clients beside those of one alone.

    Reproduces: E13
    """
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(
    switch="veth",
    functions="subscribers1000+firewall+acl10",
    active=[1, 100, 250, 500, 1000],
    api="raw-mmsg",
    packet_size=1518,
    burst=8,
    rate="10Mbit",
)
def test_a_thousand_subscribers(icbench: Icbench) -> None:
    """The published numbers.

    Reproduces: E13
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    dimension="latency",
    switch="veth",
    functions="subscribers1000+firewall+acl10",
    active=[250, 500, 1000],
    api="raw-mmsg",
    packet_size=1518,
    burst=1,
    rate="10Mbit",
)
def test_round_trips_of_a_thousand(icbench: Icbench) -> None:
    """What so many clients add to a round trip: 60 ms for a thousand in the literature.

    Reproduces: E13
    """
    icbench.gate(icbench.latency())
