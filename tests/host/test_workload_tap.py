# SPDX-License-Identifier: BSD-3-Clause
"""The workload over the character devices of two macvtap links: frames, accounts, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.driver.workload.executable import workload_path
from tests.host.workload_tools import End, Path2, between, check_lines, ip, lost, run

pytestmark = pytest.mark.own_host

TAP = ["--io", "tap", "-R", "IF"]


@pytest.fixture(scope="module")
def taps() -> Iterator[Path2]:
    """Two macvtap links upon one veth link, in a namespace of their own; programs need only the devices."""
    if os.geteuid() != 0:
        pytest.skip("links need root")
    name = f"icbtap{os.getpid()}"
    inside = ["-n", name]
    ip("netns", "add", name)
    try:
        ip(*inside, "link", "add", "lower", "type", "veth", "peer", "name", "far")
        for link in ("lower", "far"):
            ip(*inside, "link", "set", link, "up", "arp", "off")
        ends = []
        for last, index in ((1, 10_000_000 + os.getpid() * 2), (2, 10_000_001 + os.getpid() * 2)):
            mac = f"02:00:00:78:00:0{last}"
            kind = ("address", mac, "type", "macvtap", "mode", "bridge")
            ip(*inside, "link", "add", "link", "lower", "name", f"t{last}", "index", str(index), *kind)
            quiet = ["sysctl", "-qw", f"net.ipv6.conf.t{last}.disable_ipv6=1"]
            subprocess.run(["ip", "netns", "exec", name, *quiet], check=True, timeout=10)
            ip(*inside, "link", "set", f"t{last}", "up", "arp", "off")
            ends.append(End(f"10.78.0.{last}", mac, f"/dev/tap{index}"))
        yield Path2(*ends)
    finally:
        ip("netns", "del", name)


@pytest.mark.parametrize("wait", ["poll", "interrupt"])
def test_every_frame_is_accounted_for(taps: Path2, wait: str) -> None:
    common = [*TAP, "-c", "--wait", wait, "-p", "512"]
    sender, receiver = between(taps, "send", "recv", common, ["-r", "20k", "--count", "2000"])
    check_lines(sender)
    check_lines(receiver)
    assert sender.lines[0]["driver"] == "tap"
    assert sender.summary["sent"] == receiver.summary["received"] == 2000
    assert (lost(sender, receiver), receiver.summary["corrupted"], receiver.summary["foreign"]) == (0, 0, 0)
    assert receiver.summary["bytes"] == 2000 * 512


def test_answers_come_back(taps: Path2) -> None:
    common = [*TAP, "-b", "2", "--header", "udp6+vlan7", "-p", "128"]
    client, server = between(taps, "client", "server", common, ["-r", "2k", "--count", "200"])
    assert client.summary["sent"] == client.summary["received"] == server.summary["reflected"] == 200


def test_a_full_receiver_loses_what_its_link_counts(taps: Path2) -> None:
    """A tap takes every frame: what its receiver cannot hold is lost there, and counted."""
    sender, receiver = between(taps, "send", "recv", TAP, ["--count", "100000"])
    missing = lost(sender, receiver)
    assert sender.summary["refused"] == 0
    assert sender.summary["sent"] == receiver.summary["received"] + missing == 100_000
    words = ["ip", "-n", f"icbtap{os.getpid()}", "-s", "-j", "link", "show", "t2"]
    (link,) = json.loads(subprocess.run(words, check=True, capture_output=True, timeout=10).stdout)
    assert link["stats64"]["rx"]["dropped"] >= missing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-R", "/dev/tap4711"], "no tap at /dev/tap4711: No such file or directory"),
        (["-R", "/dev/null"], "no tap at /dev/null: Inappropriate ioctl for device"),
        ([], "--io tap needs the character device of one macvtap link: -R /dev/tapN"),
        (["-R", "/dev/tap1", "-B"], "take --wait interrupt instead of --blocking"),
    ],
)
def test_what_is_no_tap_is_refused_in_one_sentence(taps: Path2, words: list[str], said: str) -> None:
    outcome = run("recv", replace(taps.a), taps.b, "--io", "tap", *words)
    assert outcome.code in (2, 3)
    assert outcome.lines == []
    assert said in outcome.stderr


def test_frames_of_any_kind(taps: Path2, tmp_path: Path) -> None:
    from scapy.layers.l2 import ARP, Ether
    from scapy.utils import rdpcap, wrpcap

    sent, seen = tmp_path / "sent.pcap", tmp_path / "seen.pcap"
    frames = [Ether(src=taps.a.mac, dst=taps.b.mac) / ARP(op=1, psrc=f"10.0.0.{n}") / bytes(20) for n in range(9)]
    wrpcap(str(sent), frames)
    program = [str(workload_path())]
    with subprocess.Popen(
        [*program, "capture", str(seen), "--io", "tap", "-R", taps.b.interface, "--count", "9", "--duration", "5"],
        stdout=subprocess.PIPE,
        text=True,
    ) as capture:
        assert capture.stdout
        for line in capture.stdout:
            if json.loads(line)["type"] == "ready":
                break
        replay = [*program, "replay", str(sent), "--io", "tap", "-R", taps.a.interface, "-r", "1k"]
        subprocess.run(replay, check=True, capture_output=True, timeout=20)
        capture.communicate(timeout=20)
    assert [bytes(frame) for frame in rdpcap(str(seen))] == [bytes(frame) for frame in frames]
