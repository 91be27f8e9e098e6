# SPDX-License-Identifier: BSD-3-Clause
"""What do further worker cores bring a switch that several pairs of containers share?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(switch=["testpmd", "ovs", "vpp"], packet_size=[64, 1500], pairs=4, switch_cores=[1, 2, 4])
def test_by_cores(icbench: Icbench) -> None:
    """Total rate of four pairs over one, two and four cores; four cores have a sender each.

    Reproduces: A10
    """
    icbench.gate(icbench.throughput())
