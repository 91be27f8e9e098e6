# SPDX-License-Identifier: BSD-3-Clause
"""A tour in two to three minutes: every switch that this host can run, small and large frames, rate and round trip.

Launches are short and few, and cases take turns, so that those of a case lie about 15 s apart. No reference link is
measured beside them (``veth`` and ``direct`` stand in the same table). The other scenarios measure until the interval
is narrow.

The warm-up is the least that others have. In 81 undisturbed launches the rate from 0.1 s on was 0.999 (0.996 to 1.001)
of that from 0.25 s on, in 54 the median round trip 0.991 (0.972 to 1.010). In 144 at the maximum rate the last frame
came at most 9 ms after its window.

Round trips are of 10,000 frames a second, one at a time. At 1,000 in bursts of four, the caches go cold between two
bursts: the median over ``direct`` was 13 to 20 µs then, and 1.5 to 2.4 µs here, and launches differed by 17 to 39 %
instead of 10 to 20 %.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SIZES = [64, 1500]
# The kernel switches show their quickest socket technique, the others have one anyway.
APIS = ["udp-mmsg", "dpdk"]


@pytest.mark.icbench(switch="all", api=APIS, packet_size=SIZES, protocol="quick")
def test_rate(icbench: Icbench) -> None:
    """How many frames per second pass when the sender offers all it can?"""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    dimension="latency",
    switch="all",
    api=APIS,
    packet_size=SIZES,
    burst=1,
    rate="10k",
    protocol="quick",
)
def test_round_trip(icbench: Icbench) -> None:
    """How long does a frame take there and back when there is little traffic?"""
    icbench.gate(icbench.latency())
