# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite notices what it is there to notice: on a switch that does it wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import (
    ICMPv6MLDMultAddrRec,
    ICMPv6MLReport2,
    IPv6,
    IPv6ExtHdrHopByHop,
    RouterAlert,
)
from scapy.layers.l2 import Ether

from pytest_icbench.conformance import delivery as t
from pytest_icbench.conformance.delivery import DeliveryChecker
from pytest_icbench.driver.switch.protocol import ForwardingBehaviour, read_behaviour
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.model.endpoint import Address
from pytest_icbench.testbed.exchange import Exchange

A, B = Address.of(1, "a"), Address.of(1, "b")
Frames = dict[int, list[bytes]]


class Cable:
    """An exchange over two wires, with something wrong in it."""

    def __init__(self, wrong: Callable[[Frames], None] = lambda found: None) -> None:
        self.addresses = [Address.of(pair, side) for pair in (1, 2) for side in ("a", "b")]
        self.wrong = wrong
        self.exchanges = 0

    def exchange(self, sent: Mapping[int, Sequence[bytes]], expected: object = None) -> Frames:
        self.exchanges += 1
        found: Frames = {index: list(sent.get(index ^ 1, ())) for index in range(4)}
        self.wrong(found)
        return found


def over(wrong: Callable[[Frames], None] = lambda found: None, *, echoes: bool = False) -> DeliveryChecker:
    return DeliveryChecker(cast(Exchange, Cable(wrong)), echoes=echoes)


def send(wrong: Callable[[Frames], None], count: int = 3) -> Frames:
    return over(wrong).deliver({0: [(t.ipv4(A, B), {1}) for _ in range(count)]})


def test_what_arrives_as_it_should_is_returned() -> None:
    found = send(lambda found: None)
    assert [len(frames) for frames in found.values()] == [0, 3, 0, 0]
    assert len(set(found[1])) == 3


def altered(found: Frames) -> None:
    found[1][0] = found[1][0][:-1] + bytes([found[1][0][-1] ^ 1])


def shortened(found: Frames) -> None:
    found[1][0] = found[1][0][:-1]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (altered, "endpoint 1 got a frame that no endpoint sent"),
        (shortened, "endpoint 1 got a frame that no endpoint sent"),
        (lambda found: found[1].append(found[1][0]), "endpoint 1 got a frame 2 times"),
        (lambda found: found[2].append(found[1][0]), r"endpoint 2 got a frame that was for \[1\]"),
        (lambda found: found[0].append(found[1][0]), r"endpoint 0 got a frame that was for \[1\]"),
        (lambda found: found[1].clear(), "3 of 3 frames from endpoint 0 never arrived at endpoint 1, sent 4 times"),
    ],
)
def test_a_wrong_delivery_fails_with_its_kind(wrong: Callable[[Frames], None], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        send(wrong)


def test_a_card_may_filter_frames_and_send_those_to_many_back() -> None:
    many, one = t.ethernet(A.mac, t.BROADCAST), t.ipv4(A, B)
    echo = over(lambda found: found[0].append(many), echoes=True)
    assert echo.deliver({0: [(many, {1})]})[0] == [many]
    back = over(lambda found: found[0].append(one), echoes=True)
    with pytest.raises(AssertionError, match=r"endpoint 0 got a frame that was for \[1\]"):
        back.deliver({0: [(one, {1})]}, complete=False)
    nowhere = over(lambda found: found[1].clear())
    assert nowhere.deliver({0: [(one, {1})]}, complete=False)[1] == []


def test_only_a_router_may_report_the_groups_it_listens_to() -> None:
    report = bytes(
        Ether(src=B.mac, dst="33:33:00:00:00:16")
        / IPv6(src="::", dst="ff02::16")
        / IPv6ExtHdrHopByHop(options=RouterAlert())
        / ICMPv6MLReport2(records=[ICMPv6MLDMultAddrRec(dst="ff02::2")])
    )
    one = t.ipv6(A, B)
    routed = DeliveryChecker(cast(Exchange, Cable(lambda found: found[1].append(report))), hops=1, ip_version=6)
    assert report not in routed.received(0, [one], 1)[1]
    with pytest.raises(AssertionError, match="endpoint 1 got a frame that no endpoint sent"):
        over(lambda found: found[1].append(report)).deliver({0: [(one, {1})]})


def test_a_frame_lost_once_is_sent_again() -> None:
    seen: set[bytes] = set()

    def loses_first(found: Frames) -> None:
        for frame in list(found[1]):
            if frame not in seen:
                found[1].remove(frame)
        seen.update(found[1] or {b""})
        seen.update(sent)

    sent = [t.ipv4(A, B) for _ in range(2)]
    assert over(loses_first).deliver({0: [(frame, {1}) for frame in sent]})[1] == sent


def test_a_swap_within_a_flow_fails() -> None:
    frames = t.flow_frames(A, B, (64, 1280), 10)
    assert [len(frame) + 4 for frame in frames] == [64, 1280] * 5
    assert len(set(frames)) == 10
    assert over().deliver_in_order({0: frames})[1] == frames

    def swaps(found: Frames) -> None:
        found[1][3], found[1][4] = found[1][4], found[1][3]

    with pytest.raises(AssertionError, match="got frame 3 of a flow after frame 4"):
        over(swaps).deliver_in_order({0: frames})
    with pytest.raises(AssertionError, match=r"endpoint 3 got a frame that was for \[1\]"):
        over(lambda found: found[3].append(found[1][0])).deliver_in_order({0: frames})


def test_endpoints_are_introduced_once() -> None:
    cable = Cable()
    traffic = DeliveryChecker(cast(Exchange, cable))
    for _ in range(2):
        traffic.introduce()
    assert cable.exchanges == 1
    traffic.forgotten()
    traffic.introduce()
    assert cable.exchanges == 2


def test_frames_reach_all_the_peer_or_none() -> None:
    traffic = over()
    assert traffic.reached(2, "all") == {0, 1, 3}
    assert traffic.reached(2, "peer") == {3}
    assert traffic.reached(2, "none") == set()


def test_frames_are_what_they_are_called() -> None:
    for size in (64, 65, 1518, 9216):
        frame = t.ipv4(A, B, size)
        assert len(frame) == size - 4
        assert (Ether(frame).src, Ether(frame).dst) == (A.mac, B.mac)
        assert IP(frame[14:]).src == "127.18.1.1"  # nobody answers
    with pytest.raises(ValueError, match="45 bytes do not hold"):
        t.ipv4(A, B, 45)
    assert [len(t.ipv4(A, B, 68, vlan=5)), len(t.ipv6(A, B))] == [64, 80]
    kinds, tagged = t.unicast_frames(A, B), t.tagged_frames(A, B)
    assert len({*kinds.values(), *tagged.values()}) == len(kinds) + len(tagged)
    assert all(frame[12:14] == b"\x81\x00" for frame in tagged.values())
    assert len({t.unknown_mac() for _ in range(1000)}) == 1000


class Router(Cable):
    """An exchange over a router, which takes one from the TTL."""

    def exchange(self, sent: Mapping[int, Sequence[bytes]], expected: object = None) -> Frames:
        arrived = super().exchange(sent, expected)
        return {index: [routed(frame) for frame in frames if IP in Ether(frame)] for index, frames in arrived.items()}


def routed(frame: bytes, ttl: int = 63) -> bytes:
    packet = Ether(frame)
    packet[IP].ttl = ttl
    del packet[IP].chksum
    return bytes(packet)


def test_a_router_s_packets_are_as_they_were_sent_but_for_the_ttl() -> None:
    traffic = DeliveryChecker(cast(Exchange, Router()), hops=1)
    a, b = traffic.addresses[:2]
    assert {IP(frame[14:]).src for frame in t.unicast_frames(a, b).values()} == {"203.0.113.1"}  # nobody has a way back
    assert {IP(frame[14:]).dst for frame in t.unicast_frames(a, b).values()} == {b.ip}
    assert "VLAN 100, IPv6" not in t.tagged_frames(a, b)
    traffic.deliver(
        {0: [(frame, {1}) for frame in t.unicast_frames(a, b).values()] + [(t.ethernet(a.mac, b.mac), set())]}
    )
    sent = {0: t.flow_frames(a, b, (64, 1280), 5)}
    assert traffic.deliver_in_order(sent)[1] == sent[0]


class Hub(Cable):
    """An exchange over a hub."""

    def exchange(self, sent: Mapping[int, Sequence[bytes]], expected: object = None) -> Frames:
        return {index: [frame for at, frames in sent.items() if at != index for frame in frames] for index in range(4)}


def test_frames_of_a_hub_may_be_at_every_port() -> None:
    hub = DeliveryChecker(cast(Exchange, Hub()), floods=True)
    hub.deliver({0: [(t.ipv4(A, B), {1})]})
    sent = {0: t.flow_frames(A, B, (64, 1280), 5), 1: t.flow_frames(B, A, (64,), 5)}
    assert hub.deliver_in_order(sent)[1] == sent[0]
    with pytest.raises(AssertionError, match=r"endpoint 2 got a frame that was for \[1\]"):
        DeliveryChecker(cast(Exchange, Hub())).deliver({0: [(t.ipv4(A, B), {1})]})


def test_a_missing_frame_with_a_wrong_checksum_is_named_so() -> None:
    frames = t.unicast_frames(A, B)
    assert t.describe(frames["IPv4, wrong checksum"]).endswith("100 bytes, wrong IP checksum")
    assert not any("wrong" in t.describe(frame) for name, frame in frames.items() if "wrong" not in name)


@pytest.mark.parametrize("hops", [0, 2, None])
def test_a_ttl_that_is_not_as_declared_is_an_altered_frame(hops: int | None) -> None:
    traffic = DeliveryChecker(cast(Exchange, Router()), hops=hops)
    a, b = traffic.addresses[:2]
    with pytest.raises(AssertionError, match="that no endpoint sent"):
        traffic.deliver({0: [(t.ipv4(a, b), {1})]})


def driver(**facts: Any) -> Any:
    """A driver's class with these facts, otherwise those of testpmd, which is a wire."""
    return type("Driver", (builtin_switches()["testpmd"],), facts)


def test_what_is_not_declared_follows_from_learning() -> None:
    wire = ForwardingBehaviour(
        learns=False,
        broadcast="peer",
        unknown_unicast="peer",
        vlan=True,
        filters=False,
        asks_first=False,
        jumbo=True,
        least_ageing_s=None,
        hops=None,
    )
    assert read_behaviour(driver()) == wire
    learns = driver(learns=True, least_ageing_s=5.0, modes=("wire",), wire_modes=("wire",), max_frame_bytes=1518)
    expected = replace(wire, learns=True, broadcast="all", unknown_unicast="all", jumbo=False, least_ageing_s=5.0)
    assert read_behaviour(learns) == expected
    assert read_behaviour(learns, "wire") == replace(wire, jumbo=False)
    hub = driver(floods=True, modes=("wire",), wire_modes=("wire",))
    assert (read_behaviour(hub).floods, read_behaviour(hub, "wire").floods) == (True, False)
    nic = read_behaviour(driver(broadcast="all", unknown_unicast="none", vlan=False))
    assert (nic.learns, nic.broadcast, nic.unknown_unicast, nic.vlan) == (False, "all", "none", False)


def test_a_switch_that_cannot_age_says_so() -> None:
    from pytest_icbench.errors import ProvisionError

    with pytest.raises(ProvisionError, match="testpmd keeps the addresses"):
        builtin_switches()["testpmd"]().set_ageing(5)
