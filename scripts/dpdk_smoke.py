#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Smoke test of the DPDK applications: frames over each kind of virtual link, every one accounted for.

Usage: dpdk_smoke.py WORKLOAD. Standard library only, no huge pages; prints one line, exits 1 if a link fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EAL = ["--no-pci", "--no-huge", "--no-shconf", "--no-telemetry", "-m", "64", "--lcores", "0@0"]
SENDER = ("10.0.0.1", "02:00:00:00:00:01")
RECEIVER = ("10.0.0.2", "02:00:00:00:00:02")
FRAMES = 20000
RATE_PPS = 50000
WAIT_S = 30

Line = dict[str, object]


def links(directory: Path) -> dict[str, tuple[str, str]]:
    """Device of the receiver, which serves the socket, and of the sender, by the link's name."""
    user = f"net_virtio_user0,mac={RECEIVER[1]},path={directory}/user,server=1"
    packed = f"net_virtio_user0,mac={RECEIVER[1]},path={directory}/packed,server=1,packed_vq=1"
    memif = f"net_memif0,socket={directory}/memif,socket-abstract=no"
    return {
        "vhost-user": (user, f"net_vhost0,iface={directory}/user,client=1"),
        "vhost-user-packed": (packed, f"net_vhost0,iface={directory}/packed,client=1"),
        "memif": (f"{memif},role=server,mac={RECEIVER[1]}", f"{memif},role=client,mac={SENDER[1]}"),
    }


def start(workload: str, app: str, ends: tuple[tuple[str, str], tuple[str, str]], device: str) -> subprocess.Popen[str]:
    """One application, with its JSON lines in a pipe and its log on our stderr."""
    options = ["--rate", str(RATE_PPS), "--count", str(FRAMES), "--yield", "1", "--check-payload"]
    command = [workload, app, *ends[0], *ends[1], *options, "--", *EAL, f"--vdev={device}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def summary(process: subprocess.Popen[str]) -> Line:
    """The application's last word; raises RuntimeError if it has none."""
    try:
        output, _ = process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired as late:
        process.kill()
        raise RuntimeError(f"did not end within {WAIT_S} s") from late
    lines = [json.loads(line) for line in output.splitlines()]
    if process.returncode or not lines or lines[-1].get("type") != "summary":
        raise RuntimeError(f"exit code {process.returncode}, {len(lines)} lines and no summary")
    return dict(lines[-1])


def count(line: Line, key: str) -> int:
    """A counter of a summary."""
    value = line[key]
    assert isinstance(value, int), f"{key} is {value!r}"
    return value


def run(workload: str, devices: tuple[str, str]) -> str:
    """Sends frames over one link; raises RuntimeError if one is not accounted for."""
    receiver = start(workload, "dpdk-recv", (RECEIVER, SENDER), devices[0])
    arguments = dict(part.split("=", 1) for part in devices[0].split(",")[1:])
    socket = Path(arguments.get("path") or arguments["socket"])
    deadline = time.monotonic() + WAIT_S
    while not socket.exists() and receiver.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    sender = start(workload, "dpdk-send", (SENDER, RECEIVER), devices[1])
    try:
        sent, received = summary(sender), summary(receiver)
    finally:
        for process in (sender, receiver):
            process.kill()
            process.wait()
    lost = count(received, "gaps") + count(sent, "sequences") - 1 - count(received, "highest_sequence")
    figures = f"{count(sent, 'sent')} sent, {count(received, 'received')} received, {lost} lost"
    if count(sent, "scheduled") != FRAMES or count(sent, "sent") != count(received, "received") + lost:
        raise RuntimeError(f"the accounts do not add up: {figures} of {FRAMES} scheduled")
    if count(received, "received") < FRAMES // 2 or count(received, "corrupted"):
        raise RuntimeError(f"{figures}, {count(received, 'corrupted')} corrupted")
    return figures


def main() -> int:
    """Tries every link; prints a line for all of them."""
    workload = sys.argv[1]
    report = []
    with tempfile.TemporaryDirectory() as directory:
        for name, devices in links(Path(directory)).items():
            try:
                report.append(f"{name}: {run(workload, devices)}")
            except RuntimeError as problem:
                print(f"{name}: {problem}")
                return 1
    print("; ".join(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
