#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a stall of a server looks like to a closed-loop client and to an open loop.

A redis-server on the loopback is stopped for a while in the middle of each run. redis-benchmark asks again when it has
its answer; so does the workload at rate 0. At a fixed rate the workload times each answer from the moment for which its
request was intended.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.driver.workload.output import parse_request_summary

HOST, PORT = "127.0.0.1", 7379
VALUE = "xxx"
#: The server has the first of these to itself, the client the last.
CPUS = os.sched_getaffinity(0)
QUANTILES = (0.5, 0.99, 0.999)


def asked(rate: int, seconds: float) -> list[str]:
    """The workload's command line."""
    argv = [str(workload_path()), "ask", HOST, "--port", str(PORT), "--protocol", "resp", "--message", str(len(VALUE))]
    return [*argv, "--rate", str(rate), "--duration", f"{seconds:g}"]


def benchmarked(requests: int) -> list[str]:
    """redis-benchmark's command line."""
    return ["redis-benchmark", "-h", HOST, "-p", str(PORT), "-c", "1", "-n", str(requests), "GET", "icbench"]


def stalled(server: subprocess.Popen[bytes], argv: Sequence[str], after: float, stall: float) -> str:
    """Runs a client and stops the server in its middle; returns what it wrote."""

    def stop() -> None:
        time.sleep(after)
        server.send_signal(signal.SIGSTOP)
        time.sleep(stall)
        server.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=stop)
    if stall:
        thread.start()
    reported = subprocess.run(
        ["taskset", "-c", str(max(CPUS)), *argv], capture_output=True, text=True, check=True
    ).stdout
    if stall:
        thread.join()
    return reported


def of_redis_benchmark(reported: str) -> tuple[int, list[float], float]:
    """Requests, response times in ms by ``QUANTILES``, and the greatest one, from redis-benchmark's own report."""
    reported = reported.partition("Cumulative distribution")[0]
    rows = [
        (float(share) / 100, float(ms), int(count))
        for share, ms, count in re.findall(
            r"^([\d.]+)% <= ([\d.]+) milliseconds \(cumulative count (\d+)\)", reported, re.M
        )
    ]
    return rows[-1][2], [next(ms for share, ms, _ in rows if share >= wanted) for wanted in QUANTILES], rows[-1][1]


def of_workload(reported: str) -> tuple[int, list[float], float]:
    """The same of the workload."""
    times = parse_request_summary(reported.splitlines()[-1]).rtt
    found = [times.percentile(wanted) for wanted in QUANTILES]
    return times.count, [(value or 0) / 1e6 for value in found], (times.maximum or 0) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a run (default %(default)s)")
    parser.add_argument(
        "--stall", type=float, default=0.05, help="how long the server is stopped (default %(default)s)"
    )
    parser.add_argument("--rate", type=int, default=5000, help="requests per second, open loop (default %(default)s)")
    arguments = parser.parse_args()
    if shutil.which("redis-server") is None or shutil.which("redis-benchmark") is None:
        sys.exit("coordinated_omission.py: redis-server and redis-benchmark are needed: apt install redis-server")
    argv = ["redis-server", "--port", str(PORT), "--bind", HOST, "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(["taskset", "-c", str(min(CPUS)), *argv], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        subprocess.run(["redis-cli", "-p", str(PORT), "SET", "icbench", VALUE], check=True, stdout=subprocess.DEVNULL)
        first = stalled(server, benchmarked(20000), 0, 0)
        rate = float(re.findall(r"throughput summary: ([\d.]+)", first)[0])
        half = arguments.seconds / 2
        rows = {
            "redis-benchmark, closed loop": of_redis_benchmark(
                stalled(server, benchmarked(round(rate * arguments.seconds)), half, arguments.stall)
            ),
            "ask --rate 0, closed loop": of_workload(
                stalled(server, asked(0, arguments.seconds), half, arguments.stall)
            ),
            f"ask --rate {arguments.rate}, open loop": of_workload(
                stalled(server, asked(arguments.rate, arguments.seconds), half, arguments.stall)
            ),
        }
    finally:
        server.send_signal(signal.SIGCONT)
        server.terminate()
        server.wait()
    print(f"server stopped {arguments.stall * 1e3:g} ms in {arguments.seconds:g} s; response times in ms")
    print(f"{'client':32}{'requests':>10}{'p50':>9}{'p99':>9}{'p99.9':>9}{'max':>9}")
    for name, (requests, found, greatest) in rows.items():
        print(f"{name:32}{requests:10d}" + "".join(f"{value:9.3f}" for value in [*found, greatest]))
    *_, (_, open_loop, _) = rows.values()
    sys.exit(open_loop[-1] < arguments.stall * 1e3 / 2)


if __name__ == "__main__":
    main()
