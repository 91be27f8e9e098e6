# SPDX-License-Identifier: BSD-3-Clause
"""The tools that the socket applications are compared with, between two network namespaces: iperf3 and sockperf."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bench_host as host
import workload_runs

PAYLOAD_BYTES = 18  # of a 64-byte frame
PORT = "5001"
#: Options of the socket applications by API technique.
TECHNIQUES = {"udp-mmsg": ["--mmsg"], "udp-gso": ["--gso"], "xdp": ["--xdp", host.LINK]}


def run(command: Sequence[str], seconds: float) -> str:
    """Output of a command that ends by itself; raises SystemExit with its last line if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=False)
    except subprocess.TimeoutExpired:
        raise host.fail(f"{command!r} did not end") from None
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise host.fail(f"{command!r} ended with exit code {done.returncode}: {last}")
    return done.stdout


class Pair:
    """Two namespaces and a CPU for each side."""

    def __init__(self, namespaces: tuple[str, str], cpus: list[int], seconds: float) -> None:
        self.namespaces, self.cpus, self.seconds = namespaces, cpus, seconds

    def on(self, side: int, command: Sequence[str]) -> list[str]:
        """The command at side 1 or 2."""
        return host.pinned(self.cpus[side - 1], command, self.namespaces[side - 1])

    def listening(self, side: int, command: Sequence[str]) -> subprocess.Popen[str]:
        """A UDP server at that side, once its socket is bound."""
        process = subprocess.Popen(
            self.on(side, command),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        probe = ["ip", "netns", "exec", self.namespaces[side - 1], "ss", "-Hantu"]
        deadline = time.monotonic() + 10
        while not subprocess.run(probe, capture_output=True, text=True, check=True).stdout.strip():
            if process.poll() is not None or time.monotonic() > deadline:
                raise host.fail(f"{command!r} does not listen")
            time.sleep(0.02)
        return process


def workload_rate(pair: Pair, binary: str, api: str, burst: int) -> float:
    """Frames per second delivered by send to recv, with one of ``TECHNIQUES``."""
    options = [*TECHNIQUES[api], "--burst", str(burst), "--silent"]
    timing = ["--warmup", "0.2", "--duration", str(pair.seconds)]
    return workload_runs.launch(
        pair.on(2, [binary, "recv", *host.ends(2), *options]),
        pair.on(1, [binary, "send", *host.ends(1), *options, *timing]),
        workload_runs.until_ready,
        pair.seconds,
    ).received_pps


def iperf3_rate(pair: Pair) -> float:
    """Datagrams per second that the server of iperf3 -u got, at no rate limit."""
    server = pair.listening(2, ["iperf3", "-s", "-1"])
    try:
        options = ["-u", "-l", str(PAYLOAD_BYTES), "-b", "0", "-t", str(max(1, round(pair.seconds))), "-J"]
        report = json.loads(run(pair.on(1, ["iperf3", "-c", host.address(2), *options]), pair.seconds))
    finally:
        host.end(server)
    total = report["end"]["sum"]
    return float(total["packets"] - total["lost_packets"]) / float(total["seconds"])


def sockperf_rate(pair: Pair) -> float:
    """Messages per second that the polling server of sockperf throughput got."""
    server = pair.listening(
        2, ["stdbuf", "-oL", "sockperf", "server", "-i", host.address(2), "-p", PORT, "--nonblocked"]
    )
    try:
        options = ["-i", host.address(2), "-p", PORT, "-m", str(PAYLOAD_BYTES), "-t", str(max(1, round(pair.seconds)))]
        client = run(pair.on(1, ["sockperf", "throughput", *options]), pair.seconds)
        seconds = re.search(r"messages sent in ([\d.]+) sec", client)
        time.sleep(0.2)
        server.send_signal(signal.SIGINT)
        output, _ = server.communicate(timeout=10)
        count = re.search(r"Total (\d+) messages received", output)
    finally:
        host.end(server)
    if not count or not seconds:
        raise host.fail("sockperf printed no count: this benchmark knows version 3.7")
    return int(count.group(1)) / float(seconds.group(1))


def workload_rtts(pair: Pair, binary: str, rate_pps: int) -> dict[str, Any]:
    """Round-trip times from the actual send time, one frame at a time, both ends polling: the workload's histogram."""
    options = ["--burst", "1", "--silent"]
    # Late frames are given up: what is measured stays one at a time.
    timing = ["--rate", str(rate_pps), "--catch-up", "1", "--warmup", "0.4", "--duration", str(pair.seconds)]
    server = pair.listening(2, [binary, "server", *host.ends(2), *options])
    try:
        client = workload_runs.start(pair.on(1, [binary, "client", *host.ends(1), *options, *timing]))
        summary = workload_runs.lines(client, pair.seconds + 30)[-1]
        workload_runs.lines(server, 30)
    finally:
        host.end(server)
    histogram: dict[str, Any] = summary["rtt_actual_ns"]
    return histogram


def quantile_ns(histogram: dict[str, Any], q: float) -> float:
    """The value that the part q of the samples does not exceed, in ns."""
    below = 0
    for value, count in histogram["counts"]:
        below += count
        if below >= q * histogram["count"]:
            return float(value)
    raise host.fail("no frame came back")


def workload_rtt_ns(pair: Pair, binary: str, rate_pps: int) -> float:
    """Median round-trip time in ns from the actual send time, one frame at a time, both ends polling."""
    return quantile_ns(workload_rtts(pair, binary, rate_pps), 0.5)


@contextmanager
def connected_sockets() -> Iterator[list[str]]:
    """What stands before a program's command line so that its UDP sockets are connected; see ``connected.c``.

    Raises SystemExit where there is no compiler, or the library cannot be preloaded.
    """
    compiler = host.program("cc", "gcc")
    with tempfile.TemporaryDirectory(prefix="icb-") as directory:
        library = Path(directory) / "connected.so"
        source = Path(__file__).with_name("connected.c")
        options = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        subprocess.run([compiler, *options], check=True)
        before = ["env", f"LD_PRELOAD={library}"]
        # The loader goes on without what it cannot load, and says so.
        said = subprocess.run([*before, "true"], capture_output=True, text=True, check=True).stderr.strip()
        if said:
            raise host.fail(f"sockperf cannot have connected sockets: {said}")
        yield before


def sockperf_rtts(pair: Pair, rate_pps: int, connected: Sequence[str]) -> dict[float, float]:
    """Percentiles (50.0, 75.0, 90.0, 99.0, ...) of sockperf ping-pong's round-trip times in ns, both ends polling.

    Args:
        connected: what ``connected_sockets`` gave.
    """
    common = ["-i", host.address(2), "-p", PORT, "--nonblocked"]
    server = pair.listening(2, [*connected, "sockperf", "server", *common])
    try:
        timing = ["-t", str(max(1, round(pair.seconds))), "--full-rtt", "--mps", str(rate_pps)]
        output = run(
            pair.on(1, [*connected, "sockperf", "ping-pong", *common, "-m", str(PAYLOAD_BYTES), *timing]), pair.seconds
        )
    finally:
        host.end(server)
    found = re.findall(r"percentile ([\d.]+) =\s+([\d.]+)", output)
    if not found:
        raise host.fail("sockperf printed no percentiles: this benchmark knows version 3.7")
    return {float(percent): float(value) * 1000 for percent, value in found}


def sockperf_rtt_ns(pair: Pair, rate_pps: int, connected: Sequence[str]) -> float:
    """Median round-trip time in ns of sockperf ping-pong, both ends polling."""
    return sockperf_rtts(pair, rate_pps, connected)[50.0]
