# SPDX-License-Identifier: BSD-3-Clause
"""Mixes, flows and headers as axes of a marker, and where they cannot be had."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.config.capabilities import unsupported_reason
from pytest_icbench.config.cases import expand, parse_marker
from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.trace import Trace
from pytest_icbench.model.traffic import Traffic
from tests.unit.config.test_cases import SWITCHES, ids


def test_mixes_stand_beside_packet_sizes() -> None:
    """An option replaces both: who asks for a mix on the command line wants no case of another length."""
    assert ids(Options(switch=("bridge",)), mix="simple 64:14,594:8") == [
        f"bridge-{label}-b32-1vs1-Rmax" for label in ("udp-simple", "udp-64:7+594:4", "raw-simple", "raw-64:7+594:4")
    ]
    assert ids(Options(switch=("dpdk",)), mix=["aaagb"], packet_size=64) == [
        "poll-64B-b32-1vs1-Rmax",
        "poll-aaagb-b32-1vs1-Rmax",
    ]
    one = (Traffic.of_mix("simple"),)
    assert ids(Options(switch=("dpdk",), mix=one), packet_size=[64, 128]) == ["poll-simple-b32-1vs1-Rmax"]
    assert ids(Options(switch=("dpdk",), packet_size=(Traffic(70),)), mix="aaagb") == ["poll-70B-b32-1vs1-Rmax"]


@pytest.mark.parametrize(
    ("mix", "sentence"), [("", "no mix given"), ("simple imx", "'imx' is not a mix: it is neither")]
)
def test_a_bad_mix_is_refused(mix: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^t: icbench marker: mix: {sentence}"):
        parse_marker((), {"mix": mix}, "t")


def test_a_mix_needs_a_path_for_its_longest_frame() -> None:
    reason = unsupported_reason(Case("poll", Frames(Traffic.of_mix("aai"))), SWITCHES["poll"], 256)
    assert reason == "9000 bytes are more than poll carries; take packet sizes up to 1518"


def test_flows_are_an_axis_of_their_own() -> None:
    assert ids(Options(switch=("dpdk",)), flows="1 64k:ports", packet_size=[64], mix="simple") == [
        f"poll-{label}-b32-1vs1-Rmax" for label in ("64B", "64B-f64k:ports", "simple", "simple-f64k:ports")
    ]
    assert ids(Options(switch=("dpdk",), flows=("1M:zipf",)), flows=[2, 3]) == ["poll-64B-f1M:zipf-b32-1vs1-Rmax"]
    with pytest.raises(
        UsageError, match=r"^t: icbench marker: flows: '65k:ports' are not flows: there are only 64,512"
    ):
        parse_marker((), {"flows": "65k:ports"}, "t")


@pytest.mark.parametrize(
    ("api", "flows", "dimension", "reason"),
    [
        ("udp", "2", "throughput", "a UDP socket has one flow; take --icbench-api raw"),
        (None, "2", "throughput", "a UDP socket has one flow"),
        ("raw", "2:ports", "latency", "answers come back to one port"),
        ("raw", "2:ports", "throughput", None),
        ("af_packet", "2", "latency", None),
        ("udp", None, "throughput", None),
    ],
)
def test_endpoints_that_cannot_have_flows(
    api: str | None, flows: str | None, dimension: Any, reason: str | None
) -> None:
    case = Case("bridge", Frames(Traffic(flows=flows)), api=api, dimension=dimension)
    found = unsupported_reason(case, SWITCHES["bridge"], 256)
    assert found is None if reason is None else found is not None and found.startswith(reason)


ROUTER = type(
    "Router",
    (SWITCHES["poll"],),
    {"name": "vpp", "modes": ("ip4", "ip6"), "route_bytes": {4: 1, 6: 1}, "max_pairs": None},
)


@pytest.mark.parametrize(
    ("switch", "axes", "traffic", "reason"),
    [
        ("vpp", {"mode": "ip4"}, {"routes": 1000}, None),
        ("vpp", {"mode": "ip6"}, {"routes": 1000, "header": "udp6"}, None),
        ("vpp", {"mode": "ip4"}, {"routes": 2, "both": True}, None),
        (
            "vpp",
            {},
            {"routes": 1},
            "vpp does not route, so it has no table for 1 route: take vpp:ip4 or vpp:ip6",
        ),
        (
            "bridge",
            {},
            {"routes": 1000},
            "bridge does not route, so it has no table for 1,000 routes: take route",
        ),
        (
            "vpp",
            {"mode": "ip4"},
            {"routes": 1, "both": True},
            "2 senders need a route of their own each",
        ),
        ("vpp", {"mode": "ip4", "api": "udp-mmsg"}, {"routes": 9}, "a UDP socket sends to its peer alone"),
        ("vpp", {"mode": "ip4", "dimension": "latency"}, {"routes": 9, "flows": "9"}, None),
        (
            "vpp",
            {"mode": "ip4", "dimension": "latency"},
            {"routes": 9, "flows": "10"},
            "vpp:ip4 routes answers to a client",
        ),
        ("vpp", {"mode": "ip4", "dimension": "latency"}, {"flows": "2"}, "vpp:ip4 routes answers to a client's own"),
        ("vpp", {"mode": "ip4", "dimension": "latency"}, {"flows": "2:macs"}, None),
        ("vpp", {"mode": "ip4", "function": "nat"}, {}, "vpp:ip4 routes between the ends of a pair, so function nat"),
        ("vpp", {"mode": "ip6"}, {}, "vpp:ip6 forwards IPv6 packets and nothing else, so not udp4; take udp6 or tcp6"),
        ("vpp", {"mode": "ip4"}, {"header": "udp6"}, "vpp:ip4 forwards IPv4 packets and nothing else, so not udp6"),
        ("vpp", {"mode": "ip6"}, {"header": "udp6", "packet_size": 64}, "64 bytes do not hold udp6 headers; take"),
        ("vpp", {"mode": "ip4"}, {"header": "udp4+vlan7"}, "vpp:ip4 does not pass frames with a VLAN tag"),
    ],
)
def test_what_cannot_be_routed(switch: str, axes: dict[str, Any], traffic: dict[str, Any], reason: str | None) -> None:
    case = Case(switch, Frames(Traffic(**{"packet_size": 128, **traffic})), **axes)
    found = unsupported_reason(case, ROUTER if switch == "vpp" else SWITCHES[switch], 256)
    assert found is None if reason is None else found is not None and found.startswith(reason)


def test_a_router_of_ipv6_has_its_frames_unless_others_are_asked_for() -> None:
    router = {"vpp": ROUTER}
    cases = [
        expand(parse_marker((), {"switch": "vpp", "mode": ["ip4", "ip6"], **axes}, "t"), Options(), router, "t")
        for axes in ({}, {"packet_size": 128}, {"header": "tcp6", "mix": "b"})
    ]
    assert [[case.traffic.label for case in of_one] for of_one in cases] == [
        ["64B", "84B-udp6"],
        ["128B", "128B-udp6"],
        ["b-tcp6", "b-tcp6"],
    ]


def test_routes_are_an_axis_of_their_own() -> None:
    assert ids(Options(switch=("dpdk",)), routes="1 100k", flows="100k") == [
        "poll-64B-f100k-routes1-b32-1vs1-Rmax",
        "poll-64B-f100k-routes100k-b32-1vs1-Rmax",
    ]
    for value in ("0", "1000001", "2M"):
        with pytest.raises(UsageError, match=r"^t: icbench marker: routes: \d+ is outside 1 to 1000000 routes$"):
            parse_marker((), {"routes": value}, "t")


def test_directions_are_an_axis_of_their_own() -> None:
    assert ids(Options(switch=("dpdk",)), direction="one both", packet_size=[128], flows="2", header="tcp4") == [
        "poll-128B-tcp4-f2-b32-1vs1-Rmax",
        "poll-128B-tcp4-f2-both-b32-1vs1-Rmax",
    ]
    assert ids(Options(switch=("dpdk",), direction=(True,)), mix="simple") == ["poll-simple-both-b32-1vs1-Rmax"]
    assert ids(Options(switch=("dpdk",), direction=(False,)), direction="both") == ["poll-64B-b32-1vs1-Rmax"]
    with pytest.raises(
        UsageError, match=r"^t: icbench marker: direction: 'two' is not a direction: write one .* or both"
    ):
        parse_marker((), {"direction": "two"}, "t")
    with pytest.raises(UsageError, match=r"^t: icbench marker: direction: no direction given; write one or both$"):
        parse_marker((), {"direction": ""}, "t")


BOTH_WAYS = Traffic(both=True)


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({}, None),
        ({"dimension": "latency"}, "round trips go both ways already"),
        ({"load": Frames(BOTH_WAYS, rate=Rate(trace=Trace("steps:30k")))}, "a trace has rates for sides a only"),
        ({"blocking": True}, "an end that sends and receives at once polls"),
        ({"function": "nat"}, None),
    ],
)
def test_what_cannot_go_both_ways_at_once(axes: dict[str, Any], reason: str | None) -> None:
    case = Case("bridge", **{"load": Frames(BOTH_WAYS), "api": "raw", **axes})
    found = unsupported_reason(case, SWITCHES["bridge"], 256)
    assert found is None if reason is None else found is not None and found.startswith(reason)
    assert unsupported_reason(case.sending(traffic=Traffic()), SWITCHES["bridge"], 256) is None


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({"api": "raw"}, None),
        ({"api": "xdp"}, None),
        ({"api": "dpdk", "switch": "poll"}, None),
        ({"api": "af_packet"}, "DPDK's driver for af_packet has no receive interrupts"),
        ({"api": "raw", "blocking": True}, "blocking sockets wait in their calls"),
        ({"api": "dpdk", "switch": "poll", "port": "memif"}, "DPDK's driver for memif has no receive interrupts"),
    ],
)
def test_what_can_only_poll(axes: dict[str, Any], reason: str | None) -> None:
    for wait in ("interrupt", "adaptive"):
        case = Case(**{"switch": "bridge", "wait": wait, **axes})
        found = unsupported_reason(case, SWITCHES[case.switch], 256)
        assert found is None if reason is None else found is not None and found.startswith(reason)
        assert unsupported_reason(replace(case, wait=None), SWITCHES[case.switch], 256) is None


def test_a_way_to_wait_that_is_none() -> None:
    assert parse_marker((), {"wait": "poll interrupt"}, "t").wait == (None, "interrupt")
    with pytest.raises(UsageError, match=r"^t: icbench marker: wait: 'sleep' is no way to wait: write poll,"):
        parse_marker((), {"wait": "sleep"}, "t")


def test_each_end_that_sends_is_a_sender() -> None:
    both = Traffic(both=True)
    assert [Case("ovs", Frames(t), pairs=2).senders for t in (Traffic(), both)] == [2, 4]
    # A preflight asks and answers, whatever the case does.
    assert Case("ovs", Frames(both), pairs=2, dimension="latency").senders == 2
    assert Case.from_dict(Case("ovs", Frames(both)).to_dict()) == Case("ovs", Frames(both))
    assert "direction" not in Case("ovs").to_dict()


def test_queues_are_an_axis_of_their_own() -> None:
    assert ids(Options(switch=("dpdk",)), queues=[1, 2], flows="64k", direction="both") == [
        "poll-64B-f64k-both-b32-1vs1-Rmax",
        "poll-64B-f64k-both-q2-b32-1vs1-Rmax",
    ]
    assert ids(Options(switch=("dpdk",), queues=(4,)), mix="simple", queues=2) == ["poll-simple-q4-b32-1vs1-Rmax"]
    case = Case("ovs", Frames(Traffic(queues=2)))
    assert Case.from_dict(case.to_dict()) == case
    assert case.rig_key != case.sending(traffic=Traffic()).rig_key
    assert "queues" not in Case("ovs").to_dict()
    for value in (0, 17):
        with pytest.raises(UsageError, match=rf"^t: icbench marker: queues: {value} is outside 1 to 16 queue pairs$"):
            parse_marker((), {"queues": value}, "t")


@pytest.mark.parametrize(
    ("switch", "axes", "flows", "reason"),
    [
        ("ovs", {}, "64", None),
        ("ovs", {"port": "vhost-user-packed", "dimension": "latency"}, None, None),
        ("testpmd", {"port": "memif"}, "64:ports", None),
        ("direct", {}, "64", None),
        ("vpp", {"port": "memif"}, "64", None),
        ("ovs", {"port": "afxdp", "api": "raw"}, "64", "api raw has one queue: take --icbench-api dpdk, or leave"),
        ("veth", {"api": "udp"}, None, "api udp has one queue: take --icbench-api dpdk, or leave --icbench-queues out"),
        ("veth", {"api": "af_packet"}, "64", "api af_packet has one queue: take --icbench-api dpdk"),
        ("basicfwd", {}, "64", "basicfwd's port vhost-user has one queue pair, not 2: leave --icbench-queues out"),
        ("forward", {}, "64", "forward's port vhost-user has one queue pair, not 2: leave --icbench-queues out"),
        ("snabb", {}, "64", "snabb's port vhost-user has one queue pair, not 2"),
        ("ovs", {"remote": True}, "64", "an uplink to a second host has one queue: leave --icbench-queues out"),
        ("ovs", {"function": "wire"}, "64", "the ports of function wire have one queue: leave --icbench-queues out"),
        ("ovs", {}, "64:macs", "a card's hash does not see MAC addresses, so flows 64:macs would all be in one of 2"),
    ],
)
def test_what_has_no_queues(switch: str, axes: dict[str, Any], flows: str | None, reason: str | None) -> None:
    case = Case(switch, Frames(Traffic(flows=flows, queues=2)), **axes)
    found = unsupported_reason(case, builtin_switches()[switch], 256)
    assert found is None if reason is None else found is not None and found.startswith(reason)


def test_headers_are_an_axis_of_their_own() -> None:
    assert ids(Options(switch=("dpdk",)), header="udp4 tcp6+vlan100", packet_size=[128], flows="1 2") == [
        f"poll-{label}-b32-1vs1-Rmax" for label in ("128B", "128B-f2", "128B-tcp6+vlan100", "128B-tcp6+vlan100-f2")
    ]
    assert ids(Options(switch=("dpdk",), header=("udp6",)), mix="aab", header="tcp4") == ["poll-aab-udp6-b32-1vs1-Rmax"]
    with pytest.raises(
        UsageError, match=r"^t: icbench marker: header: 'tcp5' are not headers: write one of udp4, tcp4"
    ):
        parse_marker((), {"header": "tcp5"}, "t")
    with pytest.raises(UsageError, match=r"^t: icbench marker: header: no headers given; write udp4"):
        parse_marker((), {"header": ""}, "t")


@pytest.mark.parametrize(
    ("api", "header", "size", "reason"),
    [
        ("udp", "tcp4", 128, "a UDP socket sends udp4, not tcp4; take --icbench-api raw"),
        (None, "udp6", 128, "a UDP socket sends udp4, not udp6"),
        ("raw", "udp6", 83, "83 bytes do not hold udp6 headers; take frames of 84 or more"),
        ("raw", "udp6", 84, None),
        ("raw", "tcp6+vlan7", 100, None),
        ("xdp", "udp6+vlan7", 128, "an AF_XDP socket may not see the VLAN tag of udp6+vlan7"),
        ("xdp", "udp6", 128, None),
        ("af_packet", "udp6+vlan7", 128, None),
        ("udp", None, 64, None),
    ],
)
def test_endpoints_that_cannot_have_headers(api: str | None, header: str | None, size: int, reason: str | None) -> None:
    case = Case("bridge", Frames(Traffic(size, header=header)), api=api)
    found = unsupported_reason(case, SWITCHES["bridge"], 256)
    assert found is None if reason is None else found is not None and found.startswith(reason)


@pytest.mark.parametrize(
    ("traits", "header", "reason"),
    [
        ({"vlan": False}, "udp4+vlan7", "poll does not pass frames with a VLAN tag; leave +vlan out of udp4+vlan7"),
        ({"filters": True}, "udp4+vlan7", "poll does not pass frames with a VLAN tag"),
        ({"vlan": False, "filters": True}, "tcp6", None),
        ({"hops": 1}, "udp6", "poll forwards IPv4 packets and nothing else, so not udp6; take udp4 or tcp4"),
        ({"hops": 1}, "tcp4", None),
    ],
)
def test_switches_that_cannot_have_headers(traits: dict[str, Any], header: str, reason: str | None) -> None:
    cls = type("Other", (SWITCHES["poll"],), traits)
    found = unsupported_reason(Case("poll", Frames(Traffic(128, header=header))), cls, 256)
    assert found is None if reason is None else found is not None and found.startswith(reason)
