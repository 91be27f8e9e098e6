# SPDX-License-Identifier: BSD-3-Clause
"""Every path that a container can take, side by side: what passes, and how long does it take there and back?

Launches are few and short, so that all paths have their turn within minutes. Each case is measured beside a bare veth
pair, and its result has the ratio to that.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

SIZES = [64, 1500]
#: A path that this kernel lacks is skipped with the option that it needs.
KERNEL = [
    "veth",
    "linux-bridge",
    "macvlan",
    "macvtap",
    "ipvlan",
    "netkit",
    "xdp",
    "tc-redirect",
    "route",
    "vxlan",
    "ovs-kernel",
]
#: Each path takes those that it has.
MODES = ["default", "vepa", "skb", "peer"]
#: Ports by which a switch in user space reaches containers of the kernel.
USER_SPACE = ["afpacket", "afxdp", "afxdp-nonpmd", "tap"]


@pytest.mark.icbench(switch=KERNEL, packet_size=64, protocol="quick")
def test_rate_in_short(icbench: Icbench) -> None:
    """How many frames per second does a socket get through each path of the kernel?"""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(dimension="latency", switch=KERNEL, packet_size=64, burst=4, rate="1k", protocol="quick")
def test_round_trip_in_short(icbench: Icbench) -> None:
    """How long does a frame of a socket take there and back over each of them?"""
    icbench.gate(icbench.latency())


@pytest.mark.icbench(switch=["ovs", "vpp"], port=USER_SPACE, api="udp-mmsg", packet_size=64, protocol="quick")
def test_user_space_in_short(icbench: Icbench) -> None:
    """How many frames per second does a socket get through a switch in user space?"""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch=KERNEL, mode=MODES, packet_size=SIZES, repeats=6, warmup=0.1, duration=0.3, drain=0.2)
def test_rate(icbench: Icbench) -> None:
    """How many frames per second does a socket get through each path of the kernel?

    Reproduces: C5
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    dimension="latency",
    switch=KERNEL,
    mode=MODES,
    packet_size=SIZES,
    burst=4,
    rate="1k",
    repeats=6,
    warmup=0.1,
    duration=0.3,
    drain=0.2,
)
def test_round_trip(icbench: Icbench) -> None:
    """How long does a frame of a socket take there and back over each path of the kernel?"""
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["ovs", "vpp"],
    port=USER_SPACE,
    api="udp-mmsg",
    packet_size=SIZES,
    repeats=6,
    warmup=0.1,
    duration=0.3,
    drain=0.2,
)
def test_rate_over_user_space(icbench: Icbench) -> None:
    """How many frames per second does a socket get through a switch in user space?"""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    dimension="latency",
    switch=["ovs", "vpp"],
    port=USER_SPACE,
    api="udp-mmsg",
    packet_size=SIZES,
    burst=4,
    rate="1k",
    repeats=6,
    warmup=0.1,
    duration=0.3,
    drain=0.2,
)
def test_round_trip_over_user_space(icbench: Icbench) -> None:
    """How long does a frame of a socket take there and back over a switch in user space?"""
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["direct", "veth"],
    port="all",
    api=["dpdk", "udp-mmsg", "af_packet", "af_xdp"],
    packet_size=SIZES,
    repeats=6,
    warmup=0.1,
    duration=0.3,
    drain=0.2,
)
def test_direct_links(icbench: Icbench) -> None:
    """What does each link without a switch pass, and what does a frame cost the endpoints?"""
    icbench.gate(icbench.throughput())
