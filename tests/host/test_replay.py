# SPDX-License-Identifier: BSD-3-Clause
"""``replay`` and ``capture`` with real frames: over a veth pair by raw sockets, and by DPDK over shared memory."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import RawPcapReader, wrpcap

from pytest_icbench.driver.workload.executable import workload_path
from tests.host.workload_tools import Outcome, veth_pair, wait_until

pytestmark = pytest.mark.own_host

A, B, BROADCAST = "02:00:00:77:00:0a", "02:00:00:77:00:0b", "ff:ff:ff:ff:ff:ff"
EAL = ["--no-pci", "--no-huge", "--no-shconf", "--no-telemetry", "-m", "64", "--lcores", "0@0"]


@dataclass(frozen=True)
class Link:
    """How to start a program at each end, and what makes it use the port: options before and behind ``--``."""

    dpdk: bool
    prefixes: tuple[Sequence[str], Sequence[str]]
    ports: tuple[Sequence[str], Sequence[str]]


@pytest.fixture(scope="module")
def veth() -> Iterator[Link]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with veth_pair() as path:
        yield Link(False, (path.a.prefix(), path.b.prefix()), (("-R", "end0"), ("-R", "end0")))


@pytest.fixture
def memif(tmp_path: Path) -> Link:
    if "without DPDK" in subprocess.run([workload_path(), "--version"], capture_output=True, text=True).stdout:
        pytest.skip("the workload was built without DPDK: install libdpdk-dev and run make again")
    device = f"net_memif0,socket={tmp_path}/memif,socket-abstract=no"
    ends = tuple(["--", *EAL, f"--vdev={device},role={role}"] for role in ("client", "server"))
    return Link(True, ((), ()), (ends[0], ends[1]))


@pytest.fixture(params=["veth", "memif"])
def link(request: pytest.FixtureRequest) -> Link:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Link)
    return found


def start(link: Link, end: int, app: str, file: Path, *options: object) -> subprocess.Popen[str]:
    name = f"dpdk-{app}" if link.dpdk else app
    words = [*link.prefixes[end], workload_path(), name, file, "--yield", 1, *options, *link.ports[end]]
    return subprocess.Popen(
        [str(word) for word in words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def ended(process: subprocess.Popen[str]) -> Outcome:
    stdin, process.stdin = process.stdin, None
    try:
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        if stdin:
            stdin.close()
    return Outcome(process.returncode, err, [json.loads(line) for line in out.splitlines()])


def captured(file: Path) -> list[bytes]:
    return [data for data, _ in RawPcapReader(str(file))]


def recorded(file: Path) -> int:
    """Frames in the file of a running capture."""
    return len(captured(file)) if file.is_file() and file.stat().st_size >= 24 else 0


def write(file: Path, frames: Sequence[Packet]) -> list[bytes]:
    wrpcap(str(file), frames)
    return [bytes(frame) for frame in frames]


def mixture() -> list[Packet]:
    """Every kind of frame, from the shortest to the longest that an MTU of 1500 carries."""
    plain = [
        Ether(src=A, dst=B) / IP() / UDP() / Raw(bytes(range(n % 256)) * (n // 256 + 1)) for n in range(18, 500, 7)
    ]
    tagged = Ether(src=A, dst=BROADCAST) / Dot1Q(vlan=7) / IPv6() / UDP() / Raw(b"x" * 1452)
    return [
        *plain,
        Ether(src=A, dst=BROADCAST) / ARP(),
        Ether(src=A, dst=B) / IPv6() / UDP() / Raw(b"six" * 400),
        tagged,
        Ether(src=A, dst=B) / Dot1AD(vlan=5) / Dot1Q(vlan=6) / IP() / Raw(b"twice"),
        Ether(src=A, dst=B, type=0x88B5) / Raw(b"own" * 100),
        Ether(src=A, dst=B) / IP() / Raw(b"y" * 1480),
    ]


def test_frames_of_any_kind_arrive_as_they_were(link: Link, tmp_path: Path) -> None:
    file, into = tmp_path / "in.pcap", tmp_path / "out.pcap"
    sent = write(file, mixture())
    capture = start(link, 1, "capture", into, "--count", len(sent))
    wait_until(into.is_file)
    if link.dpdk:
        wait_until((tmp_path / "memif").is_socket)
    began = time.time()
    # It stays until the other end has gone: memif takes its rings away under who still polls them.
    sender = start(link, 0, "replay", file, "-r", "5k", "-b", 4, "--step", "--supervised")
    say(sender, "go")
    receiver = ended(capture)
    say(sender, "stop")
    replay = ended(sender)
    assert (replay.code, replay.stderr.count("failed"), receiver.code) == (0, 0, 0), replay.stderr + receiver.stderr
    assert captured(into) == sent
    times = [meta.sec + meta.usec / 1e9 for _, meta in RawPcapReader(str(into))]
    assert times == sorted(times)
    assert began - 1 < times[0] <= times[-1] < time.time() + 1
    size = sum(len(frame) + 4 for frame in sent)
    assert replay.summary["reason"] == "stop"
    assert (replay.summary["sent"], replay.summary["bytes"], replay.summary["refused"]) == (len(sent), size, 0)
    assert receiver.summary["reason"] == "count"
    assert (receiver.summary["received"], receiver.summary["bytes"]) == (len(sent), size)
    assert (receiver.summary["cut"], receiver.summary["missed"]) == (0, 0)
    assert receiver.summary["file_bytes"] == into.stat().st_size


def test_loops_and_counts(veth: Link, tmp_path: Path) -> None:
    file, into = tmp_path / "in.pcap", tmp_path / "out.pcap"
    sent = write(file, mixture()[:7])
    capture = start(veth, 1, "capture", into)
    wait_until(into.is_file)
    assert json.loads(capture.stdout.readline())["app"] == "capture"  # type: ignore[union-attr]
    assert json.loads(capture.stdout.readline())["announced"] is False  # type: ignore[union-attr]
    thrice = ended(start(veth, 0, "replay", file, "--loop", 3, "-r", "2k", "-b", 5))
    assert (thrice.summary["sent"], thrice.summary["passes"], thrice.summary["reason"]) == (21, 3, "end")
    counted = ended(start(veth, 0, "replay", file, "--loop", 0, "--count", 10, "-r", "2k"))
    assert (counted.summary["sent"], counted.summary["passes"], counted.summary["reason"]) == (10, 1, "count")
    endless = ended(start(veth, 0, "replay", file, "--loop", 0, "-r", 1000, "-b", 1, "--duration", 0.3))
    assert endless.summary["reason"] == "duration"
    assert 250 < endless.summary["sent"] <= 301
    wait_until(lambda: recorded(into) == 31 + endless.summary["sent"])
    capture.send_signal(signal.SIGTERM)
    assert ended(capture).summary["reason"] == "signal"
    found = captured(into)
    assert found[:31] == sent * 4 + sent[:3]
    assert found[31:] == (sent * 50)[: len(found) - 31]


def test_own_times(veth: Link, tmp_path: Path) -> None:
    """Frames leave at the distances that the file has, never sooner; a time that goes back means at once."""
    file, into = tmp_path / "in.pcap", tmp_path / "out.pcap"
    frames = mixture()[:4]
    for frame, at in zip(frames, (10.0, 10.1, 10.05, 10.4), strict=True):
        frame.time = at
    sent = write(file, frames)
    capture = start(veth, 1, "capture", into, "--count", 4)
    wait_until(into.is_file)
    for _ in range(2):
        capture.stdout.readline()  # type: ignore[union-attr]
    began = time.monotonic()
    replay = ended(start(veth, 0, "replay", file, "--timing"))
    assert time.monotonic() - began >= 0.4
    assert replay.summary["sent"] == 4
    ended(capture)
    assert captured(into) == sent
    frames[0].time = 0
    frames[1].time = 1_700_000_000
    write(file, frames[:2])
    failed(ended(start(veth, 0, "replay", file, "--timing")), 3, "frame 2 is 1700000000 s later", "editcap -t")


def test_step_by_step_and_capturing_meanwhile(link: Link, tmp_path: Path) -> None:
    """Both ends send and capture; what is sent is read anew each time."""
    files = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
    taken = [tmp_path / "a.out", tmp_path / "b.out"]
    ends: dict[int, subprocess.Popen[str]] = {}
    for end in (1, 0):
        ends[end] = start(link, end, "replay", files[end], "--capture", taken[end], "--step", "--supervised")
        if link.dpdk:
            wait_until((tmp_path / "memif").is_socket)
    for process in ends.values():
        kinds = [json.loads(process.stdout.readline())["type"] for _ in range(2)]  # type: ignore[union-attr]
        assert kinds == ["hello", "ready"]
    expected: list[list[bytes]] = [[], []]
    for step, (end, some) in enumerate([(0, mixture()[:3]), (1, mixture()[3:40]), (0, mixture()[40:])]):
        expected[1 - end] += write(files[end], some)
        say(ends[end], "go")
        said = json.loads(ends[end].stdout.readline())  # type: ignore[union-attr]
        assert (said["type"], said["step"], said["frames"]) == ("sent", step // 2 + 1, len(some))
        wait_until(lambda: [recorded(file) for file in taken] == [len(each) for each in expected])
    assert [captured(file) for file in taken] == expected
    for process in ends.values():
        say(process, "stop")
    outcomes = [ended(process) for process in ends.values()]
    assert [(each.code, each.summary["reason"]) for each in outcomes] == [(0, "stop")] * 2


def test_who_is_ready_has_room_for_frames_before_it_looks_for_any(memif: Link, tmp_path: Path) -> None:
    """Neither end takes frames: a memif that gave its peer buffers only when it does would refuse all of them."""
    file = tmp_path / "in.pcap"
    sent = write(file, mixture())
    ends = {}
    for end in (1, 0):
        ends[end] = start(memif, end, "replay", file, "-r", "5k", "--step", "--supervised")
        wait_until((tmp_path / "memif").is_socket)
    for process in ends.values():
        kinds = [json.loads(process.stdout.readline())["type"] for _ in range(2)]  # type: ignore[union-attr]
        assert kinds == ["hello", "ready"]
    for process in ends.values():
        say(process, "go")
        said = json.loads(process.stdout.readline())  # type: ignore[union-attr]
        assert (said["type"], said["sent"], said["refused"]) == ("sent", len(sent), 0)
    for process in ends.values():
        say(process, "stop")
    assert [ended(process).code for process in ends.values()] == [0, 0]


def test_a_kill_leaves_whole_records(veth: Link, tmp_path: Path) -> None:
    file, into = tmp_path / "in.pcap", tmp_path / "out.pcap"
    sent = write(file, mixture())
    capture = start(veth, 1, "capture", into)
    wait_until(into.is_file)
    replay = start(veth, 0, "replay", file, "--loop", 0, "-r", "20k")
    wait_until(lambda: into.stat().st_size > 200_000)
    capture.kill()
    capture.communicate(timeout=20)
    replay.send_signal(signal.SIGINT)
    assert ended(replay).summary["reason"] == "signal"
    found = captured(into)
    assert len(found) > 100
    assert set(found) <= set(sent)
    # Nothing stands behind the last of them.
    assert into.stat().st_size == 24 + sum(16 + len(frame) for frame in found)


def failed(outcome: Outcome, code: int, *parts: str) -> None:
    assert outcome.code == code, outcome.stderr
    assert outcome.stderr.count("\n") == 1, outcome.stderr
    for part in parts:
        assert part in outcome.stderr


def test_a_frame_that_the_link_cannot_carry_is_refused(veth: Link, tmp_path: Path) -> None:
    file = tmp_path / "in.pcap"
    write(file, [*mixture(), Ether(src=A, dst=B) / IP() / Raw(b"y" * 1481)])
    count = len(mixture()) + 1
    outcome = ended(start(veth, 0, "replay", file))
    failed(outcome, 3, "packet size 1519 needs an MTU of 1501", f"the largest frame of {file} is number {count}")


def test_a_frame_too_large_for_a_step_is_refused(veth: Link, tmp_path: Path) -> None:
    file = tmp_path / "in.pcap"
    write(file, [Ether(src=A, dst=B) / Raw(bytes(200))])
    process = start(veth, 0, "replay", file, "--step", "--supervised", "-p", 100)
    say(process, "go")
    outcome = ended(process)
    failed(outcome, 3, f"{file}: frame 1 has 218 bytes with FCS", "--packet-size 100")
    assert outcome.summary["reason"] == "error"


def test_bad_files_are_refused_before_the_port_is_opened(veth: Link, tmp_path: Path) -> None:
    for content, part in ((b"", "has 0 bytes"), (struct.pack("<I", 0x0A0D0D0A) * 8, "pcapng")):
        file = tmp_path / "bad.pcap"
        file.write_bytes(content)
        outcome = ended(start(veth, 0, "replay", file, "-R", "gone0"))
        failed(outcome, 3, f"replay: {file}: ", part)
        assert outcome.lines == []
    failed(ended(start(veth, 0, "capture", tmp_path / "nowhere" / "x.pcap")), 3, "nowhere/x.pcap: No such file")
    failed(ended(start(veth, 0, "capture", Path("/dev/full"))), 3, "/dev/full: No space left")
