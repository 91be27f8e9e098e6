# SPDX-License-Identifier: BSD-3-Clause
"""Frames that prove a function: UDP over IPv4, for a router over IPv6 too, changed as the function has to. Pure.

The tests compare them with Scapy, which the package itself does not import: its licence is GPL.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable

from pytest_icbench.driver.function.protocol import Ends, Probe
from pytest_icbench.model.endpoint import Address

_ETHERNET, _IPV4, _IPV6, _UDP = 14, 20, 40, 8
_TYPE_IPV6 = b"\x86\xdd"
_NUMBER_AT = _ETHERNET + 4
_TTL_AT, _SUM_AT, _SOURCE_AT, _TARGET_AT = _ETHERNET + 8, _ETHERNET + 10, _ETHERNET + 12, _ETHERNET + 16
_HOPS_AT = _ETHERNET + 7
_PROTOCOL_UDP = 17
#: Payload that fills the smallest Ethernet frame and marks a frame as one of a proof.
_PAYLOAD = b"icbench function!!"
TTL = 64
#: Frames of a proof that match no rule, and the UDP port of the first one.
FREE_FRAMES, FREE_PORT = 20, 1024


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _sum(data: bytes) -> int:
    """Returns the Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)


def frame(source: Address, target: Address, port: int, *, ttl: int = TTL, text: str = "") -> bytes:
    """Returns a frame of 64 bytes, without its FCS, followed by a text.

    Args:
        source, target: MAC and IP addresses of both ends, as the sender sees them.
        port: UDP source and destination port.
        text: an even number of bytes.
    """
    data = _PAYLOAD + text.encode()
    payload = struct.pack("!HHHH", port, port, _UDP + len(data), 0) + data
    sender, receiver = ipaddress.ip_address(source.ip), ipaddress.ip_address(target.ip)
    kind, header = _TYPE_IPV6, struct.pack("!IHBB", 6 << 28, len(payload), _PROTOCOL_UDP, ttl)
    if sender.version == 4:
        kind = b"\x08\x00"
        header = struct.pack("!BBHHHBBH", *(0x45, 0, _IPV4 + len(payload), port, 0x4000, ttl, _PROTOCOL_UDP, 0))
    return _summed(_mac(target.mac) + _mac(source.mac) + kind + header + sender.packed + receiver.packed + payload)


def _is_ipv6(data: bytes) -> bool:
    return data[12:14] == _TYPE_IPV6


def _summed(data: bytes) -> bytes:
    """Returns a frame with correct checksums of IP and UDP."""
    frame_bytes = bytearray(data)
    start, addresses = _ETHERNET + _IPV6, frame_bytes[_ETHERNET + 8 : _ETHERNET + _IPV6]
    if not _is_ipv6(data):
        start, addresses = _ETHERNET + _IPV4, frame_bytes[_SOURCE_AT : _SOURCE_AT + 8]
        frame_bytes[_SUM_AT : _SUM_AT + 2] = b"\0\0"
        frame_bytes[_SUM_AT : _SUM_AT + 2] = struct.pack("!H", _sum(bytes(frame_bytes[_ETHERNET:start])))
    frame_bytes[start + 6 : start + 8] = b"\0\0"
    datagram = bytes(frame_bytes[start:])
    pseudo = bytes(addresses) + struct.pack("!HH", _PROTOCOL_UDP, len(datagram))
    frame_bytes[start + 6 : start + 8] = struct.pack("!H", _sum(pseudo + datagram) or 0xFFFF)
    return bytes(frame_bytes)


def swap_macs(data: bytes) -> bytes:
    """Returns a frame with its MAC addresses swapped."""
    return data[6:12] + data[:6] + data[12:]


def swap_ends(data: bytes) -> bytes:
    """Returns a frame with its MAC and IP addresses and its UDP ports swapped; its checksums stay correct."""
    udp = _ETHERNET + _IPV4
    addresses = data[_TARGET_AT:udp] + data[_SOURCE_AT:_TARGET_AT]
    ports = data[udp + 2 : udp + 4] + data[udp : udp + 2]
    return swap_macs(data)[:_SOURCE_AT] + addresses + ports + data[udp + 4 :]


def route_frame(
    data: bytes, source: str, target: str, *, source_ip: str | None = None, target_ip: str | None = None, hops: int = 1
) -> bytes:
    """Returns a frame as a router sends it: new MAC addresses, a lower TTL, correct checksums.

    Args:
        source, target: new MAC addresses.
        source_ip, target_ip: new IP addresses, where they are translated.
        hops: routers in a row; each lowers the TTL by one.
    """
    frame_bytes = bytearray(_mac(target) + _mac(source) + data[12:])
    frame_bytes[_HOPS_AT if _is_ipv6(data) else _TTL_AT] -= hops
    return translate(bytes(frame_bytes), source_ip=source_ip, target_ip=target_ip)


def translate(data: bytes, *, source_ip: str | None = None, target_ip: str | None = None) -> bytes:
    """Returns a frame with other IP addresses and correct checksums."""
    frame_bytes = bytearray(data)
    for at, ip in ((_SOURCE_AT, source_ip), (_TARGET_AT, target_ip)):
        if ip is not None:
            frame_bytes[at : at + 4] = ipaddress.IPv4Address(ip).packed
    return _summed(bytes(frame_bytes))


def is_proof(data: bytes) -> bool:
    """Whether a frame belongs to a proof, changed or not. A kernel's answer to such a frame does not."""
    return _PAYLOAD in data and _carries_udp(data)


def frame_number(data: bytes) -> int:
    """Returns the number of a frame within its proof: the IPv4 identification, which no function changes, or IPv6 port.

    It is the frame's UDP port unless ``numbered`` has set another one.
    """
    return int(struct.unpack_from("!H", data, _ETHERNET + _IPV6 if _is_ipv6(data) else _NUMBER_AT)[0])


def set_number(data: bytes, identification: int) -> bytes:
    """Returns a frame with another number and the checksum to it."""
    return _summed(data[:_NUMBER_AT] + struct.pack("!H", identification) + data[_NUMBER_AT + 2 :])


def describe(data: bytes) -> str:
    """Returns addresses, UDP ports and TTL of a frame as text; the first bytes of any other frame."""
    version6 = _is_ipv6(data)
    start, size, at = (_ETHERNET + _IPV6, 16, _ETHERNET + 8) if version6 else (_ETHERNET + _IPV4, 4, _SOURCE_AT)
    if len(data) < start + _UDP or not (version6 or data[12:14] == b"\x08\x00") or not _carries_udp(data):
        return f"{len(data)} bytes {data[:20].hex()}"
    source, target = (ipaddress.ip_address(data[place : place + size]) for place in (at, at + size))
    ports = struct.unpack_from("!HH", data, start)
    macs = f"{data[6:12].hex(':')} > {data[:6].hex(':')}"
    right = "" if _summed(data) == data else ", wrong checksum"
    ttl = data[_HOPS_AT if version6 else _TTL_AT]
    return f"{source}:{ports[0]} > {target}:{ports[1]}, {macs}, TTL {ttl}{right}"


def _carries_udp(data: bytes) -> bool:
    at = _ETHERNET + (6 if _is_ipv6(data) else 9)
    return data[at : at + 1] == bytes([_PROTOCOL_UDP])


def pass_both_ways(ends: Ends, change: Callable[[bytes], bytes], says: str) -> tuple[list[Probe], list[Probe]]:
    """Returns the proof that frames pass in both directions, changed by ``change``.

    ``says``: what happens to a frame, as the end of the sentence "has to pass".
    """

    def probes(forth: bool) -> list[Probe]:
        source, target = ends.direction(forth)
        sent = [frame(source, target, FREE_PORT + number) for number in range(FREE_FRAMES)]
        return [Probe(forth, data, change(data), f"has to pass {says}") for data in sent]

    return probes(True), probes(False)
