# SPDX-License-Identifier: BSD-3-Clause
"""Checks how a switch treats frames against the abilities that its driver declares.

A declared ability that is missing is a failure, and so is an ability that is not declared.
"""

from __future__ import annotations

import time
from importlib.util import find_spec

import pytest

if find_spec("scapy") is None:  # a suite that is skipped would pass
    raise pytest.Collector.CollectError("Scapy is missing: pip install 'pytest-icbench[conformance]'")

from pytest_icbench.api import ForwardingBehaviour, Icbench, builtin_switches, read_behaviour, watched_launch
from pytest_icbench.conformance import delivery as t
from pytest_icbench.conformance.delivery import DeliveryChecker

#: All switches that groups stand for, and those that are selected by name alone.
SWITCHES = ["all", *(name for name, driver in builtin_switches().items() if driver.by_name_only)]
MODES = ["default", "wires", "routers"]
SIZES = [64, 65, 67, 68, 128, 255, 256, 511, 512, 1024, 1280, 1500, 1514, 1517, 1518]
JUMBO_SIZES = [64, 1518, 1519, 1522, 2048, 2049, 4096, 8192, 9000, 9216]
#: The length of a flow, in frames: enough for a switch with several queues or batches to reorder it.
FLOW = 150

#: The time in seconds during which frames may go where an address was before, because a switch may have cached its
#: decision. Open vSwitch revalidates its flows within half a second.
_MOVED_S = 1.0
#: The time in seconds that a switch without declared ageing has to keep an address.
_KEPT_S = 3.0
#: The time in seconds after which an answer about a flow holds for all its frames.
_ASKED_S = 0.5

#: A test takes about as long as one launch: 33 s for 11 tests. So sessions foresee it.
SHORT = {"reference": False, "repeats": 1, "duration": 2.0}
each_switch = pytest.mark.icbench(switch=SWITCHES, pairs=2, mode=MODES, **SHORT)


@pytest.fixture
def declared(icbench: Icbench) -> ForwardingBehaviour:
    """The abilities that the switch's driver declares for the case."""
    return read_behaviour(icbench.switch, icbench.case.mode)


@pytest.fixture
def traffic(icbench: Icbench, declared: ForwardingBehaviour) -> DeliveryChecker:
    """The traffic at all endpoints of the case's switch, which has seen the address of each."""
    version = declared.ip_version
    traffic_of_case = DeliveryChecker(
        icbench.exchange(), echoes=declared.filters, hops=declared.hops, ip_version=version, floods=declared.floods
    )
    traffic_of_case.introduce()
    return traffic_of_case


def both_ways(traffic: DeliveryChecker, sizes: list[int]) -> None:
    """Checks that frames of these sizes in bytes are delivered within pair 1: IPv4, IPv6 too unless it routes."""
    a, b = traffic.addresses[:2]
    sizes = [size for size in sizes if size >= t.least_bytes(b)]
    there = [(t.ipv4(a, b, size), {1}) for size in sizes]
    if traffic.hops is None:
        there += [(t.ipv6(a, b, size), {1}) for size in sizes if size >= 84]
    back = [(t.ipv4(b, a, size), {0}) for size in sizes]
    traffic.deliver({0: there, 1: back})


@each_switch
def test_frames_of_every_length_reach_their_peer_alone(traffic: DeliveryChecker) -> None:
    """Frames of 64 to 1518 bytes pass both ways, once and unaltered. None reaches pair 2, whose addresses are known."""
    both_ways(traffic, SIZES)


@pytest.mark.icbench_long
@pytest.mark.icbench(switch=SWITCHES, pairs=2, mode=MODES, packet_size=9216, **SHORT)
def test_jumbo_frames_reach_their_peer_alone(traffic: DeliveryChecker, declared: ForwardingBehaviour) -> None:
    """Frames of up to 9216 bytes pass ports with such an MTU. A switch that declares a lower limit is skipped."""
    assert declared.jumbo
    both_ways(traffic, JUMBO_SIZES)


@each_switch
def test_frames_of_every_kind_pass(traffic: DeliveryChecker, icbench: Icbench) -> None:
    """IPv4, IPv6, a fragment, a wrong checksum (not checked by a switch) and an unassigned EtherType pass.

    Where packets are forwarded and not frames, nothing but packets of that IP version passes.
    """
    a, b = traffic.addresses[2:4]
    there = [(frame, {3}) for frame in t.unicast_frames(a, b).values()]
    if traffic.hops is not None:
        others = t.ipv6(a, b), t.ethernet(a.mac, b.mac)
        if traffic.ip_version == 6:
            sender, receiver = icbench.exchange().addresses[2:4]
            others = t.ipv4(sender, receiver), t.ethernet(a.mac, b.mac)
        there += [(frame, set()) for frame in others]
    traffic.deliver({2: there, 3: [(frame, {2}) for frame in t.unicast_frames(b, a).values()]})


@each_switch
def test_vlan_tags_pass_if_declared(traffic: DeliveryChecker, declared: ForwardingBehaviour) -> None:
    """Tagged frames reach their peer alone, unaltered. Frames that a card filters may be missing."""
    a, b = traffic.addresses[:2]
    if declared.vlan:
        traffic.introduce_tagged(t.VLANS)
        traffic.deliver({0: [(frame, {1}) for frame in t.tagged_frames(a, b).values()]}, complete=not declared.filters)
    else:
        for name, frame in t.tagged_frames(a, b).items():
            assert frame not in traffic.received(0, [frame], 1)[1], f"{name} passes, and vlan = False is declared"


@each_switch
@pytest.mark.parametrize("kind", ["broadcast", *t.MULTICAST])
def test_broadcast_and_multicast_reach_who_is_declared(
    traffic: DeliveryChecker, declared: ForwardingBehaviour, kind: str
) -> None:
    """Broadcast reaches the declared endpoints. Multicast reaches the same, or fewer if a card filters it."""
    to = t.MULTICAST.get(kind, t.BROADCAST)
    complete = kind == "broadcast" or not declared.filters
    for index in traffic.indexes:
        frame, reached = t.ethernet(traffic.addresses[index].mac, to), traffic.reached(index, declared.broadcast)
        traffic.deliver({index: [(frame, reached)]}, complete=complete)


@each_switch
def test_a_frame_to_an_unknown_address_reaches_who_is_declared(
    traffic: DeliveryChecker, declared: ForwardingBehaviour
) -> None:
    for index in (0, 3):
        reached = traffic.reached(index, declared.unknown_unicast)
        traffic.deliver({index: [(t.ethernet(traffic.addresses[index].mac, t.unknown_mac()), reached)]})


@each_switch
def test_it_learns_where_an_address_is_if_declared(traffic: DeliveryChecker, declared: ForwardingBehaviour) -> None:
    """Frames follow an address from endpoint 3 to endpoint 2. A wire ignores addresses."""
    wanderer, sender = t.unknown_mac(), traffic.addresses[0].mac
    for home in (3, 2):
        announcement = (t.ethernet(wanderer, t.BROADCAST), traffic.reached(home, declared.broadcast))
        traffic.deliver({home: [announcement]})
        if declared.learns and home == 2:
            time.sleep(_MOVED_S)
        reached = {home} if declared.learns else traffic.reached(0, declared.unknown_unicast)
        traffic.deliver({0: [(t.ethernet(sender, wanderer), reached) for _ in range(3)]})


@pytest.mark.icbench_long
@each_switch
def test_it_forgets_addresses_if_declared(
    traffic: DeliveryChecker, declared: ForwardingBehaviour, icbench: Icbench
) -> None:
    """After twice the shortest ageing time a frame reaches all endpoints again; without ageing it does not.

    A wire has nothing to forget: frames go where they went before.
    """
    wanderer, sender = t.unknown_mac(), traffic.addresses[0].mac
    anywhere = traffic.reached(0, declared.unknown_unicast)
    known = {3} if declared.learns else anywhere
    least = declared.least_ageing_s
    if least is not None:
        icbench.exchange().set_ageing(least)
    traffic.deliver({3: [(t.ethernet(wanderer, t.BROADCAST), traffic.reached(3, declared.broadcast))]})
    traffic.deliver({0: [(t.ethernet(sender, wanderer), known)]})
    time.sleep(_KEPT_S if least is None else 2 * least + 1)
    traffic.forgotten()
    traffic.deliver({0: [(t.ethernet(sender, wanderer), known if least is None else anywhere)]})


@each_switch
def test_flows_keep_their_order_and_their_pair(traffic: DeliveryChecker, declared: ForwardingBehaviour) -> None:
    """All endpoints send at once. Each gets its peer's frames, of two sizes, in the order of sending.

    A switch that asks about the first frames of a flow has its answer by then.
    """
    ends, peers = traffic.addresses, {index: traffic.path.peer(index) for index in traffic.indexes}
    if declared.asks_first:
        traffic.deliver({index: [(t.ipv4(ends[index], ends[peer]), {peer})] for index, peer in peers.items()})
        time.sleep(_ASKED_S)
    sizes = (t.least_bytes(ends[0]), 1280)
    sent = {index: t.flow_frames(ends[index], ends[peer], sizes, FLOW) for index, peer in peers.items()}
    arrived = traffic.deliver_in_order(sent)
    for index, frames in arrived.items():
        assert len(frames) > FLOW // 2, f"endpoint {index} got {len(frames)} of {FLOW} frames"


@pytest.mark.icbench_long
@each_switch
def test_a_measured_launch_stays_in_its_pair(icbench: Icbench, declared: ForwardingBehaviour) -> None:
    """Pair 1 is measured as usual while pair 2 captures. No measuring frame arrives at pair 2, except from a hub."""
    launch = watched_launch(icbench.rig(), icbench.case)
    assert launch.received > 0
    assert launch.leaked == [] or declared.floods
