# SPDX-License-Identifier: BSD-3-Clause
"""How the workload's program is started, ended by words, signals and durations, and read, however slow the reader."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.host.workload_tools import LOOPBACK, Path2, Process, run, veth

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.own_host


def test_a_supervised_run_starts_and_stops_by_lines(veth: Path2) -> None:
    """Both wait for `start`, at a given moment; `stop` ends the sender, then the receiver by the end mark."""
    late_ns = supervised_launch(veth)
    for _ in range(19):  # a sender that is kept off its CPU begins late: on time is what it can be
        if late_ns <= 50_000:
            break
        late_ns = supervised_launch(veth)
    assert late_ns <= 50_000


def supervised_launch(veth: Path2) -> int:
    """Checks one launch, and returns by how many nanoseconds it began late."""
    receiver = Process("recv", veth.b, veth.a, "--supervised")
    assert receiver.until("ready")["announced"] is True
    sender = Process("send", veth.a, veth.b, "--supervised", "-r", "10k", "-b", "1")
    assert sender.until("ready")["announced"] is False
    at = time.monotonic_ns() + 200_000_000
    receiver.say(f"start {at}")
    sender.say(f"start {at}")
    first = sender.until("window")
    late_ns = int(first["start_ns"]) - at
    assert late_ns >= -50_000
    sender.say("stop")
    sent = sender.end()
    received = receiver.end()
    assert (sent.code, sent.summary["reason"]) == (0, "stop")
    assert (received.code, received.summary["reason"]) == (0, "end")
    assert sent.summary["sent"] == received.summary["received"]
    assert sent.windows[-1]["duration_ns"] < 100_000_000
    return late_ns


@pytest.mark.parametrize("app", ["send", "recv", "client", "server"])
@pytest.mark.parametrize("how", ["eof", "stop", "signal"])
@pytest.mark.parametrize("when", ["before start", "running"])
def test_a_run_that_ends_early_has_a_summary(app: str, how: str, when: str) -> None:
    process = Process(app, LOOPBACK.a, LOOPBACK.b, "--supervised", "--drain", "0.1", "-r", "1k", "-b", "1")
    process.until("ready")
    if when == "running":
        process.say("start")
        time.sleep(0.15)
    if how == "eof":
        process.close_stdin()
    elif how == "stop":
        process.say("stop")
    else:
        process.process.send_signal(signal.SIGTERM)
    outcome = process.end(limit_s=5)
    assert outcome.code == 0, outcome.stderr
    assert outcome.summary["reason"] == how


def test_measure_restarts_a_clients_histograms(veth: Path2) -> None:
    """`measure`: with the window after next; windows have their own figures all the same."""
    server = Process("server", veth.b, veth.a, "--supervised", "-b", "1")
    server.until("ready")
    client = Process("client", veth.a, veth.b, "--supervised", "-r", "1k", "-b", "1", "--window", "0.05")
    client.until("ready")
    server.say("start")
    client.say("start")
    assert client.until("window")["rtt_from"] == 1
    client.say("measure")
    while (reported := client.until("window"))["rtt_from"] == 1:
        pass
    begin = reported["window"] + 2
    assert reported["rtt_from"] == begin
    while client.until("window")["window"] < begin + 2:
        pass
    client.say("stop")
    found = client.end()
    server.end()  # by the client's end mark
    measured = [window["rtt"]["count"] for window in found.windows if window["window"] >= begin]
    assert found.summary["rtt_from"] == begin
    assert found.summary["rtt_ns"]["count"] == found.summary["rtt_first_ns"]["count"] == sum(measured)
    assert 0 < sum(measured) < found.summary["received"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_wait(number: signal.Signals) -> None:
    process = Process("recv", LOOPBACK.a, LOOPBACK.b, "--drain", "600")
    process.until("ready")
    process.process.send_signal(number)
    time.sleep(0.2)
    assert process.process.poll() is None, "the first signal lets it drain"
    process.process.send_signal(number)
    outcome = process.end(limit_s=2)
    assert (outcome.code, outcome.summary["reason"]) == (0, "signal")


def test_duration_ends_a_receiver() -> None:
    outcome = run("recv", LOOPBACK.a, LOOPBACK.b, "--duration", 0.2, "--drain", 0.1)
    assert (outcome.code, outcome.summary["reason"]) == (0, "duration")


@pytest.mark.slow
def test_a_sleeping_reader_gets_every_line() -> None:
    """Far more lines than a pipe holds: the run ends on time, and no line is missing or torn."""
    process = Process("send", LOOPBACK.a, LOOPBACK.b, "--io", "null", "--window", "0.001", "--duration", "1.5")
    time.sleep(2)
    outcome = process.end()
    assert [w["window"] for w in outcome.windows] == list(range(1, 1501))
    last = outcome.windows[-1]
    assert last["start_ns"] + last["duration_ns"] - outcome.windows[0]["start_ns"] == pytest.approx(1.5e9, rel=1e-4)


def test_a_silent_run_writes_its_windows_at_the_end() -> None:
    process = Process("send", LOOPBACK.a, LOOPBACK.b, "--io", "null", "-s", "--supervised", "--window", "0.01")
    process.until("ready")
    process.say("start")
    time.sleep(0.2)
    assert process.process.stdout
    os.set_blocking(process.process.stdout.fileno(), False)
    with pytest.raises(BlockingIOError):
        os.read(process.process.stdout.fileno(), 1)
    os.set_blocking(process.process.stdout.fileno(), True)
    process.say("stop")
    assert len(process.end().windows) >= 15
