# SPDX-License-Identifier: BSD-3-Clause
"""What is left for each pair of containers when several talk at once?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SWITCHES = ["linux-bridge", "direct", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"]


@pytest.mark.icbench(switch=SWITCHES, packet_size=64, pairs=[1, 2], burst=32, protocol="quick")
def test_two_pairs_in_short(icbench: Icbench) -> None:
    """Total rate of one and of two pairs."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=SWITCHES,
    packet_size=[64, 128, 256, 512, 1024, 1280, 1500],
    pairs=[1, 2, 4],
    burst=32,
)
def test_several_pairs(icbench: Icbench) -> None:
    """Total rate (``throughput_pps``), each pair's share (``throughput_per_pair_pps``) and ``fairness`` over N pairs.

    Reproduces: A6
    """
    icbench.gate(icbench.throughput())
