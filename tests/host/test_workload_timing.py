# SPDX-License-Identifier: BSD-3-Clause
"""The workload's program and time: latency from the intended send time, bursts one at a time, how late they were."""

from __future__ import annotations

import json
import signal
import time

import pytest

from pytest_icbench.driver.workload.output import Summary, parse_line
from tests.host.workload_tools import LOOPBACK, Path2, Process, check_lines, run, veth

__all__ = ["veth"]  # fixtures

pytestmark = [pytest.mark.alone, pytest.mark.slow]


def test_a_stall_of_the_sender_is_in_its_latencies(veth: Path2) -> None:
    """Latency runs from the intended send time: a sender that stands still for 50 ms in four seconds at 2500 frames per
    second delays 125 frames by up to 50 ms, and the ten slowest of ten thousand took more than 44 ms.
    """
    server = Process("server", veth.b, veth.a, "-b", 1)
    server.until("ready")
    client = Process("client", veth.a, veth.b, "-b", 1, "-r", 2500, "--duration", 4)
    client.until("ready")
    time.sleep(1.6)
    client.process.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    client.process.send_signal(signal.SIGCONT)
    outcome = client.end()
    server.end()
    summary = parse_line(json.dumps(outcome.summary))
    assert isinstance(summary, Summary)
    assert summary.rtt is not None
    assert summary.rtt_actual is not None
    assert summary.rtt.maximum is not None
    assert summary.rtt.maximum >= 49e6
    slow = summary.rtt.percentile(0.999)
    assert slow is not None
    assert slow >= 44e6
    # From the actual send time the stall is hidden, whatever else the host did meanwhile.
    slow_from, slow_since = (
        sum(n for value, n in found.counts if value > 35e6) for found in (summary.rtt, summary.rtt_actual)
    )
    assert slow_from - slow_since >= 25
    slowest = max(outcome.windows, key=lambda window: window["rtt"]["max_ns"] or 0)
    assert slowest["rtt"]["max_ns"] >= 49e6


def test_one_burst_at_a_time(veth: Path2) -> None:
    """A client at the maximum rate waits for its answers, also after the server stood still for a while.

    With one frame under way the round-trip times add up to no more than the time that passed; with two, to twice that.
    """
    server = Process("server", veth.b, veth.a, "-b", 1)
    server.until("ready")
    client = Process("client", veth.a, veth.b, "-b", 1, "--supervised")
    client.until("ready")
    client.say("start")
    for _ in range(3):
        time.sleep(0.1)
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        server.process.send_signal(signal.SIGCONT)
    answered = 0
    while answered <= 1000:
        answered += client.until("window")["received"]
    client.say("stop")
    outcome = client.end()
    server.end()
    rtt = outcome.summary["rtt_actual_ns"]
    passed_ns = sum(window["duration_ns"] for window in outcome.windows) + 20e6  # and what it waits for at the end
    stalls_ns = 3 * 60e6 * 6  # up to six frames each, one every 10 ms, that wait for the server
    assert rtt["count"] > 1000
    assert rtt["mean"] * rtt["count"] < passed_ns + stalls_ns


@pytest.mark.parametrize("app", ["send", "client"])
def test_a_paced_sender_reports_how_late_and_how_even_its_bursts_were(app: str) -> None:
    """One lateness a burst, one spacing between two; a sender that is stopped is late, and uneven, by as much."""
    stopped_s = 0.03
    options = ("--rate", "10k", "-b", "10", "--duration", "0.5", "--window", "0.5")
    process = Process(app, LOOPBACK.a, LOOPBACK.b, "--io", "null", *options)
    process.until("hello")
    time.sleep(0.2)
    process.process.send_signal(signal.SIGSTOP)
    time.sleep(stopped_s)
    process.process.send_signal(signal.SIGCONT)
    outcome = process.end()
    check_lines(outcome)
    late, uneven = outcome.summary["lateness_ns"], outcome.summary["spacing_error_ns"]
    bursts = outcome.summary["scheduled"] // 10
    assert (late["count"], uneven["count"]) == (bursts, bursts - 1)
    assert late["max"] == outcome.summary["lateness_max_ns"]
    assert late["max"] > 0.8 * stopped_s * 1e9
    assert 0.8 * stopped_s * 1e9 < uneven["max"] <= late["max"]


def test_an_unlimited_sender_is_never_late() -> None:
    outcome = run("send", LOOPBACK.a, LOOPBACK.b, "--io", "null", "--duration", 0.1)
    assert "lateness_ns" not in outcome.summary
