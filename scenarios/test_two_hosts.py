# SPDX-License-Identifier: BSD-3-Clause
"""What passes between containers of two hosts, and how long does it take? For --icbench-remote, --icbench-uplink."""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SWITCHES = ["linux-bridge", "direct", "ovs", "vpp", "sriov"]


@pytest.mark.icbench(remote=True, switch=SWITCHES, packet_size=[64, 1500], burst=32, protocol="quick")
def test_flat_out_in_short(icbench: Icbench) -> None:
    """Forwarding rate of one pair over the cable."""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    remote=True, dimension="latency", switch=SWITCHES, packet_size=[64, 1500], burst=4, rate="1k", protocol="quick"
)
def test_round_trip_in_short(icbench: Icbench) -> None:
    """A thousand frames a second to the other host and back."""
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(remote=True, switch=SWITCHES, packet_size=[64, 128, 256, 512, 1024, 1280, 1500], pairs=1, burst=32)
def test_flat_out_between_hosts(icbench: Icbench) -> None:
    """Forwarding rate of one pair over the cable, against packet size. ``direct`` is the cable itself.

    Reproduces: A5
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    remote=True,
    switch=["linux-bridge", "ovs", "vpp", "sriov"],  # the cable itself carries one pair
    packet_size=[64, 1500],
    pairs=[1, 2, 4, 8],
    burst=32,
)
def test_pairs_between_hosts(icbench: Icbench) -> None:
    """Total rate of N pairs over one cable: long frames fill it, short ones the switches' cores.

    Reproduces: A7
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    remote=True,
    dimension="latency",
    switch=SWITCHES,
    packet_size=[64, 128, 256, 512, 1024, 1280, 1500],
    pairs=1,
    burst=[4, 32, 128],
    rate="1k",
)
def test_round_trip_between_hosts(icbench: Icbench) -> None:
    """A thousand frames a second to the other host and back, by the client's clock alone.

    Reproduces: A9
    """
    icbench.gate(icbench.latency())
