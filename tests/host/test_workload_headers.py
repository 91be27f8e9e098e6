# SPDX-License-Identifier: BSD-3-Clause
"""Headers other than IPv4 and UDP: what is on the wire, by Scapy, and what arrives and is counted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet
from scapy.utils import rdpcap

from pytest_icbench.driver.workload.executable import workload_path
from tests.host.workload_tools import End, Path2, between, check_lines, run, veth

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.own_host

LEAST = {"tcp4": 76, "udp6": 84, "tcp6": 96, "udp4+vlan100": 68, "tcp4+vlan7": 80, "tcp6+vlan4094": 100}
QUICK = ("tcp4", "udp6", "tcp6+vlan4094")
each_header = pytest.mark.parametrize(
    "header", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in LEAST]
)
FRAMES = 2000


def resets(end: End) -> int:
    """The TCP segments with a reset that the kernel has sent in a namespace."""
    words = [*end.prefix(), "cat", "/proc/net/snmp"]
    text = subprocess.run(words, check=True, capture_output=True, text=True, timeout=10).stdout
    names, values = (line.split() for line in text.splitlines() if line.startswith("Tcp:"))
    return int(values[names.index("OutRsts")])


def techniques(header: str) -> list[list[str]]:
    """The options of raw sockets, and of AF_XDP sockets where they can have the headers."""
    raw = [["-R", "IF"], ["-R", "IF", "-m"]]
    return raw if "vlan" in header else [*raw, ["-X", "IF"]]


@each_header
def test_frames_arrive_whole_and_the_kernel_keeps_silent(veth: Path2, header: str) -> None:
    """Mixed lengths and flows too; no reset comes back, since that would be traffic that nobody asked for."""
    least = LEAST[header]
    mixed = ["--sizes", f"{least},1518,{least + 1}", "--flows", "100"]
    for technique, shape in zip(techniques(header), (["-p", str(least)], ["-c", *mixed], mixed), strict=False):
        before = resets(veth.b)
        common = [*technique, *shape, "--header", header]
        sender, receiver = between(veth, "send", "recv", common, ["-r", "50k", "--count", str(FRAMES)])
        check_lines(sender)
        check_lines(receiver)
        assert receiver.summary["received"] == sender.summary["sent"] == FRAMES, common
        assert (receiver.summary["corrupted"], receiver.summary["foreign"]) == (0, 0)
        assert receiver.summary["bytes"] == sender.summary["sent_bytes"]
        # The end marks that come after the receiver has ended.
        assert resets(veth.b) - before <= 3


@each_header
def test_answers_have_the_headers_of_the_question(veth: Path2, header: str) -> None:
    for technique in techniques(header)[1:]:
        common = [*technique, "-c", "-p", "200", "--flows", "100", "--header", header]
        client, server = between(veth, "client", "server", common, ["-r", "5k", "--count", "500"])
        assert client.summary["received"] == server.summary["reflected"] == 500, (common, client.stderr)
        assert (client.summary["corrupted"], server.summary["corrupted"], client.summary["foreign"]) == (0, 0, 0)


def captured(veth: Path2, file: Path, *options: str) -> list[Packet]:
    """What one run of a sender puts on the wire."""
    words = [*veth.b.prefix(), str(workload_path()), "capture", str(file), "-R", veth.b.interface]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as capture:
        try:
            assert capture.stdout is not None
            assert any('"ready"' in line for line in capture.stdout)
            sent = run("send", veth.a, veth.b, "-R", veth.a.interface, *options)
            assert sent.code == 0, sent.stderr
        finally:
            capture.terminate()
    return list(rdpcap(str(file)))


@pytest.mark.parametrize("header", ["udp4", *LEAST])
def test_scapy_reads_what_is_named(veth: Path2, tmp_path: Path, header: str) -> None:
    """Lengths, addresses, tag and checksums; Scapy makes each frame anew from its fields, and it is the same."""
    sizes = [LEAST.get(header, 64), 333, 1518]
    options = ["--sizes", ",".join(map(str, sizes)), "--count", "9", "--header", header, "--flows", "3"]
    frames = captured(veth, tmp_path / "sent.pcap", *options)[:9]
    name, _, vlan = header.partition("+vlan")
    assert [len(frame) + 4 for frame in frames] == sizes * 3
    for frame in frames:
        assert (frame[Dot1Q].vlan if Dot1Q in frame else 0) == int(vlan or 0)
        ip, last = frame[IP if name.endswith("4") else IPv6], frame[TCP if name.startswith("tcp") else UDP]
        assert ip.dst == (veth.b.ip if name.endswith("4") else f"fd69:6362:656e:6368::{hexed(veth.b.ip)}")
        assert (last.sport, last.dport) == (9, 9)
        anew = Ether(bytes(frame))
        if name != "udp4":
            del anew[type(last)].chksum
        if IP in anew:
            del anew[IP].chksum
        assert bytes(anew) == bytes(frame)
    assert len({str(frame[IP if name.endswith("4") else IPv6].src) for frame in frames}) == 3


def hexed(ip: str) -> str:
    """The last two groups of an IPv6 address that ends with an IPv4 one."""
    a, b, c, d = map(int, ip.split("."))
    return f"{a << 8 | b:x}:{c << 8 | d:x}"
