# SPDX-License-Identifier: BSD-3-Clause
"""What do endpoints cost that sleep until a frame arrives: in rate, in round trips, and in CPU time?

Loads are shares of what polling endpoints get through the path, so that all ways to wait have the same. Ten single
frames a second stand for no load: a path without any frame proves nothing.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

WAITS = ["poll", "interrupt", "adaptive"]
LOADS = "ndr*0.01 ndr*0.1 ndr*0.5 max"
NO_LOAD = 10
KERNEL = ["veth", "linux-bridge"]
#: Ports whose driver in DPDK has receive interrupts.
USER_SPACE = ["testpmd", "ovs", "vpp"]


@pytest.mark.icbench(switch=KERNEL, api="raw-mmsg", wait=WAITS, rate="10k max", protocol="quick")
def test_rate_in_short(icbench: Icbench) -> None:
    """How much CPU do endpoints use that wait for interrupts, and what do they get through?"""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    dimension="latency", switch=KERNEL, api="raw-mmsg", wait=WAITS, burst=1, rate="1k", protocol="quick"
)
def test_round_trip_in_short(icbench: Icbench) -> None:
    """How long does a round trip take if both ends have to wake up?"""
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(switch=KERNEL, api=["raw-mmsg", "xdp"], wait=WAITS, burst=1, rate=NO_LOAD)
def test_no_load(icbench: Icbench) -> None:
    """How much CPU do sockets use that have next to nothing to do?"""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch=KERNEL, api=["raw-mmsg", "xdp"], wait=WAITS, rate=LOADS)
def test_rate(icbench: Icbench) -> None:
    """How much CPU do sockets use that sleep until the kernel wakes them, up to the greatest load?"""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(dimension="latency", switch=KERNEL, api=["raw-mmsg", "xdp"], wait=WAITS, burst=1, rate=LOADS)
def test_round_trip(icbench: Icbench) -> None:
    """How long do their round trips take, up to the greatest load?"""
    icbench.gate(icbench.latency())


@pytest.mark.published
@pytest.mark.icbench(switch=USER_SPACE, port="vhost-user", wait=WAITS, burst=1, rate=NO_LOAD)
def test_no_load_in_user_space(icbench: Icbench) -> None:
    """How much CPU do DPDK endpoints use that wait for receive interrupts?"""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(switch=USER_SPACE, port="vhost-user", wait=WAITS, rate=LOADS)
def test_rate_in_user_space(icbench: Icbench) -> None:
    """How much CPU do they use up to the greatest load?"""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(dimension="latency", switch=USER_SPACE, port="vhost-user", wait=WAITS, burst=1, rate=LOADS)
def test_round_trip_in_user_space(icbench: Icbench) -> None:
    """How long do round trips take if both ends wait for receive interrupts?"""
    icbench.gate(icbench.latency())
