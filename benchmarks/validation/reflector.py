# SPDX-License-Identifier: BSD-3-Clause
"""Round trips through the workload's own forwarder on two CPUs: its second port is a ring that gives every frame back.

A server would be a third poller. So the client has one address for both ends: its own frames come back as its answers,
and have been forwarded, and delayed, once in each direction.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench_host as host

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import WorkloadError
from pytest_icbench.measure.launch.disturbance import StealTrack

#: MiB of huge pages of both processes; a delay line holds 16384 frames.
FORWARDER_MIB, CLIENT_MIB = 144, 64
#: How often stolen time is read.
_SAMPLE_S = 0.1
_PATIENCE_S = 20.0


def involuntary_switches(pid: int) -> int | None:
    """How often the threads of a process were preempted since they started; None if it has ended."""
    texts = []
    for thread in Path(f"/proc/{pid}/task").glob("*/status"):
        with suppress(OSError):  # the thread has ended
            texts.append(thread.read_text())
    counts = [int(count) for text in texts for count in re.findall(r"nonvoluntary_ctxt_switches:\s*(\d+)", text)]
    return sum(counts) if counts else None


@dataclass(frozen=True)
class Load:
    """What the client does."""

    rate_pps: int
    duration_s: float
    window_s: float
    warmup_s: float = 0.25


@dataclass(frozen=True)
class Round:
    """What one run of both found.

    Attributes:
        medians_ns: median round trip of each window in which nothing was stolen from either CPU and the client was not
            preempted.
        windows: how many there were.
        preempted: how often the forwarder was, in all of them.
    """

    medians_ns: tuple[int, ...]
    windows: int
    preempted: int

    @property
    def quiet(self) -> int:
        """Windows without any of that: the forwarder's preemptions are taken for one window each, all different."""
        return max(0, len(self.medians_ns) - self.preempted)


def _eal(cpu: int, mib: int, *devices: str) -> list[str]:
    return ["--", "--lcores", f"0@{cpu}", *host.EAL, "-m", str(mib), *(f"--vdev={device}" for device in devices)]


def run(directory: Path, cpus: tuple[int, int], delay_us: int, load: Load) -> Round:
    """One run; the client on the first CPU, the forwarder on the second. Raises WorkloadError."""
    socket = directory / "s"
    options = ["--delay", str(delay_us), "--delay-queue", "16384"] if delay_us else []
    binary = str(workload_path())
    ports = _eal(cpus[1], FORWARDER_MIB, f"net_vhost0,iface={socket}", "net_ring0")
    forwarder = _start(cpus[1], [binary, "dpdk-forward", *options, *ports])
    try:
        host.wait_for(socket, forwarder)
        device = f"net_virtio_user0,mac={host.mac(1)},path={socket},queue_size=256"
        me = [host.address(1), host.mac(1)] * 2
        timing = ["--rate", str(load.rate_pps), "--burst", "1", "--warmup", str(load.warmup_s), "--silent"]
        timing += ["--duration", str(load.duration_s), "--window", str(load.window_s), "--drain", "0.1"]
        command = [binary, "dpdk-client", *me, "--supervised", *timing, *_eal(cpus[0], CLIENT_MIB, device)]
        client = _start(cpus[0], command)
        try:
            return _hear(client, forwarder.pid, cpus)
        finally:
            host.end(client)
    finally:
        host.end(forwarder)
        socket.unlink(missing_ok=True)


def _start(cpu: int, command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        host.pinned(cpu, command), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, bufsize=1
    )


def _hear(client: subprocess.Popen[str], forwarder: int, cpus: tuple[int, int]) -> Round:
    """Starts the client's traffic, and waits for its end."""
    assert client.stdout is not None
    assert client.stdin is not None
    steal = StealTrack(cpus)
    for line in client.stdout:
        if json.loads(line)["type"] == "ready":
            break
    before = involuntary_switches(forwarder)
    steal.sample(time.monotonic_ns())
    client.stdin.write("start\n")
    lines: list[dict[str, Any]] = []
    text, deadline = b"", time.monotonic() + _PATIENCE_S
    pipe = client.stdout.fileno()
    while not lines or lines[-1]["type"] != "summary":
        ready, _, _ = select.select([pipe], [], [], _SAMPLE_S)
        steal.sample(time.monotonic_ns())
        data = os.read(pipe, 1 << 20) if ready else b""
        *whole, text = (text + data).split(b"\n")
        lines += [json.loads(line) for line in whole]
        if (ready and not data) or time.monotonic() > deadline:
            raise WorkloadError("the client through the forwarder did not come to its end")
    after = involuntary_switches(forwarder)
    if before is None or after is None:
        raise WorkloadError("the forwarder ended before its client")
    windows = [line for line in lines if line["type"] == "window" and not line["provisional"]]
    medians = [line["rtt"]["p50_ns"] for line in windows if _is_quiet(line, steal, cpus)]
    return Round(tuple(median for median in medians if median is not None), len(windows), after - before)


def _is_quiet(window: dict[str, Any], steal: StealTrack, cpus: tuple[int, int]) -> bool:
    begin, end = window["start_ns"], window["start_ns"] + window["duration_ns"]
    return not window["involuntary_switches"] and not any(steal.between(cpu, begin, end) for cpu in cpus)
