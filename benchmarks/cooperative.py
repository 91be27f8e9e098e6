#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cooperative endpoints: sender and receiver on one CPU that they yield to each other, the switch's worker on another.

64-byte frames through OVS-DPDK and testpmd, against a prototype of the method in the same places. The prototype is a C
file that --prototype names: `rx|tx YIELD SECONDS RING` behind its EAL arguments, `rx: M Mpps cnt=N` on stdout.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import bench_host as host
import bench_switches
import paired
import workload_runs

RING = 256
YIELD_EVERY = 128
#: From a prototype's connection, which it makes while EAL starts, until it polls; it says nothing of either.
RECEIVER_HEAD_START_S = 0.5
RECEIVER_PATIENCE_S = 20.0
LOSS_MAX = 0.02
Sockets = tuple[Path, Path]
#: Unix sockets of this network namespace; the state of those that are connected.
SOCKETS, CONNECTED = Path("/proc/net/unix"), "03"


def eal(cpu: int, socket: Path, side: int) -> list[str]:
    """One lcore on that CPU, a virtio-user port with the MAC address of that side."""
    device = f"--vdev=net_virtio_user0,mac={host.mac(side)},path={socket},queue_size={RING}"
    return ["--lcores", f"0@{cpu}", *host.EAL, "-m", "96", device]


def wait_for_connection(socket: Path, process: subprocess.Popen[str]) -> None:
    """Returns once somebody is connected to that socket; on a busy CPU EAL takes seconds to get there."""
    deadline = time.monotonic() + RECEIVER_PATIENCE_S
    while not any(
        row.endswith(f" {socket}") and row.split()[5] == CONNECTED for row in SOCKETS.read_text().splitlines()
    ):
        if process.poll() is not None or time.monotonic() > deadline:
            raise host.fail(f"{process.args!r} does not connect to {socket}")
        time.sleep(0.02)


class Workload:
    """dpdk-send and dpdk-recv; keeps the loss of each launch."""

    def __init__(self, binary: str, cpu: int, seconds: float) -> None:
        self.binary, self.cpu, self.seconds = binary, cpu, seconds
        self.losses: list[float] = []

    def run(self, sockets: Sockets) -> float:
        """Received frames per second."""
        options = ["--ring", str(RING), "--silent"]
        timing = ["--warmup", "0.3", "--duration", str(self.seconds), "--yield", str(YIELD_EVERY)]
        receiver = [
            self.binary,
            "dpdk-recv",
            *host.ends(2),
            *options,
            "--yield",
            "1",
            "--",
            *eal(self.cpu, sockets[1], 2),
        ]
        sender = [self.binary, "dpdk-send", *host.ends(1), *options, *timing, "--", *eal(self.cpu, sockets[0], 1)]
        rate = workload_runs.launch(
            host.pinned(self.cpu, receiver),
            host.pinned(self.cpu, sender),
            workload_runs.until_ready,
            self.seconds,
        )
        self.losses.append(rate.lost_ratio)
        return rate.received_pps


class Prototype:
    """The program that --prototype names."""

    def __init__(self, source: Path, directory: Path, cpu: int, seconds: float) -> None:
        self.binary, self.cpu, self.seconds = directory / "prototype", cpu, seconds
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "libdpdk"], capture_output=True, text=True, check=True
        ).stdout.split()
        build = ["cc", "-O3", "-march=native", str(source), "-o", str(self.binary), *flags]
        if subprocess.run(build, stderr=subprocess.DEVNULL, check=False).returncode:
            raise host.fail(f"{source} does not compile: correct --prototype")

    def _start(self, role: str, socket: Path, side: int, yield_every: int, seconds: int) -> subprocess.Popen[str]:
        tail = ["--", role, str(yield_every), str(seconds), str(RING)]
        command = host.pinned(self.cpu, [str(self.binary), *eal(self.cpu, socket, side), *tail])
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, sockets: Sockets) -> float:
        """Received frames per second, between the first and the last one."""
        seconds = max(1, round(self.seconds))
        receiver = self._start("rx", sockets[1], 2, 1, seconds + 3)
        try:
            wait_for_connection(sockets[1], receiver)
            time.sleep(RECEIVER_HEAD_START_S)
            sender = self._start("tx", sockets[0], 1, YIELD_EVERY, seconds)
            try:
                sender.communicate(timeout=seconds + 20)
            finally:
                host.end(sender)
            output, _ = receiver.communicate(timeout=20)
        finally:
            host.end(receiver)
        found = re.search(r"rx: ([\d.]+) Mpps", output)
        if not found or float(found.group(1)) == 0:
            raise host.fail(f"the prototype received nothing, it says: {output.strip() or 'nothing'}")
        return float(found.group(1)) * 1e6


def judge(name: str, arguments: Sequence[float], result: paired.Comparison) -> bool:
    """Prints both verdicts, of the rate and of the loss of every measured launch."""
    kept = paired.verdict(result, at_least=0.95)
    low, high, _ = paired.median_interval(list(arguments), 0.95)
    held = high <= LOSS_MAX
    print(f"{'PASS' if held else 'FAIL'} {name}: loss {low:.2%} to {high:.2%}; wanted: at most {LOSS_MAX:.0%}")
    return kept and held


def main() -> int:
    """Compares through each switch; exits 1 if a bound is not kept."""
    parser = host.parser(__doc__)
    parser.add_argument("--prototype", type=Path, help="C source of the prototype; without it nothing is compared")
    parser.add_argument("--switch", action="append", choices=("ovs", "testpmd"), help="default: both")
    arguments = parser.parse_args()
    if not arguments.prototype:
        print("SKIP cooperative: there is nothing to compare with: name a prototype with --prototype")
        return 0
    binary, (endpoint_cpu, switch_cpu), kept = host.workload(arguments), host.cpus(arguments, 2), True
    with host.hugepages(1024), host.socket_directory() as directory:
        prototype = Prototype(arguments.prototype, directory, endpoint_cpu, arguments.seconds)
        for name in arguments.switch or ("ovs", "testpmd"):
            ours = Workload(binary, endpoint_cpu, arguments.seconds)
            if name == "ovs":
                switch = bench_switches.ovs(directory, switch_cpu, endpoint_cpu)
            else:
                switch = bench_switches.testpmd(directory, switch_cpu)
            with switch as sockets:
                result = paired.alternate(
                    f"cooperative {name}",
                    paired.Plan(arguments.pairs, arguments.repeat, "Mpps", 1e6),
                    partial(ours.run, sockets),
                    partial(prototype.run, sockets),
                )
            kept &= judge(f"cooperative {name}", ours.losses[arguments.repeat :], result)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
