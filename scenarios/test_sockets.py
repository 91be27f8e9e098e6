# SPDX-License-Identifier: BSD-3-Clause
"""What does each way of using a socket cost, and what is lost to the kernel before any switch is involved?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

#: A call a frame or a call a burst, over UDP or with whole frames.
TECHNIQUES = ["udp", "udp-mmsg", "raw", "raw-mmsg"]


@pytest.mark.icbench(switch="linux-bridge", api=TECHNIQUES, packet_size=64, burst=64, rate="1M", protocol="quick")
def test_in_short(icbench: Icbench) -> None:
    """What each technique gets through a bridge when more is offered than it takes."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch="linux-bridge", api=TECHNIQUES, packet_size=64, burst=64, rate="1M")
def test_techniques(icbench: Icbench) -> None:
    """More frames are offered than sockets take: which technique gets most of them through a bridge?

    Reproduces: A1, B1
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch="veth", api=["udp", "udp-mmsg"], packet_size=110, rate="max")
def test_without_a_switch(icbench: Icbench) -> None:
    """Two containers joined by nothing but a veth pair, 64 bytes of UDP payload in frames of 110 bytes.

    Reproduces: C1
    """
    icbench.gate(icbench.throughput())
