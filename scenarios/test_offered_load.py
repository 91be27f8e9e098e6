# SPDX-License-Identifier: BSD-3-Clause
"""How does the received rate follow the offered one, up to where a switch drops the rest, and what is its maximum?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SWITCHES = ["linux-bridge", "direct", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"]

SIZES = [64, 512]
#: RFC 2544's sizes, and 1500, which the publications use instead of 1518.
ALL_SIZES = [64, 128, 256, 512, 1024, 1280, 1500, 1518]
RATES = "1M..1M..20M"


@pytest.mark.icbench(switch=SWITCHES, packet_size=64, burst=32, rate=["1M", "4M", "16M"], protocol="quick")
def test_in_short(icbench: Icbench) -> None:
    """One pair, at a low, a middle and a high load."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=SWITCHES,
    packet_size=SIZES,
    burst=32,
    rate=RATES,
)
def test_received_against_offered(icbench: Icbench) -> None:
    """One pair, from one to twenty million frames per second.

    Reproduces: A2
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["linux-bridge", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"],
    mode="wire",
    packet_size=SIZES,
    burst=[16, 32, 64],
    rate=RATES,
)
def test_received_against_offered_by_burst(icbench: Icbench) -> None:
    """The same for three bursts: does a larger one carry further?

    Reproduces: B2
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=SWITCHES,
    packet_size=ALL_SIZES,
    burst=32,
    rate="mfr",
)
def test_maximum_over_rates(icbench: Icbench) -> None:
    """The maximum forwarding rate over the offered loads (RFC 2285), as the publications give it.

    Reproduces: A3
    """
    icbench.gate(icbench.sweep(RATES))
