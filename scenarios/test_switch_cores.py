# SPDX-License-Identifier: BSD-3-Clause
"""What do further worker cores bring a switch that several pairs share, and what do they take from functions?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(switch=["testpmd", "ovs", "vpp"], packet_size=64, pairs=2, switch_cores=[1, 2], protocol="quick")
def test_in_short(icbench: Icbench) -> None:
    """Total rate of two pairs over one core and over two."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch=["testpmd", "ovs", "vpp"], packet_size=[64, 1500], pairs=4, switch_cores=[1, 2, 4])
def test_by_cores(icbench: Icbench) -> None:
    """Total rate of four pairs over one, two and four cores; four cores have a sender each.

    Reproduces: A10
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["testpmd", "ovs", "vpp"],
    functions="cost1000",
    function_count=4,
    packet_size=[64, 1500],
    switch_cores=[1, 2, 3, 4],
)
def test_cores_taken_from_functions(icbench: Icbench) -> None:
    """Total rate of four functions that poll: a core more for the switch is one less for them, up to where it pays.

    Reproduces: A10
    """
    icbench.gate(icbench.throughput())
