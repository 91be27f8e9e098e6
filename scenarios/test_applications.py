# SPDX-License-Identifier: BSD-3-Clause
"""What do applications get over each path? Real servers, asked by their own clients or at a fixed rate.

The reference link beside each case is a direct veth, the nearest that two containers have to a loopback.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

#: Short launches: their number narrows an interval, not their length.
SHORT = {"repeats": 6, "duration": 1.0}


@pytest.mark.icbench(switch="all", app=["redis", "nginx", "iperf3"], protocol="quick", duration=0.5)
def test_applications(icbench: Icbench) -> None:
    """How many requests, or megabits, per second does an application get over this path?"""
    icbench.gate(icbench.measure())


@pytest.mark.icbench(
    switch=["ovs", "vpp"],
    port=["tap", "afpacket"],
    app=["redis", "nginx", "iperf3"],
    protocol="quick",
    duration=0.5,
)
def test_over_user_space(icbench: Icbench) -> None:
    """The same through a switch in user space; with a candidate, also with segments and checksums left to it."""
    icbench.gate(icbench.measure())


@pytest.mark.published
@pytest.mark.icbench(
    switch="all",
    app=["redis:set:c16", "redis:1024B", "memcached", "tls", "iperf3:c4", "iperf3:c16", "iperf3:udp"],
    **SHORT,
)
def test_more_applications(icbench: Icbench) -> None:
    """The same with more connections, longer messages, handshakes, and streams in parallel."""
    icbench.gate(icbench.measure())


@pytest.mark.published
@pytest.mark.icbench(switch="all", app=["tcp_rr", "udp_rr", "redis_open", "memcached_open", "http_open"], **SHORT)
def test_response_times_at_a_fixed_rate(icbench: Icbench) -> None:
    """How long do answers take over this path at 2,000 requests per second, from when they were due?"""
    icbench.gate(icbench.measure())


@pytest.mark.published
@pytest.mark.icbench(
    switch="all",
    app=["netperf", "netperf:udp_rr", "netperf:tcp_crr", "netperf_stream", "netperf_stream:udp"],
    **SHORT,
)
def test_netperf(icbench: Icbench) -> None:
    """What does netperf tell of this path: requests over TCP and UDP, with a connection each, and streams?"""
    icbench.gate(icbench.measure())


@pytest.mark.published
@pytest.mark.icbench(
    switch="all", app=["netpipe:1B", "netpipe", "netpipe:1000B", "netpipe:10000B", "netpipe:100000B"], **SHORT
)
def test_message_sizes(icbench: Icbench) -> None:
    """How does the time of a message there and back over TCP grow with its size, as NetPIPE tells it?"""
    icbench.gate(icbench.measure())
