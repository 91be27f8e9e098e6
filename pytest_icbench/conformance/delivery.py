# SPDX-License-Identifier: BSD-3-Clause
"""Unique frames for the conformance tests, and the checks of their delivery."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakSet

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from pytest_icbench.api import FCS_BYTES, Address, Exchange, FramePath, Reach, own_address

#: The VLANs of ``tagged``; 0 stands for a tag with a priority alone.
VLANS = (0, 1, 100, 4094)
BROADCAST = "ff:ff:ff:ff:ff:ff"
MULTICAST = {"ipv4": "01:00:5e:01:02:03", "ipv6": "33:33:00:01:02:03"}
_LINK_BYTES = 14
_HOP_LIMIT_AT = _LINK_BYTES + 7
_TYPE_IPV6 = 0x86DD
#: The hop-by-hop header of an IPv6 packet, which names ICMPv6, and the type of a message behind it.
_HOP_BY_HOP_AT = _LINK_BYTES + 40
_REPORT_AT = _HOP_BY_HOP_AT + 8
#: The prefix of addresses that no endpoint has. A number follows.
_STRANGER = "02:00:00:fe"
#: Most transmissions of a frame until it arrives. A poller without its CPU may drop it, and loss is not tested here.
_ATTEMPTS = 4

#: The exchanges whose switch has seen the addresses of all endpoints.
_introduced: WeakSet[Exchange] = WeakSet()
_numbers = itertools.count(1)
_strangers = itertools.count(1)


def _is_report(frame: bytes) -> bool:
    """Whether a frame is a router's own report of its multicast groups, which RFC 3810 demands of each interface."""
    return frame[12:14] == b"\x86\xdd" and frame[_HOP_BY_HOP_AT:][:1] == b"\x3a" and frame[_REPORT_AT:][:1] == b"\x8f"


def unknown_mac() -> str:
    """Returns a MAC address that no switch has seen yet."""
    number = next(_strangers)
    return f"{_STRANGER}:{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"


def _fill(head: Packet, packet_size: int) -> bytes:
    """Returns a unique frame of this packet size, which includes the FCS. Raises ValueError if it is too small."""
    length = packet_size - FCS_BYTES - len(head)
    if length < 0:
        raise ValueError(f"{packet_size} bytes do not hold {head.summary()}")
    number = next(_numbers).to_bytes(4)
    pattern = (number + bytes(range(1, 256))) * (length // 259 + 1)
    return bytes(head / Raw(pattern[:length]))


def describe(frame: bytes) -> str:
    """Describes a frame for messages."""
    wrong = ", wrong IP checksum" if frame[12:14] == b"\x08\0" and _as_sent(frame, 0) != frame else ""
    return f"{Ether(frame).summary()}, {len(frame) + FCS_BYTES} bytes{wrong}"


def ethernet(source: str, destination: str, packet_size: int = 64, *, vlan: int | None = None) -> bytes:
    """Returns a frame of the experimental EtherType 0x88b5. With a VLAN tag it has at least 68 bytes."""
    link = Ether(src=source, dst=destination, type=0x88B5)
    if vlan is not None:
        link = Ether(src=source, dst=destination) / Dot1Q(vlan=vlan, type=0x88B5)
    return _fill(link, packet_size)


class RoutedAddress(Address):
    """The addresses of an endpoint at a switch that forwards IPv4 packets by their addresses."""


class RoutedAddress6(RoutedAddress):
    """The same for IPv6; ``ip`` is the IPv6 address."""


def least_bytes(destination: Address) -> int:
    """Returns the least length of a UDP packet to an endpoint."""
    return 84 if isinstance(destination, RoutedAddress6) else 64


def _ip(source: Address, destination: Address, **fields: Any) -> Packet:
    """Returns the IP header, with the endpoints' addresses moved to 127.0.0.0/8.

    An endpoint in the kernel would answer frames to its own address. It drops those from 127.0.0.0/8 silently. A router
    does not forward them, so packets between routed addresses are from a network to which no endpoint has a route.
    """
    if isinstance(destination, RoutedAddress6):
        return IPv6(src=f"2001:db8::{source.mac.split(':')[4]}", dst=destination.ip, **fields)
    if isinstance(destination, RoutedAddress):
        return IP(src=f"203.0.113.{source.ip.split('.')[2]}", dst=destination.ip, **fields)
    moved = [".".join(["127", *address.ip.split(".")[1:]]) for address in (source, destination)]
    return IP(src=moved[0], dst=moved[1], **fields)


def ipv4(source: Address, destination: Address, packet_size: int = 0, *, vlan: int | None = None) -> bytes:
    """Returns a frame with IP and UDP, of at least 64 bytes, with a VLAN tag 68, and 20 more between IPv6 addresses."""
    packet_size = packet_size or least_bytes(destination)
    return _fill(_link(source, destination, vlan) / _ip(source, destination) / UDP(), packet_size)


def ipv6(source: Address, destination: Address, packet_size: int = 84, *, vlan: int | None = None) -> bytes:
    """Returns a frame with IPv6 and UDP, of at least 84 bytes."""
    return _fill(_link(source, destination, vlan) / IPv6(src="2001:2::1", dst="2001:2::2") / UDP(), packet_size)


def unicast_frames(source: Address, destination: Address) -> dict[str, bytes]:
    """Returns one frame of every kind of unicast without a VLAN tag, by its name."""
    link = Ether(src=source.mac, dst=destination.mac)
    ip = _ip(source, destination)
    if isinstance(destination, RoutedAddress6):
        return {
            "IPv6, UDP": ipv4(source, destination),
            "IPv6, UDP, odd length": ipv4(source, destination, 111),
            "IPv6, TCP SYN": _fill(link / ip / TCP(flags="S"), 128),
            "IPv6, ICMP echo": _fill(link / ip / ICMPv6EchoRequest(), 128),
        }
    packets = {
        "IPv4, UDP": ipv4(source, destination),
        "IPv4, UDP, odd length": ipv4(source, destination, 111),
        "IPv4, TCP SYN": _fill(link / ip / TCP(flags="S"), 128),
        "IPv4, ICMP echo": _fill(link / ip / ICMP(), 128),
        "IPv4, fragment": _fill(link / _ip(source, destination, frag=100, flags="MF", proto=17), 256),
    }
    # A router checks the header.
    return packets if isinstance(destination, RoutedAddress) else packets | _frames_of_every_kind(source, destination)


def _frames_of_every_kind(source: Address, destination: Address) -> dict[str, bytes]:
    """Returns frames that are not IPv4 packets, or faulty ones, by their names."""
    link = Ether(src=source.mac, dst=destination.mac)
    return {
        "IPv4, wrong checksum": _fill(link / _ip(source, destination, chksum=1) / UDP(chksum=1), 100),
        "IPv6, UDP": ipv6(source, destination),
        "IPv6, UDP, long": ipv6(source, destination, 1518),
        "EtherType 0x88b5": ethernet(source.mac, destination.mac),
    }


def tagged_frames(source: Address, destination: Address) -> dict[str, bytes]:
    """Returns one frame of every kind with a VLAN tag, by its name."""
    priority = Ether(src=source.mac, dst=destination.mac) / Dot1Q(vlan=0, prio=5)
    least = least_bytes(destination) + 4
    frames = {f"VLAN {vlan}, IP": ipv4(source, destination, least, vlan=vlan) for vlan in VLANS if vlan}
    if not isinstance(destination, RoutedAddress):
        frames["VLAN 100, IPv6"] = ipv6(source, destination, 88, vlan=100)
    frames["VLAN 100, 1518 bytes and the tag"] = ipv4(source, destination, 1522, vlan=100)
    frames["priority 5 without VLAN"] = _fill(priority / _ip(source, destination) / UDP(), 200)
    return frames


def flow_frames(source: Address, destination: Address, sizes: Sequence[int], count: int) -> list[bytes]:
    """Returns the frames of an IPv4 flow. ``sizes``: packet sizes in bytes, used in turn."""
    link = Ether(src=source.mac, dst=destination.mac)
    models = [_fill(link / _ip(source, destination) / UDP(chksum=0), size) for size in sizes]
    headers = len(link / _ip(source, destination) / UDP())
    heads = [model[:headers] + next(_numbers).to_bytes(4) for model in models]
    return [heads[n % len(sizes)] + n.to_bytes(4) + models[n % len(sizes)][headers + 8 :] for n in range(count)]


def _link(source: Address, destination: Address, vlan: int | None) -> Packet:
    """Returns the Ethernet header, with a VLAN tag if ``vlan`` is not None."""
    link = Ether(src=source.mac, dst=destination.mac)
    return link if vlan is None else link / Dot1Q(vlan=vlan)


def _as_sent(frame: bytes, hops: int) -> bytes:
    """Returns an IP packet with TTL and checksum as before ``hops`` hops."""
    packet = Ether(frame)
    if packet.type == _TYPE_IPV6:
        return frame[:_HOP_LIMIT_AT] + bytes([frame[_HOP_LIMIT_AT] + hops & 0xFF]) + frame[_HOP_LIMIT_AT + 1 :]
    if IP not in packet:
        return frame
    before = packet[IP].copy()
    before.ttl += hops
    before.chksum = None
    header = bytes(before)[: packet[IP].ihl * 4]
    return frame[:_LINK_BYTES] + header + frame[_LINK_BYTES + len(header) :]


class DeliveryChecker:
    """Sends frames through a switch and checks where they arrive.

    Attributes:
        addresses: the addresses of all endpoints, by index.
        path: the path of the frames, which knows the peers.
        echoes: whether a broadcast or multicast frame may come back to its sender.
        hops: by how much the switch lowers the TTL; None if it forwards frames.
        ip_version: IP version of the packets that it forwards.
        floods: whether every port gets every frame.
    """

    def __init__(
        self,
        exchange: Exchange,
        *,
        echoes: bool = False,
        hops: int | None = None,
        ip_version: int | None = 4,
        floods: bool = False,
    ) -> None:
        self._exchange = exchange
        self.echoes, self.floods = echoes, floods
        self.hops, self.ip_version = hops, ip_version
        self.addresses = exchange.addresses
        if hops is not None:
            kind = RoutedAddress6 if ip_version == 6 else RoutedAddress
            own = [own_address(ip_version or 4, of.ip) for of in exchange.addresses]
            self.addresses = [kind(ip, of.mac, of.prefix) for ip, of in zip(own, exchange.addresses, strict=True)]
        self.path = FramePath.over(self.addresses)

    @property
    def indexes(self) -> range:
        """The indexes of all endpoints."""
        return self.path.endpoints

    def reached(self, sender: int, reach: Reach) -> set[int]:
        """Returns the endpoints that a frame of the sender reaches."""
        others = {"all": set(self.indexes) - {sender}, "peer": {self.path.across(sender)}, "none": set()}
        return others[reach]

    def introduce(self) -> None:
        """Sends a broadcast from each endpoint once, so that the switch learns its address.

        A unicast frame would not do: a switch that caches decisions would remember its flooding for a while.
        """
        if self.hops is None and self._exchange not in _introduced:
            self._introduce({index: [ethernet(self.addresses[index].mac, BROADCAST)] for index in self.indexes})
            _introduced.add(self._exchange)

    def introduce_tagged(self, vlans: Sequence[int]) -> None:
        """Sends broadcasts in these VLANs too, because a switch may learn per VLAN (802.1Q, independent learning)."""
        self._introduce(
            {
                index: [ethernet(self.addresses[index].mac, BROADCAST, 68, vlan=vlan) for vlan in vlans]
                for index in self.indexes
            }
        )

    def _introduce(self, frames: Mapping[int, Sequence[bytes]]) -> None:
        """Sends frames of each endpoint until its peer has them, at most ``_ATTEMPTS`` times."""
        for _ in range(_ATTEMPTS):
            due = {self.path.peer(index): sent for index, sent in frames.items()}
            arrived = self._exchanged(frames, {index: len(sent) for index, sent in due.items()})
            if all(set(arrived[index]) >= set(sent) for index, sent in due.items()):
                return

    def forgotten(self) -> None:
        """Records that the switch may have forgotten the endpoints' addresses."""
        _introduced.discard(self._exchange)

    def deliver(
        self, sent: Mapping[int, Sequence[tuple[bytes, set[int]]]], *, complete: bool = True
    ) -> dict[int, list[bytes]]:
        """Sends frames. Fails unless each arrives at its destinations and nowhere else, once and unaltered.

        Args:
            sent: by sender, frames with the endpoints that they have to reach.
            complete: whether all frames have to arrive. Missing ones are then sent again a few times.

        Returns the frames that arrived by endpoint, without repetitions.
        """
        delivered: dict[int, list[bytes]] = {index: [] for index in self.indexes}
        destinations: dict[bytes, set[int]] = {}
        allowed: dict[bytes, set[int]] = {}
        for sender, frames in sent.items():
            destinations.update(frames)
            allowed.update({frame: self._allowed(sender, frame, to) for frame, to in frames})
        outstanding = {index: [frame for frame, _ in frames] for index, frames in sent.items()}
        for _ in range(_ATTEMPTS):
            expected = Counter(
                index for frames in outstanding.values() for frame in frames for index in destinations[frame]
            )
            arrived = self._exchanged(outstanding, expected)
            self._check(arrived, allowed)
            for index, frames_there in arrived.items():
                delivered[index] += [frame for frame in frames_there if frame not in delivered[index]]
            outstanding = {
                index: [
                    frame for frame in frames if any(frame not in delivered[there] for there in destinations[frame])
                ]
                for index, frames in outstanding.items()
            }
            outstanding = {index: frames for index, frames in outstanding.items() if frames}
            if not outstanding or not complete:
                return delivered
        sender, lost = next(iter(outstanding.items()))
        missing = sorted(there for there in destinations[lost[0]] if lost[0] not in delivered[there])
        raise AssertionError(
            f"{len(lost)} of {len(sent[sender])} frames from endpoint {sender} never arrived at endpoint {missing[0]},"
            f" sent {_ATTEMPTS} times; the first: {describe(lost[0])}"
        )

    def _allowed(self, sender: int, frame: bytes, to: set[int]) -> set[int]:
        """Returns the endpoints at which a frame to ``to`` may arrive."""
        if not frame[0] & 1:
            return self.reached(sender, "all") if self.floods else to
        return to | {sender} if self.echoes else to

    @staticmethod
    def _check(arrived: Mapping[int, Sequence[bytes]], destinations: Mapping[bytes, set[int]]) -> None:
        """Fails if a frame arrived elsewhere than at its destinations, altered, or more than once."""
        for index, frames in arrived.items():
            for frame, count in Counter(frames).items():
                event = f"endpoint {index} got a frame"
                assert frame in destinations, f"{event} that no endpoint sent (altered?): {describe(frame)}"
                assert index in destinations[frame], (
                    f"{event} that was for {sorted(destinations[frame])}: {describe(frame)}"
                )
                assert count == 1, f"{event} {count} times: {describe(frame)}"

    def deliver_in_order(self, sent: Mapping[int, Sequence[bytes]]) -> dict[int, list[bytes]]:
        """Sends flows of frames to the senders' peers. Fails if a frame arrives out of order or elsewhere.

        Returns the frames that arrived by endpoint.
        """
        destinations = {
            frame: self._allowed(index, frame, {self.path.peer(index)})
            for index, frames in sent.items()
            for frame in frames
        }
        arrived = self._exchanged(sent, {self.path.peer(index): len(frames) for index, frames in sent.items()})
        self._check(arrived, destinations)
        for index, frames in arrived.items():
            ranks = {frame: rank for rank, frame in enumerate(sent.get(self.path.peer(index), ()))}
            order = [ranks[frame] for frame in frames if frame in ranks]
            late = next((n for n in range(1, len(order)) if order[n] < order[n - 1]), None)
            assert late is None, f"endpoint {index} got frame {order[late]} of a flow after frame {order[late - 1]}"
        return arrived

    def received(self, sender: int, frames: Sequence[bytes], expected: int) -> dict[int, list[bytes]]:
        """Sends frames of one endpoint and returns all frames that arrive, by endpoint.

        ``expected``: the endpoint at which they are awaited.
        """
        return self._exchanged({sender: frames}, {expected: len(frames)})

    def _exchanged(self, sent: Mapping[int, Sequence[bytes]], expected: Mapping[int, int]) -> dict[int, list[bytes]]:
        """Sends frames and returns those that arrive, without the changes that the switch declares."""
        arrived = self._exchange.exchange(sent, expected)
        if not self.hops:
            return arrived
        return {
            index: [_as_sent(frame, self.hops) for frame in frames if not _is_report(frame)]
            for index, frames in arrived.items()
        }
