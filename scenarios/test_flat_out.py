# SPDX-License-Identifier: BSD-3-Clause
"""What is the most that passes between two containers, by the size of the frames?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SWITCHES = ["linux-bridge", "direct", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"]

#: RFC 2544's sizes, and 1500, which the publications use instead of 1518.
SIZES = [64, 128, 256, 512, 1024, 1280, 1500, 1518]
#: A measured Snabb's bridge, B a wire.
MODES = ["default", "wire"]


@pytest.mark.icbench(switch=SWITCHES, packet_size=[64, 512], burst=32, protocol="quick")
def test_by_size_in_short(icbench: Icbench) -> None:
    """Forwarding rate at maximum offered load of one pair, in a minute."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=SWITCHES,
    mode=MODES,
    packet_size=SIZES,
    burst=32,
)
def test_by_size(icbench: Icbench) -> None:
    """Forwarding rate at maximum offered load of one pair (the publications give the maximum over offered loads).

    Reproduces: A3, B3
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=SWITCHES,
    packet_size=SIZES,
    burst=256,
)
def test_by_size_in_large_bursts(icbench: Icbench) -> None:
    """The same in bursts of 256: who gains by fewer, larger hand-overs?

    Reproduces: A4
    """
    icbench.gate(icbench.throughput())
