# SPDX-License-Identifier: BSD-3-Clause
"""Frames made and read by the workload's code, against an independent implementation: Scapy builds what is expected."""

from __future__ import annotations

import random
import subprocess
import sys

SKIPPED = 77  # meson's exit code for a test that cannot run here

try:
    from scapy.layers.inet import ICMP, IP, UDP
    from scapy.layers.l2 import ARP, Dot1Q, Ether
    from scapy.packet import Packet, Raw
except ImportError:
    print("Scapy is missing: pip install scapy")
    sys.exit(SKIPPED)

FRAMES = sys.argv[1]
MASK = (1 << 64) - 1
LOCAL = ("10.1.2.3", "02:00:00:00:00:0a")
REMOTE = ("192.168.255.254", "fe:dc:ba:98:76:54")


def run(*arguments: object) -> list[str]:
    command = [FRAMES, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout.split("\n")


def padding(sequence: int, length: int) -> bytes:
    words = (
        ((sequence + 1) * 0x9E3779B97F4A7C15 + word * 0xD1342543DE82EF95 & MASK).to_bytes(8, "little")
        for word in range(length // 8 + 1)
    )
    return b"".join(words)[:length]


def stamp(stream: int, window: int, sequence: int, time: int) -> bytes:
    return stream.to_bytes(2) + window.to_bytes(2) + sequence.to_bytes(6) + time.to_bytes(8)


def expected(size: int, payload: bytes, port: int, sealed: bool) -> Packet:
    udp = UDP(sport=port, dport=port) if sealed else UDP(sport=port, dport=port, chksum=0)
    ip = IP(src=LOCAL[0], dst=REMOTE[0], id=0, ttl=64, flags=0)
    packet = Ether(src=LOCAL[1], dst=REMOTE[1]) / ip / udp / Raw(payload)
    assert len(packet) == size - 4
    return packet


def made(size: int, label: tuple[int, int, int, int], port: int, sealed: bool) -> bytes:
    return bytes.fromhex(run("make", size, *label, port, int(sealed), *LOCAL, *REMOTE)[0])


def check_made(size: int, label: tuple[int, int, int, int], port: int) -> None:
    payload = stamp(*label) + padding(label[2], size - 64)
    for sealed in (False, True):
        frame, reference = made(size, label, port, sealed), bytes(expected(size, payload, port, sealed))
        assert frame == reference, f"{size} B {label} sealed={sealed}\n{frame.hex()}\n{reference.hex()}"


def check_parsed(size: int, label: tuple[int, int, int, int], port: int) -> None:
    packet = expected(size, stamp(*label) + padding(label[2], size - 64), port, sealed=True)
    facts, back = run("parse", port, bytes(packet).hex())[:2]
    assert facts.split() == [str(size - 46), *map(str, label), "1", "1"], facts
    packet[Ether].src, packet[Ether].dst = packet[Ether].dst, packet[Ether].src
    packet[IP].src, packet[IP].dst = packet[IP].dst, packet[IP].src
    # Checksums are built anew by Scapy: those of the reflected frame must still be right.
    assert back == bytes(packet).hex(), f"reflected {size} B"


def check_damage(size: int, port: int) -> None:
    """A changed byte is seen: by the lengths, by a checksum, or by the padding."""
    label = (1, 2, 3, 4)
    frame = bytearray(bytes(expected(size, stamp(*label) + padding(3, size - 64), port, sealed=True)))
    for offset in range(14, len(frame)):
        damaged = bytearray(frame)
        damaged[offset] ^= 1 + offset % 255
        facts = run("parse", port, damaged.hex())[0].split()
        assert facts == ["foreign"] or facts[5:] != ["1", "1"], f"byte {offset} of {size} changed and nobody noticed"


def foreign(port: int) -> list[Packet]:
    payload = Raw(bytes(40))
    ether, ip = Ether(src=LOCAL[1], dst=REMOTE[1]), IP(src=LOCAL[0], dst=REMOTE[0])
    udp = UDP(sport=port, dport=port)
    return [
        ether / ARP(),
        ether / ip / ICMP() / payload,
        ether / ip / UDP(sport=port, dport=port + 1) / payload,
        ether / IP(src=LOCAL[0], dst=REMOTE[0], flags="MF") / udp / payload,
        ether / IP(src=LOCAL[0], dst=REMOTE[0], frag=3) / udp / payload,
        ether / IP(src=LOCAL[0], dst=REMOTE[0], options=b"\x01\x01\x01\x01") / udp / payload,
        ether / Dot1Q(vlan=5) / ip / udp / payload,
        ether / ip / udp / Raw(bytes(17)),
        ether / ip / UDP(sport=port, dport=port, len=7) / payload,
        ether / ip / UDP(sport=port, dport=port, len=200) / payload,
        ether / IP(src=LOCAL[0], dst=REMOTE[0], len=2000) / udp / payload,
        ether / IP(src=LOCAL[0], dst=REMOTE[0], len=20) / udp / payload,
    ]


def check_foreign(port: int) -> None:
    for packet in foreign(port):
        assert run("parse", port, bytes(packet).hex())[0] == "foreign", packet.summary()
    whole = bytes(expected(64, stamp(1, 1, 1, 1), port, sealed=True))
    for length in range(1, len(whole)):
        assert run("parse", port, whole[:length].hex())[0] == "foreign", f"cut to {length} bytes"


def check_padded() -> None:
    """A link may pad a short frame: what counts is IP's length."""
    whole = bytes(expected(64, stamp(9, 8, 7, 6), 9, sealed=True)) + bytes(12)
    assert run("parse", 9, whole.hex())[0].split() == ["18", "9", "8", "7", "6", "1", "1"]


def main() -> None:
    draw = random.Random(1)
    sizes = [64, 65, 66, 67, 68, 71, 72, 73, 128, 512, 1500, 1518, 9216, *(draw.randint(64, 9216) for _ in range(20))]
    for size in sizes:
        label = (draw.randint(1, 65535), draw.randint(0, 65535), draw.getrandbits(48), draw.getrandbits(64))
        port = draw.randint(1, 65534)
        check_made(size, label, port)
        check_parsed(size, label, port)
    check_made(64, (65535, 65535, (1 << 48) - 1, MASK), 65535)
    check_made(64, (1, 0, 0, 0), 1)
    check_damage(64, 9)
    check_damage(77, 9)
    check_foreign(9)
    check_padded()


main()
