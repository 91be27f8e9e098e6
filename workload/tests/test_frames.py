# SPDX-License-Identifier: BSD-3-Clause
"""Frames made and read by the workload's code, against an independent implementation: Scapy builds what is expected."""

from __future__ import annotations

import random
import subprocess
import sys

SKIPPED = 77  # meson's exit code for a test that cannot run here

try:
    from scapy.layers.inet import ICMP, IP, TCP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import ARP, Dot1Q, Ether
    from scapy.packet import Packet, Raw
except ImportError:
    print("Scapy is missing: pip install scapy")
    sys.exit(SKIPPED)

# One for all: under sanitizers each start takes longer than all that is asked.
HELPER = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
MASK = (1 << 64) - 1
LOCAL = ("10.1.2.3", "02:00:00:00:00:0a")
HEADERS = {"udp4", "tcp4", "udp6", "tcp6", "udp4+vlan7", "tcp4+vlan4094", "udp6+vlan1", "tcp6+vlan100"}
REMOTE = ("192.168.255.254", "fe:dc:ba:98:76:54")


def asked(*words: object) -> list[str]:
    """What the workload's code answers, line by line."""
    assert HELPER.stdin is not None
    assert HELPER.stdout is not None
    print(*words, file=HELPER.stdin, flush=True)
    lines = []
    for line in iter(HELPER.stdout.readline, "\n"):
        assert line, f"the helper ended with {HELPER.wait()}"
        lines.append(line.rstrip("\n"))
    return lines


def run(*words: object) -> list[str]:
    lines = asked(*words)
    assert not lines[0].startswith("error"), f"{words}: {lines[0]}"
    return lines


def padding(sequence: int, length: int) -> bytes:
    words = (
        ((sequence + 1) * 0x9E3779B97F4A7C15 + word * 0xD1342543DE82EF95 & MASK).to_bytes(8, "little")
        for word in range(length // 8 + 1)
    )
    return b"".join(words)[:length]


def stamp(stream: int, window: int, sequence: int, time: int) -> bytes:
    return stream.to_bytes(2) + window.to_bytes(2) + sequence.to_bytes(6) + time.to_bytes(8)


def ipv6(address: str) -> str:
    return f"fd69:6362:656e:6368::{address}"


def headers(header: str, port: int, sealed: bool) -> Packet:
    """The headers of a frame: Ethernet, a tag if one is named, IP, and UDP or TCP."""
    name, _, vlan = header.partition("+vlan")
    ether = Ether(src=LOCAL[1], dst=REMOTE[1])
    if vlan:
        ether /= Dot1Q(vlan=int(vlan))
    if name.endswith("4"):
        ip = IP(src=LOCAL[0], dst=REMOTE[0], id=0, ttl=64, flags=0)
    else:
        ip = IPv6(src=ipv6(LOCAL[0]), dst=ipv6(REMOTE[0]), hlim=64)
    if name.startswith("tcp"):
        last = TCP(sport=port, dport=port, seq=1, ack=1, flags="A", window=65535)
    else:
        last = UDP(sport=port, dport=port)
    if not sealed:
        last.chksum = 0
    return ether / ip / last


def least(header: str) -> int:
    """The least frame with these headers, FCS and stamp."""
    return len(headers(header, 9, sealed=False)) + 18 + 4


def expected(size: int, payload: bytes, port: int, sealed: bool, header: str = "udp4") -> Packet:
    packet = headers(header, port, sealed) / Raw(payload)
    assert len(packet) == size - 4
    return packet


def made(size: int, label: tuple[int, int, int, int], port: int, seal: int, header: str) -> bytes:
    return bytes.fromhex(run("make", header, size, *label, port, seal, *LOCAL, *REMOTE)[0])


def check_made(size: int, label: tuple[int, int, int, int], port: int, header: str = "udp4") -> None:
    padded = size - least(header)
    for seal, filler in ((0, padding(label[2], padded)), (1, padding(label[2], padded)), (2, bytes(padded))):
        reference = bytes(expected(size, stamp(*label) + filler, port, seal > 0, header))
        frame = made(size, label, port, seal, header)
        assert frame == reference, f"{header} {size} B {label} seal={seal}\n{frame.hex()}\n{reference.hex()}"


def check_parsed(size: int, label: tuple[int, int, int, int], port: int, header: str = "udp4") -> None:
    filler = padding(label[2], size - least(header))
    packet = expected(size, stamp(*label) + filler, port, sealed=True, header=header)
    facts, back = run("parse", header, port, bytes(packet).hex())[:2]
    assert facts.split() == [str(18 + len(filler)), *map(str, label), "1", "1"], facts
    packet[Ether].src, packet[Ether].dst = packet[Ether].dst, packet[Ether].src
    ip = packet[IP] if IP in packet else packet[IPv6]
    ip.src, ip.dst = ip.dst, ip.src
    # Checksums are built anew by Scapy: those of the reflected frame must still be right.
    assert back == bytes(packet).hex(), f"reflected {header} {size} B"


#: Bytes of headers that say nothing a receiver asks for, by header: priority of a tag; traffic class, flow label and
#: hop limit of IPv6. Those of IPv4 and all of TCP are under a checksum.
UNSEEN = {"udp4+vlan7": {14}, "udp6": {14, 15, 16, 17, 21}, "tcp6": {14, 15, 16, 17, 21}}


def check_damage(size: int, port: int, header: str = "udp4") -> None:
    """A changed byte is seen: by the lengths, by a checksum, or by the padding."""
    label = (1, 2, 3, 4)
    whole = expected(size, stamp(*label) + padding(3, size - least(header)), port, sealed=True, header=header)
    frame = bytearray(bytes(whole))
    for offset in range(14, len(frame)):
        if offset in UNSEEN.get(header, ()):
            continue
        damaged = bytearray(frame)
        damaged[offset] ^= 1 + offset % 255
        facts = run("parse", header, port, damaged.hex())[0].split()
        assert facts == ["foreign"] or facts[5:] != ["1", "1"], f"{header}: byte {offset} of {size} changed unnoticed"


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
        assert run("parse", "udp4", port, bytes(packet).hex())[0] == "foreign", packet.summary()
    for header in HEADERS:
        whole = bytes(expected(least(header), stamp(1, 1, 1, 1), port, sealed=True, header=header))
        for length in (*range(1, 64, 9), len(whole) - 1):
            assert run("parse", header, port, whole[:length].hex())[0] == "foreign", f"{header} cut to {length} bytes"
        for other in HEADERS - {header}:
            assert run("parse", other, port, whole.hex())[0] == "foreign", f"{header} was taken for {other}"


def check_padded() -> None:
    """A link may pad a short frame: what counts is IP's length."""
    whole = bytes(expected(64, stamp(9, 8, 7, 6), 9, sealed=True)) + bytes(12)
    assert run("parse", "udp4", 9, whole.hex())[0].split() == ["18", "9", "8", "7", "6", "1", "1"]


def check_header(header: str, draw: random.Random) -> None:
    size = least(header)
    assert size == {"udp4": 64, "tcp4": 76, "udp6": 84, "tcp6": 96}[header[:4]] + 4 * ("vlan" in header)
    (refused,) = asked("make", header, size - 1, 1, 1, 1, 1, 9, 0, *LOCAL, *REMOTE)
    assert refused.startswith("error ")
    assert size == 64 or f"send at least {size} bytes" in refused
    for length in (size, size + 1, size + 7, 1518, draw.randint(size, 9216)):
        label = (draw.randint(1, 65535), draw.randint(0, 65535), draw.getrandbits(48), draw.getrandbits(64))
        port = draw.randint(1, 65534)
        check_made(length, label, port, header)
        check_parsed(length, label, port, header)


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
    for header in sorted(HEADERS):
        check_header(header, draw)
    for header in UNSEEN:
        check_damage(least(header) + 5, 9, header)
    check_foreign(9)
    check_padded()
    assert HELPER.stdin is not None
    HELPER.stdin.close()
    assert HELPER.wait(20) == 0


main()
