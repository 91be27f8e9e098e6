#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-send to dpdk-recv against testpmd txonly to rxonly, or another build: the same link and frames, one core each.

Both are given the same rings, bursts, devices and CPUs. What counts is what the receiver takes in a second.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bench_host as host
import paired
import workload_runs

RING = 256
WARM_UP_S = 0.3


@dataclass(frozen=True)
class Link:
    """Devices of the two ends. The receiver starts first, unless it is the one that connects."""

    sender: str
    receiver: str
    receiver_serves: bool


def links(directory: Path) -> dict[str, Link]:
    """The links that DPDK offers between two processes."""
    front = f"net_virtio_user0,path={directory}/s,server=1,queue_size={RING}"
    back = f"net_vhost0,iface={directory}/s,client=1"
    memif = f"net_memif0,socket={directory}/s,socket-abstract=no,rsize={RING.bit_length() - 1}"
    return {
        "vhost-user": Link(f"{front},mac={host.mac(1)}", back, receiver_serves=False),
        "vhost-user-packed": Link(f"{front},mac={host.mac(1)},packed_vq=1", back, receiver_serves=False),
        "vhost-user-reverse": Link(back, f"{front},mac={host.mac(2)}", receiver_serves=True),
        "memif": Link(f"{memif},role=client", f"{memif},role=server", receiver_serves=True),
    }


def eal(cpu: int, device: str) -> list[str]:
    """One lcore, on that CPU."""
    return ["--lcores", f"0@{cpu}", *host.EAL, "-m", "64", f"--vdev={device}"]


@dataclass(frozen=True)
class Load:
    """Frames in bytes with FCS, frames handed over at once, seconds measured."""

    packet_size: int
    burst: int
    seconds: float


class Workload:
    """dpdk-send and dpdk-recv."""

    def __init__(self, binary: str, cpus: list[int], load: Load) -> None:
        self.binary, self.cpus, self.load = binary, cpus, load

    def run(self, link: Link, socket: Path) -> float:
        """Received frames per second; raises SystemExit if a frame was lost."""
        burst, size, seconds = str(self.load.burst), str(self.load.packet_size), self.load.seconds
        options = ["--burst", burst, "--packet-size", size, "--ring", str(RING), "--silent"]
        timing = ["--warmup", str(WARM_UP_S), "--duration", str(seconds)]
        commands = {
            "sender": [
                self.binary,
                "dpdk-send",
                *host.ends(1),
                *options,
                *timing,
                "--",
                *eal(self.cpus[0], link.sender),
            ],
            "receiver": [self.binary, "dpdk-recv", *host.ends(2), *options, "--", *eal(self.cpus[1], link.receiver)],
        }
        pinned = {role: host.pinned(self.cpus[role == "receiver"], words) for role, words in commands.items()}
        first, second = ("receiver", "sender") if link.receiver_serves else ("sender", "receiver")
        # A sender that did not wait would be at its end while a receiver on a busy machine still starts.
        processes = {first: workload_runs.start(pinned[first], supervised=first == "sender")}
        try:
            host.wait_for(socket, processes[first])
            processes[second] = workload_runs.start(pinned[second], supervised=second == "sender")
            workload_runs.until_ready(processes["receiver"])
            stdin = workload_runs.begin(processes["sender"])
            sent = workload_runs.lines(processes["sender"], seconds + 30)
            received = workload_runs.received_lines(processes["receiver"])
            stdin.close()
        finally:
            host.end(*processes.values())
            socket.unlink(missing_ok=True)
        rate = workload_runs.rate(sent, received)
        if rate.lost_ratio > 1e-6:
            print(f"lost {rate.lost_ratio:.2e}", file=sys.stderr)
        return rate.received_pps


class Testpmd:
    """testpmd in txonly and in rxonly mode; the second one's own packet rate between two looks."""

    def __init__(self, cpus: list[int], load: Load) -> None:
        self.binary = host.program("dpdk-testpmd", "dpdk")
        self.cpus, self.load = cpus, load

    def _start(self, role: int, device: str, mode: str) -> subprocess.Popen[str]:
        cpu = self.cpus[role]
        # The main lcore sleeps on stdin, so it can share the worker's CPU.
        lcores = ["--lcores", f"0@{cpu},1@{cpu}", "--main-lcore", "0", *host.EAL, "-m", "64", f"--vdev={device}"]
        frames = [f"--txpkts={self.load.packet_size - 4}"] if mode == "txonly" else []
        options = [
            "-i",
            "--auto-start",
            f"--forward-mode={mode}",
            f"--burst={self.load.burst}",
            "--nb-cores=1",
            *frames,
        ]
        rings = [f"--txd={RING}", f"--rxd={RING}", "--total-num-mbufs=4096"]
        # testpmd would keep its answers in a buffer.
        command = host.pinned(cpu, ["stdbuf", "-oL", self.binary, *lcores, "--", *options, *rings])
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
        )

    @staticmethod
    def _received_pps(process: subprocess.Popen[str]) -> float:
        """Asks for the port's statistics: the rate since they were last asked for."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("show port stats 0\n")
        for line in process.stdout:
            found = re.search(r"Rx-pps:\s+(\d+)", line)
            if found:
                return float(found.group(1))
        raise host.fail(f"{process.args!r} ended without statistics")

    def run(self, link: Link, socket: Path) -> float:
        """Received frames per second."""
        roles = {"sender": (0, link.sender, "txonly"), "receiver": (1, link.receiver, "rxonly")}
        first, second = ("receiver", "sender") if link.receiver_serves else ("sender", "receiver")
        processes = {first: self._start(*roles[first])}
        try:
            host.wait_for(socket, processes[first])
            processes[second] = self._start(*roles[second])
            time.sleep(0.6 + WARM_UP_S)
            self._received_pps(processes["receiver"])
            time.sleep(self.load.seconds)
            return self._received_pps(processes["receiver"])
        finally:
            host.end(processes["sender"], processes["receiver"])
            socket.unlink(missing_ok=True)


def main() -> int:
    """Compares over each link asked for; exits 1 if a bound is not kept."""
    parser = host.parser(__doc__)
    parser.add_argument("--link", action="append", help="vhost-user, vhost-user-packed, vhost-user-reverse, memif")
    parser.add_argument("--burst", type=int, default=32)
    parser.add_argument("--packet-size", type=int, default=64)
    parser.add_argument("--against", metavar="FILE", help="another build of icbench-workload instead of testpmd")
    parser.add_argument("--at-least", type=float, default=0.98, help="lower bound of the ratio (default %(default)s)")
    arguments = parser.parse_args()
    cpus, kept = host.cpus(arguments, 2), True
    load = Load(arguments.packet_size, arguments.burst, arguments.seconds)
    ours = Workload(host.workload(arguments), cpus, load)
    theirs = Workload(arguments.against, cpus, load) if arguments.against else Testpmd(cpus, load)
    with host.hugepages(256), host.socket_directory() as directory:
        socket, known = directory / "s", links(directory)
        for name in arguments.link or ["vhost-user", "memif"]:
            if name not in known:
                raise host.fail(f"no link {name}: choose from {', '.join(known)}")
            link = known[name]
            result = paired.alternate(
                f"direct {name}, {load.packet_size} bytes",
                paired.Plan(arguments.pairs, arguments.repeat, "Mpps", 1e6),
                partial(ours.run, link, socket),
                partial(theirs.run, link, socket),
            )
            kept &= paired.verdict(result, at_least=arguments.at_least)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
