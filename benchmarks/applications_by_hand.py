#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""redis-benchmark, wrk, iperf3 and netperf as the plugin runs them, and started by hand in the same two containers.

By hand, a server and its client are entered into the containers on the same CPUs, and the figure is read from the text
that the client prints for people. Debian 12 has netperf in non-free.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import bench_host as host
import paired

from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.kinds.application.application_launch import run_application
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Application
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import plan
from pytest_icbench.testbed.probe import probe_application
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

#: Ours within this of theirs, by the whole interval.
WITHIN = (0.9, 1.1)
_START_S = 10.0
_CGROUPS = Path("/sys/fs/cgroup")
_NGINX = """daemon off; master_process off; user root root; pid DIR/pid; error_log DIR/log error;
events { }
http { access_log off; keepalive_requests 1000000000; client_body_temp_path DIR/1; proxy_temp_path DIR/2;
fastcgi_temp_path DIR/3; uwsgi_temp_path DIR/4; scgi_temp_path DIR/5; server { listen ADDRESS:8080; root DIR; } }
"""


@dataclass(frozen=True)
class Containers:
    """The rig's client and server: how a command enters, and where the server listens."""

    client: Sequence[str]
    server: Sequence[str]
    address: str
    seconds: float

    @contextlib.contextmanager
    def serving(self, argv: Sequence[str], port: int) -> Iterator[None]:
        """A server, from when it listens to its end. Raises SystemExit."""
        process = subprocess.Popen([*self.server, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + _START_S
            while f":{port} " not in self._output([*self.server, "ss", "-Hltn"]):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise host.fail(f"{argv[0]} does not listen at port {port}")
                time.sleep(0.02)
            yield
        finally:
            process.terminate()
            process.wait(_START_S)

    def ask(self, argv: Sequence[str], pattern: str) -> float:
        """Runs a client and returns the number that it prints. Raises SystemExit."""
        text = self._output([*self.client, *argv])
        found = re.findall(pattern, text)
        if not found:
            raise host.fail(f"{argv[0]} printed no {pattern}: {text[-200:]!r}")
        return float(found[-1])

    def _output(self, argv: Sequence[str]) -> str:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60 + self.seconds, check=False)
        return done.stdout + done.stderr


def entered(pid: int, cpu: int) -> list[str]:
    """Words before a command that start it in the network and the control groups of a container, on its CPU.

    The kernel shares CPUs out by group: in another one a program would have another part of a busy CPU.
    """
    joined = []
    for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, group = line.split(":", 2)
        mounts = [_CGROUPS / controllers.removeprefix("name=")] if controllers else [_CGROUPS, _CGROUPS / "unified"]
        files = [Path(f"{mount}{group}", "cgroup.procs") for mount in mounts]
        joined += [f"echo $$ >{shlex.quote(str(file))}" for file in files if file.exists()]
    line = "; ".join([*joined, f'exec nsenter --net --target {pid} taskset --cpu-list {cpu} "$@"'])
    return ["sh", "-c", line, "sh"]


def redis(where: Containers) -> float:
    """GETs per second of one connection."""
    server = ["redis-server", "--bind", where.address, "--protected-mode", "no", "--save", "", "--appendonly", "no"]
    with where.serving(server, 6379):

        def rate(requests: int) -> float:
            argv = ["redis-benchmark", "-h", where.address, "-c", "1", "-n", str(requests), "GET", "icbench"]
            return where.ask(argv, r"throughput summary: ([\d.]+) requests per second")

        where.ask(["redis-cli", "-h", where.address, "--no-raw", "APPEND", "icbench", "xxx"], r"\(integer\) (3)")
        return rate(max(50, round(rate(2000) * where.seconds)))


def nginx(where: Containers) -> float:
    """Requests per second over four connections, 64 bytes each."""
    with tempfile.TemporaryDirectory(prefix="icb-", dir="/tmp") as directory:
        root = Path(directory)
        root.chmod(0o755)
        (root / "body").write_text("x" * 64, encoding="utf-8")
        text = _NGINX.replace("DIR", directory).replace("ADDRESS", where.address)
        (root / "nginx.conf").write_text(text, encoding="utf-8")
        with where.serving(["nginx", "-p", directory, "-c", f"{directory}/nginx.conf"], 8080):
            seconds = max(1, round(where.seconds))
            argv = ["wrk", "-t", "1", "-c", "4", "-d", f"{seconds}s", f"http://{where.address}:8080/body"]
            return where.ask(argv, r"Requests/sec: +([\d.]+)")


def iperf3(where: Containers) -> float:
    """Megabits per second of one TCP stream, as the receiver has them."""
    with where.serving(["iperf3", "-s", "-1", "-B", where.address], 5201):
        argv = ["iperf3", "-c", where.address, "-t", str(max(1, round(where.seconds))), "-f", "m"]
        return where.ask(argv, r"([\d.]+) Mbits/sec +receiver")


def netperf(where: Containers) -> float:
    """Requests of 64 bytes per second, over one TCP connection."""
    return _netperf(where, "TCP_RR", r"(?m)^(?: *\d+){4} +\d+\.\d+ +(\d+\.\d+) *$", "--", "-r", "64,64")


def netperf_stream(where: Containers) -> float:
    """Megabits per second of one TCP stream."""
    return _netperf(where, "TCP_STREAM", r"(?m)^(?: *\d+){3} +\d+\.\d+ +(\d+\.\d+) *$")


def _netperf(where: Containers, test: str, pattern: str, *options: str) -> float:
    with where.serving(["netserver", "-D", "-L", where.address], 12865):
        seconds = str(max(1, round(where.seconds)))
        return where.ask(["netperf", "-H", where.address, "-t", test, "-l", seconds, *options], pattern)


#: How each is started by hand.
BY_HAND: dict[str, Callable[[Containers], float]] = {
    "redis": redis,
    "nginx": nginx,
    "iperf3": iperf3,
    "netperf": netperf,
    "netperf_stream": netperf_stream,
}


def compared(session: HostSession, label: str, arguments: argparse.Namespace) -> bool | None:
    """Compares one application; None if it is not installed."""
    try:
        application = probe_application(label)
    except Unsupported as reason:
        print(f"SKIP {label}: {reason}", flush=True)
        return None
    case = Case(arguments.switch, Application(label), dimension="application")
    placement = plan(Topology.read(session.root), workers=0, endpoints=2, policy="auto")
    rig = Rig(case, placement, session, arguments.node)
    seconds: float = arguments.seconds
    rig.build()
    try:
        inits = [vars(rig.host)["_inits"][index] for index in (0, 1)]
        client, server = (entered(pid, cpu) for pid, cpu in zip(inits, placement.endpoints, strict=True))
        where = Containers(client, server, rig.endpoints[1].address.ip, seconds)

        def ours() -> float:
            launch = run_application(application, rig, case, Settings(duration_s=seconds))
            if launch.invalid is not None or launch.application is None:
                raise host.fail(f"{label}: {launch.evidence}")
            return launch.application.runs[0].client.operations_per_second

        result = paired.alternate(
            f"{label} against by hand",
            paired.Plan(arguments.pairs, arguments.repeat, "per second"),
            ours,
            lambda: BY_HAND[label](where),
        )
    finally:
        rig.close()
    return paired.verdict(result, within=WITHIN)


def main() -> int:
    """Compares each; exits 1 if one differs."""
    parser = host.parser(__doc__)
    parser.add_argument("--switch", default="veth", help="path between the containers (default %(default)s)")
    parser.add_argument("--node", default="lxc", help="kind of container (default %(default)s)")
    parser.add_argument("--app", nargs="*", default=list(BY_HAND), choices=list(BY_HAND), help="default: all")
    arguments = parser.parse_args()
    with HostSession(UNDO_KINDS) as session:
        held = [compared(session, label, arguments) for label in arguments.app]
    return 1 if False in held else 0


if __name__ == "__main__":
    sys.exit(main())
