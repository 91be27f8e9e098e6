# SPDX-License-Identifier: BSD-3-Clause
"""What does a virtual machine cost over a container, in rate and in round trips? Without QEMU its cases are skipped."""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SWITCHES = ["linux-bridge", "testpmd", "ovs", "vpp"]
KINDS = ["lxc", "vm"]


@pytest.mark.icbench(switch=SWITCHES, node=KINDS, packet_size=64, protocol="quick")
def test_rate_of_machines(icbench: Icbench) -> None:
    """How many frames per second pass between two containers, and between two machines?"""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    dimension="latency", switch=SWITCHES, node=KINDS, packet_size=64, burst=1, rate="10k", protocol="quick"
)
def test_round_trip_of_machines(icbench: Icbench) -> None:
    """How long does a frame take there and back between them?"""
    icbench.gate(icbench.latency())
