# SPDX-License-Identifier: BSD-3-Clause
"""Does a path stay whole for hours? Twenty seconds by default: ``--icbench-soak-duration 8h``."""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SWITCHES = ["linux-bridge", "direct", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"]


@pytest.mark.icbench(switch=SWITCHES, packet_size=64, burst=32, rate="100k", measure="soak", soak_duration=5)
def test_losses_in_short(icbench: Icbench) -> None:
    """Five seconds of a load that every path carries. When were frames lost, and how many?"""
    icbench.gate(icbench.soak())


@pytest.mark.published
@pytest.mark.icbench(
    switch=SWITCHES,
    packet_size=64,
    burst=32,
    rate="100k",
    measure="soak",
)
def test_losses(icbench: Icbench) -> None:
    """A load that every path carries. When were frames lost, how many, for how long? See ``loss_events``."""
    icbench.gate(icbench.soak())


@pytest.mark.published
@pytest.mark.icbench(
    dimension="latency",
    switch=SWITCHES,
    packet_size=64,
    burst=1,
    rate="1k",
    measure="soak",
)
def test_round_trips(icbench: Icbench) -> None:
    """A thousand round trips a second: do the slowest of them come from the path, and when? The windows tell."""
    icbench.gate(icbench.soak())
