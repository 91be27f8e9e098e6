#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the sending and the receiving loop can do at most: 64-byte frames without any I/O, one core."""

from __future__ import annotations

import sys

import bench_host as host
import paired
import workload_runs


def rate(binary: str, cpu: int, app: str, seconds: float) -> float:
    """Frames per second of one run, over its measured windows."""
    key = "sent" if app == "send" else "received"
    options = ["--io", "null", "--burst", "32", "--silent", "--duration", str(seconds)]
    lines = workload_runs.lines(
        workload_runs.start(host.pinned(cpu, [binary, app, *host.ends(1), *options])), seconds + 20
    )
    return float(lines[-1][key]) / seconds


def main() -> int:
    """Both loops; exits 1 if one is slower than wanted."""
    parser = host.parser(__doc__)
    parser.add_argument("--at-least", type=float, default=50e6, help="frames per second (default %(default)s)")
    arguments = parser.parse_args()
    binary, cpu, kept = host.workload(arguments), host.cpus(arguments, 1)[0], True
    for app in ("send", "recv"):
        rates = [rate(binary, cpu, app, arguments.seconds) for _ in range(arguments.pairs)]
        low, high, coverage = paired.median_interval(rates, 0.95)
        held = low >= arguments.at_least
        interval = f"{coverage:.1%} interval of the median {low / 1e6:.1f} to {high / 1e6:.1f} Mpps"
        print(f"{'PASS' if held else 'FAIL'} {app} --io null: {interval}; wanted: {arguments.at_least / 1e6:g} Mpps")
        kept &= held
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
