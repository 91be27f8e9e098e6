# SPDX-License-Identifier: BSD-3-Clause
"""The workload's program with real packets: over loopback, and between namespaces for raw sockets (needs root).

What it sends, receives and counts; other files are about its times, about how it is steered, and about it as a program.
"""

from __future__ import annotations

import os
import time

import pytest

from tests.host.node_tools import cpu_ticks
from tests.host.workload_tools import LOOPBACK, Outcome, Path2, Process, between, check_lines, lost, run, veth

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.own_host

TECHNIQUES = {
    "udp": [],
    "udp-mmsg": ["-m"],
    "udp-gso": ["-G"],
    "udp-gso-blocking": ["-GB"],
    "udp-blocking": ["-B"],
    "udp-mmsg-blocking": ["-mB"],
    "raw": ["-R", "IF"],
    "raw-mmsg": ["-R", "IF", "-m"],
    "raw-blocking": ["-R", "IF", "-B"],
    "raw-mmsg-blocking": ["-R", "IF", "-mB"],
    "xdp": ["-X", "IF"],
    "xdp-blocking": ["-X", "IF", "-B"],
}
each_technique = pytest.mark.parametrize("technique", list(TECHNIQUES.values()), ids=list(TECHNIQUES))


def total(outcome: Outcome, key: str) -> int:
    return sum(int(window[key]) for window in outcome.windows)


@each_technique
@pytest.mark.parametrize("size", [64, pytest.param(1518, marks=pytest.mark.slow)])
def test_every_frame_sent_is_received(veth: Path2, technique: list[str], size: int) -> None:
    """Every frame is sent, received and accounted to the window it was scheduled in, with every byte checked."""
    common = [*technique, "-c", "-p", str(size), "-b", "10"]
    sender, receiver = between(
        veth, "send", "recv", common, ["-r", "20k", "--warmup", "0.1", "--duration", "0.2", "--window", "0.1"]
    )
    check_lines(sender)
    check_lines(receiver)
    assert sender.summary["reason"] == "duration"
    assert receiver.summary["reason"] == "end"
    assert sender.summary["scheduled"] + sender.summary["not_offered"] == 6000
    assert sender.summary["scheduled"] == sender.summary["sent"] + sender.summary["refused"]
    assert lost(sender, receiver) == 0
    assert receiver.summary["received"] == sender.summary["sent"]
    assert receiver.summary["bytes"] == size * sender.summary["sent"]
    for sent, received in zip(sender.windows, receiver.windows, strict=True):
        assert sent["window"] == received["window"]
        assert sent["scheduled"] + sent["not_offered"] == 2000
        assert received["received"] == sent["sent"]
        assert sent["duration_ns"] == pytest.approx(100e6, abs=1000)
        assert sent["start_ns"] <= received["first_ns"] <= received["last_ns"]
    for key in ("duplicated", "reordered", "late", "foreign", "corrupted"):
        assert receiver.summary[key] == 0, key


@each_technique
def test_every_request_is_answered_and_timed(veth: Path2, technique: list[str]) -> None:
    """Each frame comes back once, intact, and its time is in the histogram."""
    client, server = between(
        veth, "client", "server", [*technique, "-c", "-p", "128", "-b", "4"], ["-r", "5k", "--duration", "0.2"]
    )
    check_lines(client)
    check_lines(server)
    summary = client.summary
    assert summary["sent"] + summary["not_offered"] == 1000
    assert summary["received"] == summary["sent"] == server.summary["received"] == server.summary["reflected"]
    assert summary["unanswered"] == 0
    for key in ("rtt_ns", "rtt_actual_ns"):
        assert summary[key]["count"] == summary["received"]
        assert sum(n for _, n in summary[key]["counts"]) == summary["received"]
        assert 0 < summary[key]["min"] <= summary[key]["mean"] <= summary[key]["max"]
    assert summary["rtt_ns"]["mean"] >= summary["rtt_actual_ns"]["mean"]
    assert total(client, "received") == summary["received"]
    assert [w["rtt"]["count"] for w in client.windows] == [w["received"] for w in client.windows]


def test_the_first_frames_of_bursts_have_a_histogram(veth: Path2) -> None:
    client, _ = between(veth, "client", "server", ["-b", "8", "-m"], ["-r", "8k", "--duration", "0.5"])
    check_lines(client)
    summary = client.summary
    assert summary["unanswered"] == 0
    assert summary["rtt_first_ns"]["count"] == total(client, "bursts") == summary["sent"] / 8
    assert summary["rtt_first_ns"]["min"] >= summary["rtt_ns"]["min"]
    assert summary["rtt_first_ns"]["max"] <= summary["rtt_ns"]["max"]
    assert summary["rtt_first_ns"]["mean"] <= summary["rtt_ns"]["mean"]


def test_each_window_has_one_train_of_its_length(veth: Path2) -> None:
    """One train a window, at the maximum rate, of the lengths asked for in turn."""
    sender, receiver = between(
        veth, "send", "recv", ["-m"], ["--train", "50:200:3", "--window", "0.1", "--duration", "0.6"]
    )
    check_lines(sender)
    assert [window["scheduled"] for window in sender.windows] == [50, 100, 200, 50, 100, 200]
    assert [window["received"] for window in receiver.windows] == [50, 100, 200, 50, 100, 200]
    assert all(window["busy_cycles"] > 0 for window in [*sender.windows, *receiver.windows])


@pytest.mark.parametrize("technique", [["-m"], ["-G"], ["-R", "IF", "-m"]], ids=["udp", "gso", "raw"])
@pytest.mark.parametrize("fault", ["drop", "duplicate", "reorder"])
def test_faults_are_counted_exactly(veth: Path2, technique: list[str], fault: str) -> None:
    """Each 10th frame of 5000 is dropped, doubled, or sent behind its successor."""
    sender, receiver = between(
        veth,
        "send",
        "recv",
        [*technique, "-c", "-p", "100"],
        ["-r", "50k", "--count", "5000", "--fault", f"{fault}:10"],
    )
    assert sender.summary["reason"] == "count"
    assert sender.summary["sent"] == sender.summary["sequences"] == 5000
    missing = 500 if fault == "drop" else 0
    assert lost(sender, receiver) == missing
    assert receiver.summary["received"] == 5000 - missing
    assert receiver.summary["duplicated"] == (500 if fault == "duplicate" else 0)
    # The last one of all has no successor: only the end mark follows it.
    assert receiver.summary["reordered"] == (499 if fault == "reorder" else 0)
    assert receiver.summary["corrupted"] == receiver.summary["foreign"] == receiver.summary["late"] == 0


def test_an_unlimited_sender_is_never_refused(veth: Path2) -> None:
    """At the maximum rate nothing is refused, and sent = received + lost holds under real loss, too."""
    sender, receiver = between(veth, "send", "recv", ["-m", "-b", "64"], ["--duration", "0.5"])
    assert sender.summary["scheduled"] == sender.summary["sent"] > 10000
    assert sender.summary["refused"] == sender.summary["not_offered"] == 0
    assert sender.summary["sent"] == receiver.summary["received"] + lost(sender, receiver)


def test_frames_above_a_reachable_rate_are_not_offered(veth: Path2) -> None:
    """The sender ends on time and says what it did not offer; its windows show what it sent."""
    sender, receiver = between(veth, "send", "recv", ["-m", "-b", "64"], ["-r", "100M", "--duration", "0.5"])
    offered = sender.summary["scheduled"] + sender.summary["not_offered"]
    assert offered == pytest.approx(50e6, rel=1e-3)
    assert sender.summary["not_offered"] > 0
    assert len(sender.windows) == 5
    assert sender.summary["sent"] == receiver.summary["received"] + lost(sender, receiver)


def test_unexpected_padding_is_corrupted() -> None:
    """Padding that was not generated is damage for a receiver that checks."""
    receiver = Process("recv", LOOPBACK.b, LOOPBACK.a, "-c", "-p", 128, "--drain", 0.2, "--supervised")
    receiver.until("ready")
    sender = run("send", LOOPBACK.a, LOOPBACK.b, "-p", 128, "--count", 100, "-b", 10)
    receiver.say("stop")
    outcome = receiver.end()
    assert outcome.summary["corrupted"] == sender.summary["sent"] + 3  # and the end marks
    assert outcome.summary["received"] == 0


def test_frames_of_another_stream_are_foreign(veth: Path2) -> None:
    """Another stream on our port is foreign; other ports cost a raw receiver nothing."""
    receiver = Process("recv", veth.b, veth.a, "-R", "end0", "--supervised", "--drain", 0.2)
    receiver.until("ready")
    run("send", veth.a, veth.b, "--stream-id", 2, "--count", 200)
    run("send", veth.a, veth.b, "--port", 10, "--count", 200)
    receiver.say("stop")
    outcome = receiver.end()
    assert outcome.summary["received"] == 0
    assert outcome.summary["highest_sequence"] == -1
    assert outcome.summary["foreign"] == 203  # 200 frames and three end marks


def test_a_receiver_that_shares_its_cpu_leaves_it_to_others_until_the_start() -> None:
    """Receivers that are ready do not keep those from starting that are not."""
    receiver = Process("recv", LOOPBACK.b, LOOPBACK.a, "--supervised", "--yield", 1, "--drain", 0.2)
    receiver.until("ready")
    before, began = cpu_ticks(receiver.process.pid), time.monotonic()
    time.sleep(0.5)
    taken_s = (cpu_ticks(receiver.process.pid) - before) / os.sysconf("SC_CLK_TCK")
    assert taken_s < (time.monotonic() - began) / 5
    receiver.say("start")
    sender = run("send", LOOPBACK.a, LOOPBACK.b, "--count", 1000, "-r", "10k")
    outcome = receiver.end()
    assert outcome.summary["received"] == sender.summary["sent"] == 1000


def test_a_sender_without_receiver_succeeds(veth: Path2) -> None:
    """Refused datagrams are lost ones, not an error of the sender."""
    outcome = run("send", veth.a, veth.b, "-m", "--count", 5000, "-r", "100k")
    assert (outcome.code, outcome.summary["sent"]) == (0, 5000)


@pytest.mark.parametrize("app", ["send", "recv", "client", "server"])
def test_without_io_nothing_is_lost(app: str) -> None:
    """The applications without any I/O; a receiver's frames are made for it."""
    outcome = run(app, LOOPBACK.a, LOOPBACK.b, "--io", "null", "-c", "-p", 200, "--duration", 0.2)
    check_lines(outcome)
    counted = "sent" if app in ("send", "client") else "received"
    assert outcome.summary[counted] > 10000
    assert outcome.summary.get("corrupted", 0) == outcome.summary.get("gaps", 0) == 0
    assert outcome.summary.get("unanswered", 0) == 0
