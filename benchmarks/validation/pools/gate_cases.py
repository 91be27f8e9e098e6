# SPDX-License-Identifier: BSD-3-Clause
"""The cases of `gate_sessions.py`: four rates and a round trip, which three rounds measure in 3:09 at least.

pytest collects this file only where it is named.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(
    switch=["linux-bridge", "testpmd", "ovs"], api=["udp-mmsg", "dpdk"], packet_size=64, burst=32, max_duration=60
)
def test_rate(icbench: Icbench) -> None:
    """How many frames per second pass when the sender offers all it can?"""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(switch="forward", variant="cost4000", api="dpdk", packet_size=64, burst=32, max_duration=60)
def test_cost(icbench: Icbench) -> None:
    """How many frames per second pass a forwarder whose version changes now and then?"""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    dimension="latency", switch="linux-bridge", api="udp-mmsg", packet_size=64, burst=1, rate="1k", max_duration=60
)
def test_round_trip(icbench: Icbench) -> None:
    """How long does a frame take there and back when there is little traffic?"""
    icbench.gate(icbench.latency())
