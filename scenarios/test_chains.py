# SPDX-License-Identifier: BSD-3-Clause
"""How long may a chain of network functions be, what does each hop cost, and where does it lose frames?

A chain is measured by a search. Flat out, functions that share a CPU spend it on frames that a later one drops: that
figure stands beside it, with a note. On a machine with fewer cores than functions all chains but the shortest are
oversubscribed, so their round trips are the scheduler's; their accounts by hop are exact all the same.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

LENGTHS = [1, 2, 5, 10, 20, 50]
BRIEF = [1, 2, 5, 10]


@pytest.mark.published
@pytest.mark.icbench(
    switch=["veth", "linux-bridge"], functions="acl10", chain=LENGTHS, packet_size=256, rate=["pdr:0.5%", "max"]
)
def test_firewalls(icbench: Icbench) -> None:
    """Firewalls of ten rules, back to back and through a bridge a hop.

    Reproduces: E7
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    dimension="latency",
    switch=["veth", "linux-bridge"],
    functions="acl10",
    chain=LENGTHS,
    packet_size=256,
    burst=1,
    rate="1k",
)
def test_delay(icbench: Icbench) -> None:
    """The round trip through so many firewalls.

    Reproduces: E7
    """
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(switch=["veth", "direct"], functions="cost1000", chain=LENGTHS, rate=["pdr:0.5%", "max"])
def test_polling(icbench: Icbench) -> None:
    """Functions that poll and cost 1,000 cycles a frame, which share CPUs."""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    switch="veth",
    functions="acl10",
    chain=BRIEF,
    packet_size=256,
    rate=["20k", "max"],
    repeats=3,
    warmup=0.2,
    duration=0.4,
    drain=0.3,
    reference=False,
)
def test_in_short(icbench: Icbench) -> None:
    """The firewalls back to back in less than a minute: at a rate that all lengths pass, and flat out."""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    switch=["vpp", "direct"],
    port="memif",
    functions=["vpp+route", "wire"],
    chain=[1, 2, 3],
    packet_size=64,
    protocol="quick",
)
def test_memif_chain(icbench: Icbench) -> None:
    """VPPs in containers in a row, and forwarders in their place, over memifs of a VPP between them and without it."""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    dimension="latency",
    switch="veth",
    functions="acl10",
    chain=LENGTHS,
    packet_size=256,
    burst=1,
    rate="1k",
    repeats=3,
    warmup=0.2,
    duration=0.5,
    drain=0.5,
    reference=False,
)
def test_delay_in_short(icbench: Icbench) -> None:
    """The round trip through so many firewalls back to back, in less than two minutes.

    Reproduces: E7
    """
    icbench.gate(icbench.latency())
