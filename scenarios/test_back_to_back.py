# SPDX-License-Identifier: BSD-3-Clause
"""How long may a burst at full speed be before a switch loses a frame of it?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.published
@pytest.mark.icbench(
    switch=["linux-bridge", "direct", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"],
    packet_size=[64, 512, 1500],
    burst=32,
    measure="back_to_back",
)
def test_longest_train(icbench: Icbench) -> None:
    """RFC 9004: the longest train without loss, fifty times, and the buffer that it implies."""
    icbench.gate(icbench.back_to_back())
