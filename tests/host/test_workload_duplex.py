# SPDX-License-Identifier: BSD-3-Clause
"""Two ends that send at once: each direction has an account of its own, exact to the frame."""

from __future__ import annotations

import time

import pytest

from tests.host.workload_tools import Outcome, Path2, Process, check_lines, lost, veth

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.own_host

TECHNIQUES = {
    "udp": [],
    "udp-mmsg": ["-m"],
    "udp-gso": ["-G"],
    "raw": ["-R", "IF"],
    "raw-mmsg": ["-R", "IF", "-m"],
    "xdp": ["-X", "IF"],
}
FRAMES = 4000
#: Streams of the two ends. The low byte is the pair's, so that control frames of either are known to both.
STREAMS = (1, 257)


def exchange(path: Path2, common: list[str], a: list[str], b: list[str]) -> tuple[Outcome, Outcome]:
    """Starts both ends, which begin at one moment, and waits until each has ended by itself."""
    running: list[Process] = []
    try:
        for here, there, own, peer, more in ((path.a, path.b, *STREAMS, a), (path.b, path.a, *STREAMS[::-1], b)):
            words = [here.interface if word == "IF" else word for word in common]
            streams = ["--stream-id", own, "--peer-stream", peer, "--supervised", "--drain", "1"]
            running.append(Process("duplex", here, there, *words, *streams, *more))
        for process in running:
            process.until("ready")
        start = time.monotonic_ns() + 30_000_000
        for process in running:
            process.say(f"start {start}")
        first, second = (process.end() for process in running)
        return first, second
    finally:
        for process in running:
            if process.process.poll() is None:
                process.process.kill()
                process.process.wait()


@pytest.mark.parametrize("technique", list(TECHNIQUES.values()), ids=list(TECHNIQUES))
def test_each_direction_is_whole(veth: Path2, technique: list[str]) -> None:
    """The two directions have different rates and numbers, so that neither can stand for the other."""
    a, b = exchange(
        veth,
        [*technique, "-c", "-b", "8"],
        ["-r", "20k", "--count", str(FRAMES)],
        ["-r", "10k", "--count", str(FRAMES // 4)],
    )
    for end in (a, b):
        check_lines(end)
        assert end.summary["reason"] == "count"
        assert [end.summary[key] for key in ("corrupted", "foreign", "duplicated", "reordered")] == [0, 0, 0, 0]
        assert sum(window["received"] for window in end.windows) == end.summary["received"]
    assert a.summary["sent"] == b.summary["received"] == FRAMES
    assert b.summary["sent"] == a.summary["received"] == FRAMES // 4
    assert lost(a, b) == lost(b, a) == 0


@pytest.mark.parametrize("fault", ["drop:10", "duplicate:10", "reorder:10"])
def test_a_fault_of_one_direction_is_in_its_account_alone(veth: Path2, fault: str) -> None:
    common = ["-R", "IF", "-m", "-c", "-r", "20k", "--count", "3000"]
    a, b = exchange(veth, common, [], ["--fault", fault])
    assert (lost(a, b), b.summary["duplicated"], b.summary["reordered"]) == (0, 0, 0)
    assert a.summary["corrupted"] == b.summary["corrupted"] == 0
    assert lost(b, a) == (300 if fault == "drop:10" else 0)
    assert a.summary["duplicated"] == (300 if fault == "duplicate:10" else 0)
    assert a.summary["reordered"] == (299 if fault == "reorder:10" else 0)


@pytest.mark.parametrize("rate", ["0", "100k"])
def test_flat_out_and_paced_accounts_add_up(veth: Path2, rate: str) -> None:
    """Frames are lost or not; both ends yield, since they share two CPUs with whatever else runs."""
    common = ["-R", "IF", "-m", "-r", rate, "--duration", "0.3", "--warmup", "0.1", "--yield", "64"]
    a, b = exchange(veth, common, [], [])
    for sender, receiver in ((a, b), (b, a)):
        check_lines(sender)
        assert sender.summary["reason"] == "duration"
        assert sender.summary["scheduled"] == sender.summary["sent"] + sender.summary["refused"]
        assert sender.summary["sent"] == receiver.summary["received"] + lost(sender, receiver) > 0


def test_own_frames_that_come_back_are_foreign(veth: Path2) -> None:
    """An end whose peer's frames are of its own stream would count what a hub gives back to it."""
    here = Process(
        "duplex", veth.a, veth.b, "-R", "end0", "-r", "2k", "--count", "100", "--drain", "0.2", "--peer-stream", "257"
    )
    there = Process("server", veth.b, veth.a, "-R", "end0", "--drain", "0.2")
    try:
        ended = here.end()
        there.end()
    finally:
        there.process.kill()
    assert ended.summary["sent"] == 100
    assert ended.summary["received"] == 0
    assert ended.summary["foreign"] > 0


def test_a_peer_that_is_gone_does_not_keep_it(veth: Path2) -> None:
    process = Process("duplex", veth.a, veth.b, "-R", "end0", "-r", "2k", "--count", "20", "--drain", "0.2")
    ended = process.end(limit_s=10)
    assert ended.code == 0
    assert (ended.summary["sent"], ended.summary["received"]) == (20, 0)
