# SPDX-License-Identifier: BSD-3-Clause
"""What does a switch in user space forward between two containers that poll their ports, 64-byte frames? And others?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SWITCHES = ["linux-bridge", "direct", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"]


@pytest.mark.published
@pytest.mark.icbench(switch=SWITCHES, packet_size=64, rate="max")
def test_flat_out(icbench: Icbench) -> None:
    """testpmd, and others in its place, between two virtio ports.

    Reproduces: C2, C3
    """
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    switch="vpp",
    port=["memif", "memif-client"],
    rx_mode=["polling", "interrupt", "adaptive"],
    rate=["10k", "max"],
    protocol="quick",
)
def test_rx_modes(icbench: Icbench) -> None:
    """What do workers forward that poll, sleep until an interrupt, or do either, and how often are they woken?"""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    dimension="latency",
    switch="vpp",
    port="memif",
    rx_mode=["polling", "interrupt", "adaptive"],
    rate=["1k", "100k"],
    protocol="quick",
)
def test_round_trip_by_rx_mode(icbench: Icbench) -> None:
    """How long do frames take there and back over workers that poll or sleep?"""
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(switch=SWITCHES, packet_size=64, rate="1M..1M..16M")
def test_received_against_offered(icbench: Icbench) -> None:
    """Where does the received rate stop following the offered one?

    Reproduces: C4
    """
    icbench.gate(icbench.throughput())
