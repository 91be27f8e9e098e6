# SPDX-License-Identifier: BSD-3-Clause
"""What is the greatest load of which nothing is lost?"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

#: RFC 2544's sizes.
SIZES = [64, 128, 256, 512, 1024, 1280, 1518]
SWITCHES = ["linux-bridge", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"]


@pytest.mark.icbench(switch=["linux-bridge", "ovs", "vpp"], packet_size=64, rate="pdr:0.5%")
def test_in_short(icbench: Icbench) -> None:
    """The load of which half a per cent is lost, by a search in trials of a second."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch=SWITCHES, packet_size=SIZES, rate="ndr", search_preset="rfc2544")
def test_throughput(icbench: Icbench) -> None:
    """RFC 2544 26.1: no frame lost in 60 seconds. A quarter of an hour a case and more: select with ``-k``."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch=SWITCHES, packet_size=SIZES, rate=["ndr", "pdr:0.5%"])
def test_quick(icbench: Icbench) -> None:
    """The same in trials of a second, where half of a load's trials may lose frames, and with half a per cent lost."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch=SWITCHES, packet_size=[64, 128], rate="pdr:0.01%", search_preset="icpe2018")
def test_as_icpe_2018(icbench: Icbench) -> None:
    """At most one frame of ten thousand lost in a minute: that of Pitaev and others, without their functions."""
    icbench.gate(icbench.throughput())
