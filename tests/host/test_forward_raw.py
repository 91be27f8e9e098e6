# SPDX-License-Identifier: BSD-3-Clause
"""The raw forwarder by itself, between two network namespaces: frames, faults, commands, ends; then as a switch."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built
from tests.host.workload_tools import Path2, between, ip, lost, veth_pair

__all__ = ["clean", "session"]  # fixtures

pytestmark = [pytest.mark.own_host, pytest.mark.slow]

if os.geteuid() != 0:
    pytest.skip("network namespaces need root", allow_module_level=True)

FRAMES = 2003
PACED = ["-r", "20k", "-b", "4", "--count", str(FRAMES)]
ETH_P_ALL = 3


@contextmanager
def forwarding(*options: object) -> Iterator[tuple[Path2, subprocess.Popen[str]]]:
    """Two ends whose links lead to a forwarder in a namespace between them."""
    with veth_pair() as left, veth_pair() as right:
        middle = left.b.namespace or ""
        quiet = ["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"]
        subprocess.run(["ip", "netns", "exec", middle, *quiet], check=True, timeout=10)
        ip("-n", right.a.namespace or "", "link", "set", "end0", "netns", middle, "name", "end1")
        for name in ("end0", "end1"):
            ip("-n", middle, "addr", "flush", "dev", name)
            ip("-n", middle, "link", "set", name, "up", "arp", "off")
        for end, other in ((left.a, right.b), (right.b, left.a)):
            ip("-n", end.namespace or "", "neigh", "replace", other.ip, "lladdr", other.mac, "dev", "end0")
        with subprocess.Popen(
            ["ip", "netns", "exec", middle, str(workload_path()), "forward", "--supervised", "-R", "end0", "-Rend1"]
            + [str(option) for option in options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert said(process)["type"] == "hello"
                assert said(process)["type"] == "ready"
                yield Path2(left.a, right.b), process
            finally:
                if process.poll() is None:
                    process.kill()


def said(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = json.loads(process.stdout.readline())
    assert line["schema"] == 1
    return dict(line)


def tell(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Its summary, which is its last line; it ends well."""
    summary = said(process)
    assert summary["type"] == "summary"
    assert process.wait(timeout=5) == 0
    for port, other in (summary["ports"], summary["ports"][::-1]):
        kept = port["dropped"] + port["overflow"] + port["kept"]
        assert port["rx"] + port["duplicated"] == kept + other["tx"] + other["refused"]
    return summary


@pytest.mark.parametrize(
    ("endpoints", "own"),
    [
        ([], []),  # UDP sockets leave the checksum to the device: it has to be made at the other end
        (["-m"], ["-m"]),
        (["-R", "IF", "-m", "-c", "-p", "1518"], ["-m", "--swap"]),
        (["-R", "IF"], ["-b", "1"]),
    ],
    ids=["udp", "udp-mmsg", "raw-swapped-and-checked", "raw-one-by-one"],
)
def test_faults_are_exact(endpoints: list[str], own: list[str]) -> None:
    with forwarding("--drop", 100, "--reorder", 50, "--duplicate", 10, *own) as (path, process):
        for _ in range(2):
            sender, receiver = between(path, "send", "recv", endpoints, PACED)
            passed = FRAMES - FRAMES // 100
            assert sender.summary["sent"] == FRAMES
            assert lost(sender, receiver) == FRAMES // 100
            assert receiver.summary["received"] == passed
            assert receiver.summary["reordered"] == passed // 50
            assert receiver.summary["duplicated"] == passed // 10
            assert receiver.summary["corrupted"] == receiver.summary["foreign"] == 0
        tell(process, "stop")
        summary = ended(process)
        assert summary["reason"] == "stop"
        first = summary["ports"][0]
        assert (first["dropped"], first["missed"]) == (2 * (FRAMES // 100), 0)


@pytest.mark.parametrize("wait", ["interrupt", "adaptive"])
def test_a_forwarder_that_waits_passes_every_frame_and_does_not_spin(wait: str) -> None:
    with forwarding("--wait", wait, "-m", "--delay", "500") as (path, process):
        sender, receiver = between(path, "send", "recv", ["-R", "IF", "-m"], [*PACED[:-1], "400"])
        assert sender.summary["sent"] == receiver.summary["received"] == 400
        time.sleep(0.5)  # nothing to do, as long as it takes to wait for the end marks
        tell(process, "stop")
        summary = ended(process)
        assert summary["polls"] < 20_000  # one that polls asks a million times
        assert summary["cpu_ns"] < summary["idle_cycles"] / 4  # a cycle takes less than a nanosecond


def test_reordering_counts_within_a_flow_and_a_drop_shows_its_flow() -> None:
    """A frame is sent behind its successor, which is of another flow if there are two: then nothing is reordered.

    With 100 flows each 100th frame is of the 100th. Headers do not matter, and control frames are found with any.
    """
    headers = ["--header", "tcp6+vlan7", "-p", "128"]
    common = ["-R", "IF", "-m", "-c"]
    with forwarding("--reorder", 50, "-m") as (path, _):
        for flows, header, reordered in (
            (1, [], FRAMES // 50),
            (2, [], 0),
            (1, headers, FRAMES // 50),
            (2, headers, 0),
        ):
            sender, receiver = between(path, "send", "recv", [*common, *header, "--flows", str(flows)], PACED)
            assert (lost(sender, receiver), receiver.summary["corrupted"]) == (0, 0)
            assert receiver.summary["reordered"] == reordered
    with forwarding("--drop", 100, "-m") as (path, _):
        for header in ([], headers):
            _, receiver = between(path, "send", "recv", [*common, *header, "--flows", "100"], PACED)
            assert receiver.summary["worst_flows"] == [[99, FRAMES // 100]]


def test_round_trips_under_delay() -> None:
    with forwarding("--delay", 2500.5, "-m") as (path, process):
        client, _ = between(path, "client", "server", ["-m"], ["-r", "1k", "-b", "1", "--count", "200"])
        assert client.summary["received"] == 200
        assert client.summary["rtt_actual_ns"]["min"] >= 2 * 2_500_500
        process.send_signal(signal.SIGTERM)
        assert ended(process)["reason"] == "signal"


def packet_socket(netns: str | None) -> socket.socket:
    with enter_netns(f"/run/netns/{netns}"):
        found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    found.bind(("end0", 0))
    found.settimeout(2)
    return found


def test_frames_of_any_kind_pass_unchanged_and_once() -> None:
    """With their VLAN tag, which the kernel takes out on receipt; and none comes back to whom it came from."""
    head = bytes.fromhex("02aabbccddee 02ffeeddccbb")
    frames = [
        head + bytes.fromhex("88b5") + os.urandom(46),
        head + bytes.fromhex("8100 2123 88b5") + os.urandom(100),
        head + bytes.fromhex("88a8 0064 8100 0065 88b5") + os.urandom(1400),
        b"\xff" * 6 + head[6:] + bytes.fromhex("0806") + os.urandom(60),
    ]
    with (
        forwarding("--drop", 1000, "-m") as (path, process),
        packet_socket(path.a.namespace) as a,
        packet_socket(path.b.namespace) as b,
    ):
        b.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
        for frame in frames:
            a.send(frame)
            data, control, _, _ = b.recvmsg(2048, 256)
            assert untagged(frame) == (data, tag_of(control))
        tell(process, "counters")
        counters = said(process)
        assert [port["rx"] for port in counters["ports"]] == [len(frames), 0]
        assert [port["tx"] for port in counters["ports"]] == [0, len(frames)]
        a.settimeout(0.1)
        with pytest.raises(TimeoutError):
            a.recv(2048)


def untagged(frame: bytes) -> tuple[bytes, int | None]:
    """The frame as the kernel shows it, and the tag that it took out."""
    if frame[12:14] in (b"\x81\x00", b"\x88\xa8"):
        return frame[:12] + frame[16:], int.from_bytes(frame[14:16], "big")
    return frame, None


def tag_of(control: list[tuple[int, int, bytes]]) -> int | None:
    """From struct tpacket_auxdata: status (4), …, VLAN tag at 16."""
    for _, kind, data in control:
        if kind == 8 and int.from_bytes(data[:4], "little") & 0x10:
            return int.from_bytes(data[16:18], "little")
    return None


def test_a_displaced_frame_leaves_at_the_end_and_so_do_delayed_ones() -> None:
    with (
        forwarding("--reorder", 3, "--delay", 300_000, "--drain", 2) as (path, process),
        packet_socket(path.a.namespace) as a,
        packet_socket(path.b.namespace) as b,
    ):
        frames = [b"\x02" + bytes(11) + b"\x88\xb5" + bytes([number]) * 46 for number in range(3)]
        for frame in frames:
            a.send(frame)
        deadline = time.monotonic() + 5
        while said_counters(process)["ports"][0]["kept"] < len(frames):
            assert time.monotonic() < deadline
        assert process.stdin is not None
        process.stdin.close()  # its end is an end
        summary = ended(process)
        assert summary["reason"] == "eof"
        assert summary["ports"][0]["kept"] == 0
        assert [b.recv(2048) for _ in frames] == frames


def said_counters(process: subprocess.Popen[str]) -> dict[str, Any]:
    tell(process, "counters")
    counters = said(process)
    assert counters["type"] == "counters"
    return counters


def test_a_link_that_goes_away_ends_it() -> None:
    with forwarding() as (path, process):
        ip("-n", path.a.namespace or "", "link", "del", "end0")
        summary = said(process)
        assert (summary["type"], summary["reason"]) == ("summary", "error")
        assert process.wait(timeout=5) == 4


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["-R", "lo", "-R", "gone0"], 3, "there is no interface 'gone0' here"),
        (["-R", "lo"], 2, "needs pairs of interfaces, 2 to 32 in all, and 1 were given"),
        (["-R", "lo", "-R", "lo"], 2, "interface 'lo' was given twice"),
        (["-R", "a", "-R", "b", "--reorder", "1"], 2, "--reorder 1 leaves no frame"),
        (["-R", "a", "-R", "b", "--delay", "1s"], 2, "--delay takes a number from 0 to 10000000, not '1s'"),
    ],
)
def test_one_sentence(words: list[str], code: int, sentence: str) -> None:
    found = subprocess.run([workload_path(), "forward", *words], capture_output=True, text=True, timeout=10)
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (code, "", 1), found.stderr
    assert sentence in found.stderr


def test_as_a_switch(session: HostSession) -> None:
    """Every pair hears its own frames, less those dropped; sockets of the kernel at both ends."""
    settings = Settings(warmup_s=0.0, duration_s=0.2, drain_s=0.3, repeats=1)
    with built(session, Case("forward-raw", mode="drop10+swap", api="raw-mmsg", pairs=2)) as rig:
        launch = run_launch(rig, rig.case.sending(burst=1, rate=Rate(2000)), settings)
        rig.check()
        counters = rig.counters()
    assert launch.invalid is None, launch.evidence
    assert [pair.received for pair in launch.pairs] == [pair.sent - pair.sent // 10 for pair in launch.pairs]
    assert counters is not None
    for pair, port in zip(launch.pairs, counters[::2], strict=True):
        assert port.rx_dropped == pair.sent // 10
        assert port.rx_packets is not None
        assert pair.sent < port.rx_packets <= pair.sent + 3
