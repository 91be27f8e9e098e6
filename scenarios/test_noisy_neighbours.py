# SPDX-License-Identifier: BSD-3-Clause
"""What does load on other CPUs change, and what does isolation bring?

Launches beside a noisy neighbour alternate with launches without it, and the result is the ratio. On two CPUs the noisy
neighbour has one and the endpoints share the other, so that memory and the L3 cache are what they contend for.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(
    dimension="latency", switch="linux-bridge", api="udp", burst=1, rate="2k", noisy_neighbour="cache", protocol="quick"
)
def test_in_short(icbench: Icbench) -> None:
    """Round trips beside a noisy neighbour that empties the caches."""
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(
    switch="linux-bridge",
    api="udp",
    burst=1,
    rate="2k",
    dimension="latency",
    noisy_neighbour=["none", "cache", "stream"],
    repeats=10,
    duration=0.5,
)
def test_noisy_neighbours(icbench: Icbench) -> None:
    """Round trips beside a noisy neighbour, in three minutes; the control has none.

    Reproduces: E10
    """
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(
    switch="linux-bridge",
    functions=["acl10", "route"],
    packet_size=[64, 256, 1024, 1518],
    mix="simple",
    rate="ndr*1.0",
    dimension="latency",
    noisy_neighbour=["memory", "memtester"],
    isolation=["none", "cat:11-1", "cat:7-4-1", "cat:6-4-2", "cat:4-4-4", "cat:3-3-3-3"],
    repeats=20,
)
def test_noisy_neighbours_as_published(icbench: Icbench) -> None:
    """A firewall and a router at their undisturbed maximum, by how the cache is split: hours, on a machine with CAT.

    Reproduces: E10
    """
    icbench.gate(icbench.latency())
