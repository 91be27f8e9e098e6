# SPDX-License-Identifier: BSD-3-Clause
"""Rate: what is asked for is what is sent and received, evenly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import bench_host as host
import workload_runs

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from validation import capture, drawing, rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The rate asked for is the rate sent"
CLAIM = (
    "With a core of its own a sender achieves 1 k, 100 k and 1 M frames per second within 0.1 %: as it counts them"
    " itself without any port, and as a receiver counts them."
)
METHOD = """
Bursts have one 64-byte frame, so that every frame has its own time. They first go over the link without a switch
(`direct`, memif, rings of 4096), for 10 s, and the receiver counts the rate. Then the sending loop runs without any
port (`--io null`), for 5 s, to show the pacing alone.

Two distributions come with it. *Lateness* is how much later than due a frame left. *Spacing error* is by how much the
time between two frames differed from the schedule. The sender measures both, of every frame, warm-up included.
At 1 k and 100 k frames per second tcpdump, at the interface of a sender on a raw socket, is an independent check of
the spacing. Its clock is the kernel's, read after the system call has come that far. It cannot keep up with 1 M.
"""
SECONDS = 75.0
FIGURES = {
    "spacing": "Part of the frames whose spacing error is greater than that.",
    "lateness": "Part of the frames that left later than that.",
}

RATES = (1_000, 100_000, 1_000_000)
WITNESSED = (1_000, 100_000)
TOLERANCE = 0.001
LINK = Case("direct", Frames(burst=1), port="memif")
#: Frames: 4 ms at 1 Mpps, in which the receiver may be off its CPU. The claim is about the sender.
RING = 4096
#: Parts of the frames at which a distribution is kept: half of them down to one in a million.
_BEYOND = tuple(0.5 * 10 ** (-exponent / 6) for exponent in range(35))
#: A MAC address that nobody has: the frames for tcpdump end at the other end of the link.
NOBODY = "02:00:00:00:00:99"
Counts = list[tuple[int, int]]
Series = dict[str, dict[str, list[int]]]


def check(settings: Settings) -> Found:
    rows: list[Row] = []
    data: Series = {"spacing_ns": {}, "lateness_ns": {}}
    with HostSession(UNDO_KINDS) as session:
        where = rigs.placement(session, LINK)
        # A small host has no CPU to spare for what starts and reads the programs: here the receiver shares with it.
        where = replace(where, endpoints=where.endpoints[::-1])
        with rigs.built(session, LINK, settings, where) as rig:
            for rate in RATES:
                settings.tell(f"to a receiver at {rate:,} pps")
                rows += over_the_link(rig, rate, settings, data)
    for rate in RATES:
        settings.tell(f"without a port at {rate:,} pps")
        rows += alone(where.endpoints[0], rate, settings, data)
    for rate in WITNESSED:
        settings.tell(f"tcpdump at {rate:,} pps")
        rows += witnessed(where.endpoints, rate, settings, data)
    return Found(tuple(rows), {**data})


def over_the_link(rig: Rig, rate: int, settings: Settings, data: Series) -> list[Row]:
    """The rate that a receiver counts."""
    # Few lines: whoever reads them may share the sender's CPU.
    lengths = Lengths(duration_s=settings.amount(10, 2), window_s=1.0, warmup_s=0.5, ring=RING)
    launch, outputs = rigs.launch(rig, LINK.sending(rate=Rate(rate)), lengths)
    summary = outputs[0].summary
    assert summary is not None
    assert summary.lateness is not None
    assert summary.spacing_error is not None
    what = f"to a receiver, {rate:,} pps"
    lateness, spacing = list(summary.lateness.counts), list(summary.spacing_error.counts)
    return figures(what, rate, launch.throughput_pps, lateness, spacing, data)


def alone(cpu: int, rate: int, settings: Settings, data: Series) -> list[Row]:
    """The pacing by itself."""
    seconds = settings.amount(5, 1)
    options = ["--io", "null", "--burst", "1", "--rate", str(rate), "--window", "1", "--duration", str(seconds)]
    command = host.pinned(cpu, [str(workload_path()), "send", *host.ends(1), *options])
    lines = workload_runs.lines(workload_runs.start(command), seconds + 20)
    windows = [line for line in lines if line["type"] == "window"]
    sent = sum(line["sent"] for line in windows) / sum(line["duration_ns"] / 1e9 for line in windows)
    counts = [lines[-1][key]["counts"] for key in ("lateness_ns", "spacing_error_ns")]
    return figures(f"without a port, {rate:,} pps", rate, sent, counts[0], counts[1], data)


def figures(what: str, rate: int, achieved_pps: float, lateness: Counts, spacing: Counts, data: Series) -> list[Row]:
    """The achieved rate beside its bound; lateness and spacing to be known."""
    data["lateness_ns"][what], data["spacing_ns"][what] = beyond(lateness), beyond(spacing)
    bound = f"{rate * (1 - TOLERANCE):,.10g} to {rate * (1 + TOLERANCE):,.10g}"
    return [
        Row(f"rate {what}", achieved_pps, bound, abs(achieved_pps / rate - 1) <= TOLERANCE),
        Row(f"p99 of the lateness {what}, µs", quantile(lateness, 0.99) / 1000),
        spread(what, spacing),
    ]


def spread(what: str, spacing: Counts) -> Row:
    parts = " / ".join(f"{quantile(spacing, part) / 1000:.3g}" for part in (0.5, 0.99, 1))
    return Row(f"p50 / p99 / maximum of the spacing error {what}, µs", parts)


def quantile(counts: Counts, part: float) -> int:
    """The value that this part of the frames does not exceed."""
    every, seen = sum(count for _, count in counts), 0
    for value, count in counts:
        seen += count
        if seen >= part * every - 1e-6:
            return value
    raise ValueError("a quantile of nothing")


def beyond(counts: Counts) -> list[int]:
    """Values that the parts ``_BEYOND`` of the frames exceed, as far as there are so many frames."""
    every = sum(count for _, count in counts)
    return [quantile(counts, 1 - part) for part in _BEYOND if part * every >= 1]


def witnessed(cpus: Sequence[int], rate: int, settings: Settings, data: Series) -> list[Row]:
    """The spacing as tcpdump has it: sender and tcpdump on a CPU each."""
    seconds = settings.amount(3, 1)
    with host.socket_directory() as directory, host.namespaces() as names:
        timing = ["--rate", str(rate), "--burst", "1", "--duration", str(seconds), "--silent"]
        ends = [host.address(1), host.mac(1), host.address(2), NOBODY]
        command = [str(workload_path()), "send", *ends, "-R", "v0", *timing]
        with capture.watching(names[0], "v0", "out", directory / "capture", cpus[1]) as tcpdump:
            sent = workload_runs.lines(workload_runs.start(host.pinned(cpus[0], command, names[0])), seconds + 20)[-1]
            seen = tcpdump.result()
    what = f"seen by tcpdump, {rate:,} pps"
    times = seen.times_ns
    errors = Counter(abs(later - earlier - 1_000_000_000 // rate) for earlier, later in pairwise(times))
    counts = sorted(errors.items())
    data["spacing_ns"][what] = beyond(counts)
    rows = [spread(what, counts)]
    if len(times) != sent["sent"]:
        rows.append(Row(f"frames {what}", len(times), f"{sent['sent']:,}, sent by the workload", held=False))
    achieved = (len(times) - 1) / (times[-1] - times[0]) * 1e9
    bound = f"{rate * (1 - TOLERANCE):,.10g} to {rate * (1 + TOLERANCE):,.10g}"
    return [Row(f"rate {what}", achieved, bound, abs(achieved / rate - 1) <= TOLERANCE), *rows]


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    axes = figure.subplots()
    styles = {"to": "-", "without": ":", "seen": "--"}
    for what, values in data[f"{name}_ns"].items():
        colour = drawing.COLOURS[RATES.index(int(what.split(", ")[1].split()[0].replace(",", "")))]
        axes.plot(
            [max(1, value) / 1000 for value in values],
            _BEYOND[: len(values)],
            styles[what.split()[0]],
            color=colour,
            label=what,
            linewidth=1,
        )
    axes.set(xscale="log", yscale="log", xlabel="µs", ylabel="part of the frames beyond")
    axes.legend(fontsize=7)
