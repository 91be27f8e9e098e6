# SPDX-License-Identifier: BSD-3-Clause
"""How long does a frame take there and back, when there is little traffic and when it comes in bursts?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SWITCHES = ["linux-bridge", "direct", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"]


@pytest.mark.icbench(dimension="latency", switch=SWITCHES, packet_size=64, burst=[4, 32], rate="1k", protocol="quick")
def test_in_short(icbench: Icbench) -> None:
    """A thousand frames a second, in bursts of 4 and of 32."""
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(
    dimension="latency",
    switch=SWITCHES,
    packet_size=[64, 128, 256, 512, 1024, 1280, 1500],
    burst=[4, 32, 128],
    rate="1k",
)
def test_by_size_and_burst(icbench: Icbench) -> None:
    """A thousand frames a second, in bursts that are due all at once: the last of a burst waits for the others.

    Reproduces: A8
    """
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(
    dimension="latency",
    switch=SWITCHES,
    packet_size=[64, 1500],
    burst=32,
    rate=["pdr:0.5%*0.1", "pdr:0.5%*0.5", "pdr:0.5%*0.9"],
)
def test_under_load(icbench: Icbench) -> None:
    """At a tenth, a half, nine tenths of what the path carries with at most 0.5 % loss, which is looked for first."""
    icbench.gate(icbench.latency())
