# SPDX-License-Identifier: BSD-3-Clause
"""What do network functions cost, one by one and side by side behind one switch?

Functions side by side have a pair each. The line beside their total is what the best path carries through one function,
times their number. Where they, their ends and the switch have no CPU each, they are oversubscribed, which a note says:
on two CPUs that is every number above one.

The scenarios as published search for the rate at which one frame of ten thousand is lost in a minute, and take hours:
select with ``-k``. Their mix of lengths is not known; its mean was 384.5 bytes.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

#: The numbers of functions side by side.
NUMBERS = list(range(1, 11))
#: Features of a function one by one, and together. A policer's figure is its own rate, so it stands apart.
FEATURES = ["nat", "acl10", "inspect", "nat+acl10", "nat+acl10+inspect"]
#: Frames go both ways at once, and the rate is searched for as published.
PUBLISHED = {"direction": "both", "rate": "pdr:0.01%", "search_preset": "icpe2018"}


@pytest.mark.icbench(
    switch="linux-bridge", functions=["route", "nat+acl10+deny30"], function_count=[1, 2], protocol="quick"
)
def test_side_by_side(icbench: Icbench) -> None:
    """Total rate of one and two routers, plain and with features: D1 and D4 in short."""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(switch=["ovs", "vpp"], functions=["wire", "nat"], function_count=[1, 2], protocol="quick")
def test_side_by_side_in_user_space(icbench: Icbench) -> None:
    """Total rate of one and two functions behind a switch with poll-mode workers: D1 and D4 in short."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["ovs", "vpp"],
    switch_cores=2,
    functions="route",
    function_count=NUMBERS,
    mix="simple",
    packet_size=[128, 1518],
    **PUBLISHED,
)
def test_forwarding_as_published(icbench: Icbench) -> None:
    """One to ten routers behind two workers: of a mix, of 128 and of 1518 bytes, both ways at once.

    Reproduces: D1, D2
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch="vpp",
    switch_cores=[1, 2, 4],
    functions="route",
    function_count=NUMBERS,
    mix="simple",
    **PUBLISHED,
)
def test_workers_as_published(icbench: Icbench) -> None:
    """One to ten routers behind one, two and four workers.

    Reproduces: D3
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["linux-bridge", "ovs", "vpp"],
    functions=FEATURES,
    function_count=NUMBERS,
    mix="simple",
    packet_size=1500,
    **PUBLISHED,
)
def test_features_as_published(icbench: Icbench) -> None:
    """One to ten functions with features, one by one and several together, where a component has them.

    Reproduces: D4, D5
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["linux-bridge", "ovs"],
    functions=["police20k", "nat+acl10+police20k", "nat+acl10+police20k+inspect"],
    function_count=NUMBERS,
    packet_size=1500,
)
def test_policers_as_published(icbench: Icbench) -> None:
    """One to ten functions that let 20,000 frames a second pass each, alone and with the other features.

    Reproduces: D5
    """
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    switch="linux-bridge", functions=["wire", "route", "acl10"], packet_size=[64, 1518], protocol="quick"
)
def test_one_function(icbench: Icbench) -> None:
    """Rate through one function against packet size: E3 in short."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["linux-bridge", "veth", "ovs", "vpp"],
    functions=["none", "wire", "acl10", "route"],
    packet_size=[64, 128, 256, 512, 1024, 1280, 1518],
)
def test_one_function_as_published(icbench: Icbench) -> None:
    """A bridge, a firewall of ten rules and a router against packet size, beside the path without a function.

    Reproduces: E3
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch="ovs", functions="firewall", packet_size=[64, 512, 1518], flows=["1", "1k"])
def test_connection_tracking(icbench: Icbench) -> None:
    """A stateful firewall against plain switching, which is its reference.

    Reproduces: E9
    """
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    switch="veth",
    api="raw-mmsg",
    functions=["route", "acl10", "acl100", "acl1000", "set1000", "firewall"],
    protocol="quick",
)
def test_rules(icbench: Icbench) -> None:
    """What a rule costs a frame: lists of 10, 100 and 1,000 rules one after the other, a set, and a router alone."""
    icbench.gate(icbench.throughput())
