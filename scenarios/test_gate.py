# SPDX-License-Identifier: BSD-3-Clause
"""Did the last change make any path slower? A gate for a CI: ``--icbench-rounds 3 --icbench-budget 9m``, ten minutes.

Its cases are few and chosen for what they tell: each switch with small and with large frames, and a round trip. The
reference link is launched beside every case, so that a change of the host is distinguished from a change of the switch.
Rounds spread the cases over the whole session, so that a disturbed minute does not fall on one of them alone.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

#: Switches whose rate, or whose cycles a frame, tell a change even where endpoints share a CPU. basicfwd tells neither
#: there; the ``forward`` switches are tools of the tests.
SWITCHES = ["linux-bridge", "testpmd", "ovs", "vpp", "snabb", "sriov"]
APIS = ["udp-mmsg", "dpdk"]


@pytest.mark.icbench(switch=SWITCHES, api=APIS, packet_size=[64, 1500], burst=32, max_duration=60)
def test_rate(icbench: Icbench) -> None:
    """How many frames per second pass when the sender offers all it can?"""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    dimension="latency", switch=SWITCHES, api=APIS, packet_size=64, burst=1, rate="1k", max_duration=60
)
def test_round_trip(icbench: Icbench) -> None:
    """How long does a frame take there and back when there is little traffic?"""
    icbench.gate(icbench.latency())
