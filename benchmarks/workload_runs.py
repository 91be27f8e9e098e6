# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the workload under test, and figures from its JSON lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from bench_host import end, fail

Line = dict[str, Any]
#: Time for an end mark to arrive, and for a receiver to drain, which it does for two seconds.
END_MARK_S = 4.0


@dataclass(frozen=True)
class Rate:
    """What one launch delivered in its measured windows."""

    received_pps: float
    lost_ratio: float


def start(command: Sequence[str], *, supervised: bool = False) -> subprocess.Popen[str]:
    """A workload with its lines in a pipe; its log is dropped. A supervised one waits for ``begin``."""
    words = [command[0], *command[1:]]
    if supervised:
        at = words.index("--") if "--" in words else len(words)
        words.insert(at, "--supervised")
    stdin = subprocess.PIPE if supervised else None
    return subprocess.Popen(words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def begin(process: subprocess.Popen[str]) -> IO[str]:
    """Starts a supervised workload that is ready; returns its stdin, whose end would stop it."""
    until_ready(process)
    stdin, process.stdin = process.stdin, None
    assert stdin
    stdin.write("start\n")
    stdin.flush()
    return stdin


def until_ready(process: subprocess.Popen[str]) -> None:
    """Returns once a silent workload has said that it is ready, which is its last line before the end."""
    assert process.stdout
    while line := process.stdout.readline():
        if json.loads(line)["type"] == "ready":
            return
    raise fail(f"{process.args!r} ended before it was ready")


def lines(process: subprocess.Popen[str], seconds: float) -> list[Line]:
    """All lines of a workload that ends by itself; raises SystemExit if it fails."""
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        end(process)
        raise fail(f"{process.args!r} did not end within {seconds:.0f} s") from None
    result = [json.loads(line) for line in output.splitlines()]
    if process.returncode or not result or result[-1]["type"] != "summary":
        raise fail(f"{process.args!r} ended with exit code {process.returncode}")
    return result


def received_lines(receiver: subprocess.Popen[str]) -> list[Line]:
    """All lines of a receiver whose sender has ended; it is asked to stop if every end mark was lost."""
    try:
        receiver.wait(timeout=END_MARK_S)
    except subprocess.TimeoutExpired:
        receiver.terminate()
    return lines(receiver, 30)


def rate(sender: list[Line], receiver: list[Line]) -> Rate:
    """Delivered rate and loss; raises SystemExit if the accounts do not add up."""
    sent, got = sender[-1], receiver[-1]
    lost = got["gaps"] + sent["sequences"] - 1 - got["highest_sequence"]
    if sent["sent"] != got["received"] + lost:
        raise fail(f"accounts: {sent['sent']} sent, {got['received']} received, {lost} lost")
    windows = {w["window"]: w for w in receiver if w["type"] == "window" and not w["provisional"]}
    seconds = sum(w["duration_ns"] for w in sender if w["type"] == "window") / 1e9
    received = sum(w["received"] for w in windows.values())
    sent_in_windows = sum(w["sent"] for w in sender if w["type"] == "window")
    return Rate(received / seconds, 1 - received / max(1, sent_in_windows))


def launch(
    receiver: Sequence[str], sender: Sequence[str], ready: Callable[[subprocess.Popen[str]], None], seconds: float
) -> Rate:
    """Starts the receiver, waits until it is ready, starts the sender, takes both accounts."""
    processes = [start(receiver)]
    try:
        ready(processes[0])
        processes.append(start(sender))
        sent = lines(processes[1], seconds + 30)
        return rate(sent, received_lines(processes[0]))
    finally:
        end(*processes)
