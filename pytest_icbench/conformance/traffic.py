# SPDX-License-Identifier: BSD-3-Clause
"""Frames that are told apart, and which of them have arrived where."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakSet

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from pytest_icbench.api import FCS_BYTES, HEADERS_BYTES, Address, Exchange, FramePath, Reach

#: Those of ``tagged``; 0 is none, and a priority alone.
VLANS = (0, 1, 100, 4094)
BROADCAST = "ff:ff:ff:ff:ff:ff"
MULTICAST = {"ipv4": "01:00:5e:01:02:03", "ipv6": "33:33:00:01:02:03"}
#: Of an address that no endpoint has; what follows is its number.
_STRANGER = "02:00:00:fe"
#: How often frames that have not arrived are sent again: a poller that lost its CPU may have dropped them, and this is
#: no measurement of loss.
_ATTEMPTS = 4

#: Exchanges of which the switch has seen the address of each endpoint.
_introduced: WeakSet[Exchange] = WeakSet()
_numbers = itertools.count(1)
_strangers = itertools.count(1)


def stranger() -> str:
    """A MAC address that no switch has seen yet."""
    number = next(_strangers)
    return f"{_STRANGER}:{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"


def _filled(head: Packet, packet_size: int) -> bytes:
    """A frame of that packet size (with FCS), which no other frame equals."""
    length = packet_size - FCS_BYTES - len(head)
    if length < 0:
        raise ValueError(f"{packet_size} bytes do not hold {head.summary()}")
    number = next(_numbers).to_bytes(4)
    pattern = (number + bytes(range(1, 256))) * (length // 259 + 1)
    return bytes(head / Raw(pattern[:length]))


def described(frame: bytes) -> str:
    """For messages."""
    return f"{Ether(frame).summary()}, {len(frame) + FCS_BYTES} bytes"


def ethernet(source: str, destination: str, packet_size: int = 64, *, vlan: int | None = None) -> bytes:
    """A frame of the experimental EtherType 0x88b5, with a VLAN tag from 68 bytes."""
    link = Ether(src=source, dst=destination, type=0x88B5)
    if vlan is not None:
        link = Ether(src=source, dst=destination) / Dot1Q(vlan=vlan, type=0x88B5)
    return _filled(link, packet_size)


def _ip(source: Address, destination: Address, **more: Any) -> IP:
    """The header, from the endpoints' addresses moved to 127.0.0.0/8: an endpoint of the kernel's answers the frames of
    its own addresses, and what comes from those it drops without a word.
    """
    moved = [".".join(["127", *address.ip.split(".")[1:]]) for address in (source, destination)]
    return IP(src=moved[0], dst=moved[1], **more)


def ipv4(source: Address, destination: Address, packet_size: int = 64, *, vlan: int | None = None) -> bytes:
    """IPv4 and UDP, from 64 bytes, with a VLAN tag from 68."""
    return _filled(_link(source, destination, vlan) / _ip(source, destination) / UDP(), packet_size)


def ipv6(source: Address, destination: Address, packet_size: int = 84, *, vlan: int | None = None) -> bytes:
    """IPv6 and UDP, from 84 bytes."""
    return _filled(_link(source, destination, vlan) / IPv6(src="2001:2::1", dst="2001:2::2") / UDP(), packet_size)


def kinds(source: Address, destination: Address) -> dict[str, bytes]:
    """One frame of every kind that a network function sends to one other, without a VLAN tag."""
    link = Ether(src=source.mac, dst=destination.mac)
    ip = _ip(source, destination)
    return {
        "IPv4, UDP": ipv4(source, destination),
        "IPv4, UDP, odd length": ipv4(source, destination, 111),
        "IPv4, TCP SYN": _filled(link / ip / TCP(flags="S"), 128),
        "IPv4, ICMP echo": _filled(link / ip / ICMP(), 128),
        "IPv4, fragment": _filled(link / _ip(source, destination, frag=100, flags="MF", proto=17), 256),
        "IPv4, wrong checksum": _filled(link / _ip(source, destination, chksum=1) / UDP(chksum=1), 100),
        "IPv6, UDP": ipv6(source, destination),
        "IPv6, UDP, long": ipv6(source, destination, 1518),
        "EtherType 0x88b5": ethernet(source.mac, destination.mac),
    }


def tagged(source: Address, destination: Address) -> dict[str, bytes]:
    """One frame of every kind with a VLAN tag."""
    priority = Ether(src=source.mac, dst=destination.mac) / Dot1Q(vlan=0, prio=5)
    found = {f"VLAN {vlan}, IPv4": ipv4(source, destination, 68, vlan=vlan) for vlan in VLANS if vlan}
    found["VLAN 100, IPv6"] = ipv6(source, destination, 88, vlan=100)
    found["VLAN 100, 1518 bytes and the tag"] = ipv4(source, destination, 1522, vlan=100)
    found["priority 5 without VLAN"] = _filled(priority / _ip(source, destination) / UDP(), 200)
    return found


def flow(source: Address, destination: Address, sizes: Sequence[int], count: int) -> list[bytes]:
    """Frames of one IPv4 flow, of these sizes in turn."""
    link = Ether(src=source.mac, dst=destination.mac)
    models = [_filled(link / _ip(source, destination) / UDP(chksum=0), size) for size in sizes]
    heads = [model[:HEADERS_BYTES] + next(_numbers).to_bytes(4) for model in models]
    return [heads[n % len(sizes)] + n.to_bytes(4) + models[n % len(sizes)][HEADERS_BYTES + 8 :] for n in range(count)]


def _link(source: Address, destination: Address, vlan: int | None) -> Packet:
    link = Ether(src=source.mac, dst=destination.mac)
    return link if vlan is None else link / Dot1Q(vlan=vlan)


class Traffic:
    """Sends frames through a switch and says what is wrong with what comes out.

    Attributes:
        addresses: of all endpoints, by index. path: which of them are peers.
        echoes: whether a frame to many may come back to its sender.
    """

    def __init__(self, exchange: Exchange, *, echoes: bool = False) -> None:
        self._exchange = exchange
        self.echoes = echoes
        self.addresses = exchange.addresses
        self.path = FramePath.over(self.addresses)

    @property
    def indexes(self) -> range:
        """Of all endpoints."""
        return self.path.endpoints

    def reached(self, sender: int, reach: Reach) -> set[int]:
        """Endpoints that a frame of the sender reaches."""
        others = {"all": set(self.indexes) - {sender}, "peer": {self.path.across(sender)}, "none": set()}
        return others[reach]

    def introduce(self) -> None:
        """Each endpoint shows its address to the switch, if it has not yet.

        By a broadcast: a switch that caches decisions would remember for a while that a frame to the peer went to all.
        """
        if self._exchange not in _introduced:
            self._introduce({i: [ethernet(self.addresses[i].mac, BROADCAST)] for i in self.indexes})
            _introduced.add(self._exchange)

    def introduce_tagged(self, vlans: Sequence[int]) -> None:
        """The same in these VLANs: a switch may learn in each VLAN apart (802.1Q, independent learning)."""
        self._introduce(
            {i: [ethernet(self.addresses[i].mac, BROADCAST, 68, vlan=vlan) for vlan in vlans] for i in self.indexes}
        )

    def _introduce(self, frames: Mapping[int, Sequence[bytes]]) -> None:
        for _ in range(_ATTEMPTS):
            due = {self.path.peer(i): sent for i, sent in frames.items()}
            arrived = self._exchange.exchange(frames, {i: len(sent) for i, sent in due.items()})
            if all(set(arrived[i]) >= set(sent) for i, sent in due.items()):
                return

    def forgotten(self) -> None:
        """The switch may have forgotten the endpoints' addresses."""
        _introduced.discard(self._exchange)

    def deliver(
        self, sent: Mapping[int, Sequence[tuple[bytes, set[int]]]], *, all_of_them: bool = True
    ) -> dict[int, list[bytes]]:
        """Sends frames, each with the endpoints that it has to reach, and fails unless each arrives there and nowhere
        else, once and as it was. What is missing is sent again a few times; without ``all_of_them`` it may be missing.
        Returns what arrived, without repetitions.
        """
        found: dict[int, list[bytes]] = {index: [] for index in self.indexes}
        where: dict[bytes, set[int]] = {}
        allowed: dict[bytes, set[int]] = {}
        for sender, frames in sent.items():
            where.update(frames)
            allowed.update({frame: self._allowed(sender, frame, to) for frame, to in frames})
        todo = {index: [frame for frame, _ in frames] for index, frames in sent.items()}
        for _ in range(_ATTEMPTS):
            expected = Counter(index for frames in todo.values() for frame in frames for index in where[frame])
            arrived = self._exchange.exchange(todo, expected)
            self._check(arrived, allowed)
            for index, came in arrived.items():
                found[index] += [frame for frame in came if frame not in found[index]]
            todo = {
                index: [f for f in frames if any(f not in found[there] for there in where[f])]
                for index, frames in todo.items()
            }
            todo = {index: frames for index, frames in todo.items() if frames}
            if not todo or not all_of_them:
                return found
        sender, lost = next(iter(todo.items()))
        missing = sorted(there for there in where[lost[0]] if lost[0] not in found[there])
        raise AssertionError(
            f"{len(lost)} of {len(sent[sender])} frames from endpoint {sender} never arrived at endpoint {missing[0]},"
            f" sent {_ATTEMPTS} times; the first: {described(lost[0])}"
        )

    def _allowed(self, sender: int, frame: bytes, to: set[int]) -> set[int]:
        to_many = bool(frame[0] & 1)
        return to | {sender} if self.echoes and to_many else to

    @staticmethod
    def _check(arrived: Mapping[int, Sequence[bytes]], where: Mapping[bytes, set[int]]) -> None:
        for index, frames in arrived.items():
            for frame, times in Counter(frames).items():
                who = f"endpoint {index} got a frame"
                assert frame in where, f"{who} that nobody sent (altered?): {described(frame)}"
                assert index in where[frame], f"{who} that was for {sorted(where[frame])}: {described(frame)}"
                assert times == 1, f"{who} {times} times: {described(frame)}"

    def deliver_in_order(self, sent: Mapping[int, Sequence[bytes]]) -> dict[int, list[bytes]]:
        """Sends flows of frames to the senders' peers; fails if one comes out of order, or elsewhere."""
        where = {frame: {self.path.peer(index)} for index, frames in sent.items() for frame in frames}
        arrived = self._exchange.exchange(sent, {self.path.peer(index): len(frames) for index, frames in sent.items()})
        self._check(arrived, where)
        for index, frames in arrived.items():
            ranks = {frame: rank for rank, frame in enumerate(sent.get(self.path.peer(index), ()))}
            order = [ranks[frame] for frame in frames]
            late = next((n for n in range(1, len(order)) if order[n] < order[n - 1]), None)
            assert late is None, f"endpoint {index} got frame {order[late]} of a flow behind frame {order[late - 1]}"
        return arrived

    def heard(self, sender: int, frames: Sequence[bytes], expected: int) -> dict[int, list[bytes]]:
        """Sends frames of one endpoint and returns what arrives, whatever it is."""
        return self._exchange.exchange({sender: frames}, {expected: len(frames)})
