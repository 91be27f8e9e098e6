# SPDX-License-Identifier: BSD-3-Clause
"""Meters: what others count and time is what the workload counts and times."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bench_host as host
import udp_tools
import workload_runs

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.model.switch_facts import PortCounters
from pytest_icbench.stats.intervals import interpolated
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from validation import capture, drawing, rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Independent meters agree"
CLAIM = (
    "tcpdump, the kernel's interface counters and the switches' own counters count what the workload counts, to the"
    " frame; sockperf's percentiles of the round-trip time up to the 90th and ours differ by less than 10 %."
)
METHOD = """
*Counts.* `send` to `recv` over veth between two network namespaces, 50,000 frames per second, while tcpdump writes what
leaves the sender's interface into a file. The header that docs/reference/workload.md describes distinguishes data
frames from end marks and from the kernel's own frames. Then one launch over each switch that keeps counters. Only
interfaces and switches count a sender's end mark, which is repeated up to three times.

*Times.* `client` and `server` in turns with `sockperf ping-pong`, over the same veth, on the same CPUs, 60,000 round
trips per second, all polling. sockperf's sockets are connected for it (`connected.c`), as the workload's are: the route
that is otherwise looked up for each frame was 1.4 of 7.9 µs of a round trip on a processor from AMD. The order changes
with each pair, and the first pair is thrown away. The ratio of a percentile is the median over the pairs, with its 95 %
interval; the whole interval has to keep the bound. Percentiles above the 90th have no bound: they show what the host
did in that second. sockperf waits for each answer before it asks again, so it sees a stall once where the workload sees
every frame that it held up.
"""
SECONDS = 160.0
FIGURES = {
    "percentiles": "Percentiles of the round-trip time by sockperf and by the workload: each pair and the median."
}

RATE_PPS = 50_000
ROUND_TRIPS_PPS = 60_000
PERCENTILES = {50.0: True, 75.0: True, 90.0: True, 99.0: False}
TOLERANCE = 0.1
END_MARKS = 3


def check(settings: Settings) -> Found:
    if os.geteuid() != 0:
        raise Unsupported("network namespaces need root")
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise Unsupported("two CPUs are needed, one for each end")
    binary = str(workload_path())
    with host.socket_directory() as directory, host.namespaces() as names:
        pair = udp_tools.Pair(names, allowed[:2], settings.amount(1, 1))
        rows = counted(pair, binary, directory / "capture", settings)
        with udp_tools.connected_sockets() as connected:
            ratios, data = timed(pair, binary, connected, settings)
    found, notes = by_switches(settings)
    return Found((*rows, *found, *ratios), data, tuple(notes))


def counted(pair: udp_tools.Pair, binary: str, file: Path, settings: Settings) -> list[Row]:
    """The workload, tcpdump and both interfaces."""
    settings.tell("tcpdump and interface counters")
    seconds = settings.amount(4, 0.5)
    options = ["--mmsg", "--burst", "1", "--silent"]
    timing = ["--rate", str(RATE_PPS), "--duration", str(seconds)]
    receiver = pair.listening(2, [binary, "recv", *host.ends(2), *options])
    try:
        with capture.watching(pair.namespaces[0], "v0", "out", file) as tcpdump:
            # The receiver's announcement has been answered: nobody listened yet.
            before = [transmitted(pair.namespaces[0]), received(pair.namespaces[1])]
            sender = workload_runs.start(pair.on(1, [binary, "send", *host.ends(1), *options, *timing]))
            sent = workload_runs.lines(sender, seconds + 30)[-1]
            got = workload_runs.lines(receiver, 30)[-1]
            seen = tcpdump.result()
    finally:
        host.end(receiver)
    out, into = transmitted(pair.namespaces[0]) - before[0], received(pair.namespaces[1]) - before[1]
    return [
        same("data frames seen by tcpdump", len(seen.sequences), sent["sent"], "sent by the workload"),
        same("of them with the sequence numbers 0, 1, 2, …", in_order(seen.sequences), sent["sequences"], "given"),
        same(
            "frames that tcpdump's buffer could not take",
            -1 if tcpdump.dropped is None else tcpdump.dropped,
            0,
            "so it says",
        ),
        same("frames transmitted by the sender's interface", out, seen.frames, "all frames in tcpdump's file"),
        same("frames received by the receiver's interface", into, seen.frames, "all frames in tcpdump's file"),
        same("frames received by the workload", got["received"], sent["sent"], "sent by the workload"),
    ]


def in_order(sequences: tuple[int, ...]) -> int:
    """How many of them are the number that their place asks for."""
    return sum(sequence == place for place, sequence in enumerate(sequences))


def same(what: str, value: int, expected: int, whose: str) -> Row:
    return Row(what, value, f"{expected:,}, {whose}", value == expected)


def statistics_of(namespace: str) -> dict[str, dict[str, int]]:
    """The kernel's counters of the interface v0 there."""
    shown = subprocess.run(
        ["ip", "-n", namespace, "-json", "-s", "link", "show", "v0"], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, dict[str, int]] = json.loads(shown)[0]["stats64"]
    return found


def transmitted(namespace: str) -> int:
    return statistics_of(namespace)["tx"]["packets"]


def received(namespace: str) -> int:
    return statistics_of(namespace)["rx"]["packets"]


def by_switches(settings: Settings) -> tuple[list[Row], list[str]]:
    """A launch over each switch that counts."""
    rows: list[Row] = []
    # Without a warm-up every frame is in a window.
    lengths = Lengths(duration_s=settings.amount(2, 0.3), warmup_s=0.0, drain_s=1.0)
    with HostSession(UNDO_KINDS, settings.session_options) as session:
        cases, notes = rigs.can_run(session, [Case(name, Frames(rate=Rate(RATE_PPS))) for name in rigs.switches()])
        for case in cases:
            settings.tell(f"counters of {case.switch}")
            with rigs.built(session, case, settings) as rig:
                before = rig.counters()
                if before is None:
                    notes.append(f"`{case.switch}` keeps no counters.")
                    continue
                launch, _ = rigs.launch(rig, case, lengths)
                after = rig.counters()
                assert after is not None
                rows += by_switch(case.switch, before, after, launch.total("sent"), launch.total("received"))
    return rows, notes


def by_switch(
    name: str, before: Sequence[PortCounters], after: Sequence[PortCounters], sent: int, arrived: int
) -> list[Row]:
    """What a switch counted on the sender's and on the receiver's port."""

    def counted_at(port: int, counter: str) -> int | None:
        old, new = getattr(before[port], counter), getattr(after[port], counter)
        return None if old is None or new is None else new - old

    rows = []
    for what, value, ours in (
        (f"frames that `{name}` took from the sender", counted_at(0, "rx_packets"), sent),
        (f"frames that `{name}` gave to the receiver", counted_at(1, "tx_packets"), arrived),
    ):
        if value is not None:
            held = 1 <= value - ours <= END_MARKS
            rows.append(Row(what, value, f"{ours:,} and 1 to {END_MARKS} end marks", held))
    return rows


def timed(
    pair: udp_tools.Pair, binary: str, connected: list[str], settings: Settings
) -> tuple[list[Row], dict[str, Any]]:
    """Percentiles of round-trip times by both tools."""
    host.program("sockperf", "sockperf")
    ours: dict[float, list[float]] = {percent: [] for percent in PERCENTILES}
    theirs: dict[float, list[float]] = {percent: [] for percent in PERCENTILES}
    pairs = settings.count(24, 6)
    for number in range(-1, pairs):
        settings.tell(f"round trips, pair {number + 1} of {pairs}")
        for side in (0, 1) if number % 2 else (1, 0):
            if side == 0:
                histogram = udp_tools.workload_rtts(pair, binary, ROUND_TRIPS_PPS)
                own = {percent: udp_tools.quantile_ns(histogram, percent / 100) for percent in PERCENTILES}
            else:
                other = udp_tools.sockperf_rtts(pair, ROUND_TRIPS_PPS, connected)
        for percent in PERCENTILES if number >= 0 else ():
            ours[percent].append(own[percent])
            theirs[percent].append(other[percent])
    rows = [ratio(percent, ours[percent], theirs[percent]) for percent in PERCENTILES]
    shown = {
        "percentiles": list(PERCENTILES),
        "ours_us": [[round(value / 1000, 3) for value in ours[percent]] for percent in PERCENTILES],
        "sockperf_us": [[round(value / 1000, 3) for value in theirs[percent]] for percent in PERCENTILES],
    }
    return rows, shown


def ratio(percent: float, ours: list[float], theirs: list[float]) -> Row:
    """Our percentile over sockperf's."""
    estimate = interpolated([own / other for own, other in zip(ours, theirs, strict=True)])
    both = f"{statistics.median(ours) / 1000:.2f} µs and {statistics.median(theirs) / 1000:.2f} µs"
    what = f"p{percent:g} of the round trip, ours over sockperf's ({both})"
    if not PERCENTILES[percent]:
        return Row.of(what, estimate)
    assert estimate.low is not None
    assert estimate.high is not None
    held = estimate.low >= 1 - TOLERANCE and estimate.high <= 1 + TOLERANCE
    return Row.of(what, estimate, f"interval within {1 - TOLERANCE:g} to {1 + TOLERANCE:g}", held=held)


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    axes = figure.subplots()
    for shift, (key, label) in enumerate((("ours_us", "pytest-icbench"), ("sockperf_us", "sockperf"))):
        places = [number + (shift - 0.5) * 0.3 for number in range(len(data["percentiles"]))]
        for place, values in zip(places, data[key], strict=True):
            axes.plot([place] * len(values), values, ".", color=drawing.COLOURS[shift], alpha=0.4, markeredgewidth=0)
        medians = [statistics.median(values) for values in data[key]]
        axes.plot(places, medians, "_", color=drawing.COLOURS[shift], markersize=14, markeredgewidth=2, label=label)
    axes.set(xlabel="percentile", ylabel="round-trip time, µs", yscale="log")
    axes.set_xticks(range(len(data["percentiles"])), [f"p{percent:g}" for percent in data["percentiles"]])
    axes.legend()
