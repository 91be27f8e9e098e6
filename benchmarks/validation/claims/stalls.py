# SPDX-License-Identifier: BSD-3-Clause
"""Round trips do not hide the worst: client, server and switch stand still, beside an open loop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bench_host as host
import workload_runs

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.driver.workload.output import Summary, parse_line
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import Run
from pytest_icbench.measure.launch.processes import LaunchOutput
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.stats.quantiles import Histogram
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from validation import capture, drawing, open_loop, rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "A stall is in the round trips, whoever stands still"
CLAIM = (
    "Client, server or switch stands still for 0.3 s or 1 s, at 1000 and at 100,000 requests per second, over sockets,"
    " vhost-user and memif: p50, p90, p99 and p99.9 are within 1 % or the truth's resolution of what an open loop has,"
    " and are not given where an open loop has none."
)
METHOD = """
The process gets SIGSTOP and SIGCONT, once, in the middle of a launch of 3 s. The open loop is rebuilt from the
schedule, which has the time at which each request was due, and from times of arrival; a request that did not come back
is slower than all that did. The workload's round trips, histograms and counts of missing frames are not used.

*Sockets, beside tcpdump.* Two namespaces with a veth pair; or with two pairs and the workload's forwarder between,
which is then what stands still. tcpdump at the client's interface has the time at which each sequence number left and
came back. The request that left earliest against the schedule shows when that began. An answer reaches the interface
before a client that waits for its CPU, by some milliseconds on a shared host, so the resolution is that of the rigs
below.

*Rigs.* As the plugin makes them: `direct` over vhost-user and memif, whose client or server stands still, and the
workload's own forwarder, which stands still as the switch, over both and over sockets. Nothing else can watch links of
DPDK, so arrivals are the workload's: the first, the last and the count of each window of 10 ms are known, and the
others are assumed evenly between. That is the resolution.
"""
SECONDS = 190.0
FIGURES = {"percentiles": "Percentiles as measured against those of the open loop, of all launches."}

RATES = (1000, 100_000)
STALLS_S = (0.3, 1.0)
DURATION_S, STALL_AFTER_S = 3.0, 1.0
LENGTHS = Lengths(duration_s=DURATION_S, warmup_s=0.25, window_s=0.01, drain_s=1.0)
#: An answer is at the interface before a client that waits for its CPU has it.
CAPTURE_RESOLUTION_NS = LENGTHS.window_s * 1e9
#: Links without a switch between, and those with one, in which the switch stands still.
LINKS = (Case("direct"), Case("direct", port="memif"))
SWITCHED = (Case("forward"), Case("forward", port="memif"), Case("forward-raw", api="udp-mmsg"))
ENDPOINTS = {"client": 0, "server": 1}


@dataclass(frozen=True)
class Stall:
    """Who stands still, for how long, at which rate."""

    who: str
    seconds: float
    rate_pps: int

    @property
    def burst(self) -> int:
        return 1 if self.rate_pps < 10_000 else 4

    @property
    def words(self) -> str:
        return f"{self.who} stopped for {self.seconds:g} s, {self.rate_pps:,} per second"


def stalls(*who: str) -> Iterator[Stall]:
    """Every length at every rate."""
    for name in who:
        for seconds in STALLS_S:
            for rate in RATES:
                yield Stall(name, seconds, rate)


def stand_still(pid: int, seconds: float) -> None:
    """Stops a process for that long."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)


class Staller:
    """Stops a process once, in mid-flow. Looks whenever the launch hears a line."""

    def __init__(self, rig: Rig, stall: Stall) -> None:
        self.rig, self.stall = rig, stall
        self.run: Run | None = None
        self.done = False

    def look(self, launch_output: LaunchOutput) -> bool:
        """For ``Run(enough=...)``; never ends the launch."""
        assert self.run is not None
        if not self.done and len(launch_output.outputs[0].windows) * LENGTHS.window_s >= STALL_AFTER_S:
            self.done = True
            stand_still(self._pid(self.run), self.stall.seconds)
        return False

    def _pid(self, run: Run) -> int:
        if self.stall.who == "switch":
            return forwarder()
        return self.rig.pids(run.id)[ENDPOINTS[self.stall.who]]


def forwarder() -> int:
    """The process of the switch ``forward``, a child of this one."""
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
            words = (directory / "cmdline").read_bytes().split(b"\0")
            if parent == os.getpid() and {b"forward", b"dpdk-forward"} & set(words):
                return int(directory.name)
    raise RuntimeError("the switch 'forward' has no process here")


def check(settings: Settings) -> Found:
    rows: list[Row] = []
    points: list[list[float]] = []
    for between, who in ((None, ("client", "server")), (f"icb-m-{os.getpid()}", ("switch",))):
        with host.socket_directory() as directory, host.namespaces(between) as names:
            for stall in chosen(settings, *who):
                settings.tell(f"tcpdump, {stall.words}")
                rows.append(beside_tcpdump(names, between, directory / "capture", stall, points))
    with HostSession(UNDO_KINDS, settings.session_options) as session:
        links, without = rigs.can_run(session, [latency(case, RATES[0], 1) for case in LINKS])
        switched, without_switch = rigs.can_run(session, [latency(case, RATES[0], 1) for case in SWITCHED])
        for cases, who in ((links, ("client", "server")), (switched, ("switch",))):
            for case in cases:
                with rigs.built(session, case, settings) as rig:
                    for stall in chosen(settings, *who):
                        settings.tell(f"{case.id}, {stall.words}")
                        rows.append(on_rig(rig, latency(case, stall.rate_pps, stall.burst), stall, points))
    return Found(tuple(rows), {"points_ms": points}, (*without, *without_switch))


def chosen(settings: Settings, *who: str) -> list[Stall]:
    every = list(stalls(*who))
    return every[:1] if settings.quick else every


def latency(case: Case, rate_pps: int, burst: int) -> Case:
    return replace(case, dimension="latency").sending(burst=burst, rate=Rate(rate_pps))


def on_rig(rig: Rig, case: Case, stall: Stall, points: list[list[float]]) -> Row:
    """A launch in which somebody stands still, beside the open loop of its windows' arrivals."""
    staller = Staller(rig, stall)
    run = staller.run = Run(rig, case, LENGTHS, enough=staller.look)
    launch: Launch = run.run(0, None)
    assert launch.rtt is not None
    true = open_loop.of_windows((window for window in launch.windows if window.kept), stall.rate_pps)
    port = f"{case.switch}{'+' + case.port if case.port else ''}"
    return compared(f"`{port}`, {stall.words}", launch.rtt, true, LENGTHS.window_s * 1e9, points)


def beside_tcpdump(
    names: tuple[str, str], between: str | None, file: Path, stall: Stall, points: list[list[float]]
) -> Row:
    """Client and server over a veth pair, or over a forwarder between, with tcpdump at the client's interface."""
    file.unlink(missing_ok=True)
    cpus, binary = sorted(os.sched_getaffinity(0)), str(workload_path())
    common = ["--mmsg", "--burst", str(stall.burst), "--silent"]
    # Without a warm-up the sequence numbers are those of the measured windows.
    shared = ["--yield", "1"] if between is not None else []  # the server and the forwarder share a CPU
    timing = ["--rate", str(stall.rate_pps), "--duration", str(DURATION_S), "--drain", "1"]
    with ExitStack() as stack:
        command = [binary, "server", *host.ends(2), *common, *shared]
        server = workload_runs.start(host.pinned(cpus[0], command, names[1]))
        processes = {"server": server}
        stack.callback(host.end, server)
        if between is not None:
            ports = [word for port in host.PORTS for word in ("--raw", port)]
            command = [binary, "forward", *ports, "--silent", *shared]
            processes["switch"] = workload_runs.start(host.pinned(cpus[0], command, between))
            stack.callback(host.end, processes["switch"])
        for process in processes.values():
            until_ready(process)
        watcher = stack.enter_context(capture.watching(names[0], "v0", "inout", file))
        command = [binary, "client", *host.ends(1), *common, *timing]
        client = processes["client"] = workload_runs.start(host.pinned(cpus[-1], command, names[0]))
        stack.callback(host.end, client)
        time.sleep(STALL_AFTER_S)
        # `ip netns exec` and `taskset` become the program itself.
        stand_still(processes[stall.who].pid, stall.seconds)
        lines = workload_runs.lines(client, DURATION_S + 30)
        watcher.result()
    summary = parse_line(json.dumps(lines[-1]))
    assert isinstance(summary, Summary)
    assert summary.rtt is not None
    assert summary.sent is not None
    requests = round(stall.rate_pps * DURATION_S)
    left, came = directions(file)
    true = open_loop.of_capture(left, came, stall.rate_pps, stall.burst, range(requests))
    found = replace(summary.rtt, lost=requests - summary.rtt.count)
    over = "sockets" if between is None else "sockets over a forwarder"
    what = f"{over} beside tcpdump ({watcher.dropped} not captured), {stall.words}"
    return compared(what, found, true, CAPTURE_RESOLUTION_NS, points)


def until_ready(process: subprocess.Popen[str]) -> None:
    """Reads the lines of a workload up to ``ready``."""
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["type"] == "ready":
            return
    raise host.fail(f"{process.args!r} was not ready")


def directions(file: Path) -> tuple[dict[int, int], dict[int, int]]:
    """When each sequence number left and came back: its first and its second time at the interface."""
    seen = capture.read(file)
    left: dict[int, int] = {}
    came: dict[int, int] = {}
    for at, sequence in zip(seen.times_ns, seen.sequences, strict=True):
        (came if sequence in left else left).setdefault(sequence, at)
    return left, came


def compared(
    what: str, found: Histogram, true: open_loop.RoundTrips, resolution_ns: float, points: list[list[float]]
) -> Row:
    """A row with the percentiles as measured, and as the open loop has them."""
    measured = [found.percentile(part) for part in open_loop.PARTS]
    expected = [true.percentile(part) for part in open_loop.PARTS]
    both = list(zip(measured, expected, strict=True))
    points += [[round(m / 1e6, 4), round(e / 1e6, 4)] for m, e in both if m is not None and e is not None]
    return Row(
        f"{what}: p50 / p90 / p99 / p99.9, ms",
        open_loop.shown_ms(measured),
        f"open loop {open_loop.shown_ms(expected)}",
        all(open_loop.agree(m, e, resolution_ns) for m, e in both),
    )


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    axes = figure.subplots()
    measured, expected = zip(*data["points_ms"], strict=True)
    axes.plot(expected, measured, "o", color=drawing.COLOURS[0], alpha=0.5, markeredgewidth=0)
    ends = [min(min(expected), min(measured)), max(max(expected), max(measured))]
    axes.plot(ends, ends, **drawing.LIMIT)
    axes.set(xscale="log", yscale="log", xlabel="open loop, ms", ylabel="measured, ms")
