# SPDX-License-Identifier: BSD-3-Clause
"""The workload's program says when it was kept from its CPU."""

from __future__ import annotations

import signal
import time

import pytest

from tests.host.workload_tools import LOOPBACK, Path2, Process, check_lines, run, veth

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.alone

STALL_S = 0.1
WINDOW_NS = 100_000_000


def stall(process: Process) -> int:
    """Stops a process for a while. Returns when that began, CLOCK_MONOTONIC."""
    began_ns = time.monotonic_ns()
    process.process.send_signal(signal.SIGSTOP)
    time.sleep(STALL_S)
    process.process.send_signal(signal.SIGCONT)
    return began_ns


@pytest.mark.parametrize("who", ["client", "server"])
def test_who_is_stopped_has_a_gap(veth: Path2, who: str) -> None:
    server = Process("server", veth.b, veth.a, "-b", 1, "--supervised")
    server.until("ready")
    client = Process("client", veth.a, veth.b, "-b", 1, "-r", 1000, "--duration", 0.8, "--warmup", 0.1, "--supervised")
    client.until("ready")
    start_ns = time.monotonic_ns() + 30_000_000
    server.say(f"start {start_ns}")
    client.say(f"start {start_ns}")
    time.sleep(0.5)
    stalled_ns = stall(client if who == "client" else server)
    ended = client.end()
    outcomes = {"client": ended, "server": server.end()}
    for outcome in outcomes.values():
        check_lines(outcome)
    windows = outcomes[who].windows
    longest = max(windows, key=lambda window: window["gap_ns"])
    assert longest["gap_ns"] >= 0.95 * STALL_S * 1e9
    assert longest["gap_count"] >= 1
    # A gap belongs to the window in which it began, and is in the sum of all. A busy host makes others, some longer.
    begins_ns = {window["window"]: start_ns + window["window"] * WINDOW_NS for window in windows}  # 0 is the warm-up
    assert any(
        window["gap_ns"] >= 0.95 * STALL_S * 1e9
        and begins_ns[window["window"]] <= stalled_ns < begins_ns[window["window"]] + WINDOW_NS + window["gap_ns"]
        for window in windows
    )
    assert outcomes[who].summary["gap_ns"] >= longest["gap_ns"]


def test_a_yield_is_no_gap() -> None:
    """Two that share a CPU and yield to each other: what one has while the other yields is no gap of the other."""
    receiver = Process("recv", LOOPBACK.b, LOOPBACK.a, "--yield", 1, "-b", 32)
    receiver.until("ready")
    sent = run("send", LOOPBACK.a, LOOPBACK.b, "-r", "10k", "--yield", 1, "-b", 32, "--duration", 0.5)
    taken = receiver.end()
    for outcome in (sent, taken):
        yielded = outcome.summary.get("yields", taken.summary["empty_polls"])
        assert yielded > 100
        assert outcome.summary["gap_count"] < yielded / 10


def test_blocking_sockets_count_no_gaps() -> None:
    receiver = Process("recv", LOOPBACK.b, LOOPBACK.a, "-B")
    receiver.until("ready")
    sent = run("send", LOOPBACK.a, LOOPBACK.b, "-B", "-r", "1k", "--duration", 0.3)
    for outcome in (sent, receiver.end()):
        assert (outcome.summary["gap_ns"], outcome.summary["gap_count"]) == (None, None)
