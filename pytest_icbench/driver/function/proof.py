# SPDX-License-Identifier: BSD-3-Clause
"""Frames of a function's proof: UDP over IPv4, made and changed as a function should. Pure.

Scapy, to which tests compare them, is not for the core: its licence is GPL.
"""

from __future__ import annotations

import ipaddress
import struct

from pytest_icbench.model.endpoint import Address

_ETHERNET, _IPV4, _UDP = 14, 20, 8
_NUMBER_AT = _ETHERNET + 4
_TTL_AT, _SUM_AT, _SOURCE_AT, _TARGET_AT = _ETHERNET + 8, _ETHERNET + 10, _ETHERNET + 12, _ETHERNET + 16
_PROTOCOL_UDP = 17
#: Bytes behind UDP, which fill the least Ethernet frame, and their text.
_PAYLOAD = b"icbench function!!"
TTL = 64


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _sum(data: bytes) -> int:
    """Returns the Internet checksum of bytes of an even number (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)


def frame(source: Address, target: Address, port: int, *, ttl: int = TTL, text: str = "") -> bytes:
    """Returns a frame of 64 bytes and a text, without its FCS.

    Args:
        source, target: MAC and IP addresses of both ends, as the sender sees them.
        port: UDP port that it is from and for.
        text: of an even number of bytes, at its end.
    """
    data = _PAYLOAD + text.encode()
    payload = struct.pack("!HHHH", port, port, _UDP + len(data), 0) + data
    header = struct.pack(
        "!BBHHHBBH4s4s",
        *(0x45, 0, _IPV4 + len(payload), port, 0x4000, ttl, _PROTOCOL_UDP, 0),
        ipaddress.IPv4Address(source.ip).packed,
        ipaddress.IPv4Address(target.ip).packed,
    )
    return _summed(_mac(target.mac) + _mac(source.mac) + b"\x08\x00" + header + payload)


def _summed(data: bytes) -> bytes:
    """Returns a frame with the right checksums of IPv4 and UDP."""
    frame_bytes = bytearray(data)
    frame_bytes[_SUM_AT : _SUM_AT + 2] = b"\0\0"
    frame_bytes[_SUM_AT : _SUM_AT + 2] = struct.pack("!H", _sum(bytes(frame_bytes[_ETHERNET : _ETHERNET + _IPV4])))
    start = _ETHERNET + _IPV4
    frame_bytes[start + 6 : start + 8] = b"\0\0"
    datagram = bytes(frame_bytes[start:])
    pseudo = bytes(frame_bytes[_SOURCE_AT : _SOURCE_AT + 8]) + struct.pack("!HH", _PROTOCOL_UDP, len(datagram))
    frame_bytes[start + 6 : start + 8] = struct.pack("!H", _sum(pseudo + datagram) or 0xFFFF)
    return bytes(frame_bytes)


def swapped(data: bytes) -> bytes:
    """Returns a frame with its MAC addresses swapped."""
    return data[6:12] + data[:6] + data[12:]


def turned(data: bytes) -> bytes:
    """Returns a frame with its MAC and IP addresses and its UDP ports swapped; its checksums stay right."""
    ports = _ETHERNET + _IPV4
    ends = data[_TARGET_AT:ports] + data[_SOURCE_AT:_TARGET_AT]
    return swapped(data)[:_SOURCE_AT] + ends + data[ports + 2 : ports + 4] + data[ports : ports + 2] + data[ports + 4 :]


def routed(
    data: bytes, source: str, target: str, *, source_ip: str | None = None, target_ip: str | None = None, hops: int = 1
) -> bytes:
    """Returns a frame as a router gives it out: MAC addresses rewritten, TTL less one, checksums right.

    Args:
        source, target: its new MAC addresses.
        source_ip, target_ip: its new IP addresses, where they are translated.
        hops: routers in a row, each of which lowers the TTL by one.
    """
    frame_bytes = bytearray(_mac(target) + _mac(source) + data[12:])
    frame_bytes[_TTL_AT] -= hops
    return translated(bytes(frame_bytes), source_ip=source_ip, target_ip=target_ip)


def translated(data: bytes, *, source_ip: str | None = None, target_ip: str | None = None) -> bytes:
    """Returns a frame with other IP addresses, and the right checksums for them."""
    frame_bytes = bytearray(data)
    for at, ip in ((_SOURCE_AT, source_ip), (_TARGET_AT, target_ip)):
        if ip is not None:
            frame_bytes[at : at + 4] = ipaddress.IPv4Address(ip).packed
    return _summed(bytes(frame_bytes))


def is_proof(data: bytes) -> bool:
    """Whether a frame is one of a proof, changed or not: a kernel's answer to it is none."""
    return data[_ETHERNET + 9 : _ETHERNET + 10] == bytes([_PROTOCOL_UDP]) and _PAYLOAD in data


def number(data: bytes) -> int:
    """Returns what tells a frame of a proof from the others, whatever a function has changed: its IPv4 identification.

    It is the UDP port that the frame is for, or that of ``numbered``.
    """
    return int(struct.unpack_from("!H", data, _NUMBER_AT)[0])


def numbered(data: bytes, identification: int) -> bytes:
    """Returns a frame with another number, which its checksum has, too."""
    return _summed(data[:_NUMBER_AT] + struct.pack("!H", identification) + data[_NUMBER_AT + 2 :])


def describe(data: bytes) -> str:
    """Returns a frame in words: addresses, UDP ports and TTL, or its first bytes if it is no such frame."""
    if len(data) < _ETHERNET + _IPV4 + _UDP or data[12:14] != b"\x08\x00" or data[_ETHERNET + 9] != _PROTOCOL_UDP:
        return f"{len(data)} bytes {data[:20].hex()}"
    source, target = (ipaddress.IPv4Address(data[at : at + 4]) for at in (_SOURCE_AT, _TARGET_AT))
    ports = struct.unpack_from("!HH", data, _ETHERNET + _IPV4)
    macs = f"{data[6:12].hex(':')} > {data[:6].hex(':')}"
    right = "" if _summed(data) == data else ", wrong checksum"
    return f"{source}:{ports[0]} > {target}:{ports[1]}, {macs}, TTL {data[_TTL_AT]}{right}"
