# SPDX-License-Identifier: BSD-3-Clause
"""Latency: a known delay is seen, and a stall of the sender itself is not overlooked."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import bench_host as host

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import Run
from pytest_icbench.measure.launch.processes import LaunchOutput
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.stats.intervals import interpolated
from pytest_icbench.stats.quantiles import Histogram, median
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from validation import drawing, priority, reflector, rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "A known delay is measured, a stall of the sender too"
CLAIM = (
    "A forwarder that keeps each frame for 10, 100 or 1000 µs shifts the median round trip by twice that, within 1 % or"
    " 1 µs, whichever is more. One stall of 50 ms of the sender in 10 s at 1000 frames per second gives a maximum of at"
    " least 49 ms and a 99.9th percentile of at least 35 ms."
)
METHOD = """
*Delay.* A client sends 64-byte frames one at a time, 40,000 per second, through the workload's own forwarder (DPDK,
vhost-user); the forwarder's second port is a ring that gives every frame back, so that two CPUs suffice and nobody
shares one. Runs with and without the delay alternate; each pair gives one shift. The value of a run is the median
over its quiet windows (1 ms) of their medians. A window is quiet if nothing was stolen from either CPU and the client
was not preempted in it. Only the sum of the forwarder's preemptions is known, so each counts as one more window that
is not quiet. The interval is the range of the shifts of all pairs; all of it has to keep the bound. (A window's
histogram has two digits, and a bucket stands for its greatest value, so shifts are up to 0.8 % too high.)

*Stall.* The client gets SIGSTOP for 50 ms, once, in the middle of a launch of 10 s over the link without a switch.
The frames that it should have sent meanwhile leave late, and their round trips count from the moment at which they
should have left. The same launch counted from the actual moments, which hides the stall, is beside it.
"""
SECONDS = 150.0
FIGURES = {
    "delay": "Shift of the median round trip less twice the forwarder's delay: each pair, and the bound.",
    "stall": "Round trips of launches with one stall, from the intended and from the actual send time, by percentile.",
}

DELAYS_US = (10, 100, 1000)
STALLED = Case("direct", Frames(burst=1, rate=Rate(1000)), dimension="latency")
STALL_S = 0.05
LEAST_MAX_NS, LEAST_P999_NS = 49_000_000, 35_000_000


def check(settings: Settings) -> Found:
    with HostSession(UNDO_KINDS) as session:
        where = rigs.placement(session, STALLED).endpoints[::-1]
        found, curves = stalls(session, settings)
    rows, shifts = delays((where[0], where[1]), settings)
    return Found((*rows, *found), {"delays_us": list(DELAYS_US), "shifts_us": shifts, "curves_ms": curves})


def delays(cpus: tuple[int, int], settings: Settings) -> tuple[list[Row], list[list[float]]]:
    """The shift of each delay, and all differences."""
    rows, every = [], []
    load = reflector.Load(40_000, duration_s=settings.amount(1.5, 1), window_s=0.001)
    mib = reflector.FORWARDER_MIB + reflector.CLIENT_MIB
    with host.hugepages(mib), host.socket_directory() as directory, priority.this_thread_on(cpus[1]):
        for delay in DELAYS_US:
            shifts: list[float] = []
            rounds: list[reflector.Round] = []
            for number in range(settings.count(6, 2)):
                settings.tell(f"delay of {delay} µs, pair {number + 1}")
                found = {}
                for microseconds in (0, delay) if number % 2 else (delay, 0):
                    found[microseconds] = reflector.run(directory, cpus, microseconds, load)
                rounds += found.values()
                shifts.append(middle_us(found[delay]) - middle_us(found[0]))
            rows += shown(delay, shifts, rounds)
            every.append([round(shift, 3) for shift in shifts])
    return rows, every


def middle_us(found: reflector.Round) -> float:
    """The median of the quiet windows' medians; 0 without any, which no bound allows."""
    return median(found.medians_ns) / 1000 if found.medians_ns else 0.0


def shown(delay: int, shifts: Sequence[float], rounds: Sequence[reflector.Round]) -> list[Row]:
    tolerance = max(1.0, 0.01 * 2 * delay)
    held = all(abs(shift - 2 * delay) <= tolerance for shift in shifts)
    bound = f"{2 * delay - tolerance:g} to {2 * delay + tolerance:g}"
    windows, quiet = sum(each.windows for each in rounds), sum(each.quiet for each in rounds)
    least = f"at least {rigs.QUIET_SHARE * 100:.0f} %"
    share = quiet / windows
    return [
        Row.of(f"shift of the p50 by a delay of {delay} µs, µs", interpolated(shifts), bound, held=held),
        Row(
            f"quiet windows with and without the delay of {delay} µs",
            f"{share * 100:.1f} % of {windows:,}",
            least,
            share >= rigs.QUIET_SHARE,
        ),
    ]


class Staller:
    """Stops the client once, in mid-flow. Looks whenever the launch hears a line."""

    def __init__(self, rig: Rig, after_s: float) -> None:
        self.rig, self.after_s = rig, after_s
        self.run: Run | None = None
        self.stalled_s = 0.0

    def look(self, launch_output: LaunchOutput) -> bool:
        """For ``Run(enough=...)``; never ends the launch."""
        assert self.run is not None
        if not self.stalled_s and len(launch_output.outputs[0].windows) * self.run.settings.window_s >= self.after_s:
            pid, began = self.rig.pids(self.run.id)[0], time.monotonic()
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(STALL_S)
                os.kill(pid, signal.SIGCONT)
            self.stalled_s = time.monotonic() - began
        return False


def stalls(session: HostSession, settings: Settings) -> tuple[list[Row], dict[str, list[list[float]]]]:
    """Launches with one stall each."""
    rows: list[Row] = []
    curves: dict[str, list[list[float]]] = {"intended": [], "actual": []}
    lengths = Lengths(duration_s=10.0, warmup_s=0.25, drain_s=0.3)
    with rigs.built(session, STALLED, settings) as rig:
        for number in range(1, settings.count(3, 1) + 1):
            settings.tell(f"stall {number}")
            staller = Staller(rig, after_s=5.0)
            run = staller.run = Run(rig, STALLED, lengths, enough=staller.look)
            launch = run.run(0, None)
            assert launch.rtt is not None
            assert launch.rtt_actual is not None
            rows += stall_rows(number, staller.stalled_s, launch.rtt)
            rows.append(Row(f"launch {number}: p99.9 from the actual send time, ms", p999_ms(launch.rtt_actual)))
            curves["intended"].append(curve(launch.rtt))
            curves["actual"].append(curve(launch.rtt_actual))
    return rows, curves


def stall_rows(number: int, stalled_s: float, rtt: Histogram) -> list[Row]:
    maximum, tail = (rtt.maximum or 0) / 1e6, p999_ms(rtt)
    what = f"launch {number}, stalled for {stalled_s * 1000:.1f} ms"
    least_max, least_tail = LEAST_MAX_NS / 1e6, LEAST_P999_NS / 1e6
    return [
        Row(f"{what}: maximum, ms", maximum, f"at least {least_max:g}", maximum >= least_max),
        Row(f"{what}: p99.9, ms", tail, f"at least {least_tail:g}", tail >= least_tail),
    ]


def p999_ms(rtt: Histogram) -> float:
    """The 99.9th percentile; 0 if the samples do not support it, which no bound allows."""
    return (rtt.percentile(0.999) or 0) / 1e6


#: Parts of the samples at which a curve is drawn, from half of them to all but one in 10,000.
_PARTS = tuple(1 - 10 ** (-exponent / 12) for exponent in range(4, 49))


def curve(rtt: Histogram) -> list[float]:
    """Quantiles at ``_PARTS`` in ms."""
    found, seen, at = [], 0, 0
    for value, count in rtt.counts:
        seen += count
        while at < len(_PARTS) and seen >= _PARTS[at] * rtt.count - 1e-6:
            found.append(round(value / 1e6, 6))
            at += 1
    return found


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    if name == "delay":
        draw_delays(figure, data)
        return
    axes = figure.subplots()
    beyond = [1 / (1 - part) for part in _PARTS]
    for colour, (kind, curves) in zip(drawing.COLOURS, data["curves_ms"].items(), strict=False):
        for number, values in enumerate(curves):
            label = f"from the {kind} send time" if not number else None
            axes.plot(beyond[: len(values)], values, color=colour, label=label, linewidth=1)
    axes.axhline(LEAST_P999_NS / 1e6, **drawing.LIMIT)
    ticks = {2: "50", 10: "90", 100: "99", 1000: "99.9", 10_000: "99.99"}
    axes.set(xscale="log", yscale="log", xlabel="percentile", ylabel="round-trip time, ms")
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    axes.legend()


def draw_delays(figure: Figure, data: Mapping[str, Any]) -> None:
    for axes, delay, shifts in zip(
        figure.subplots(1, len(data["delays_us"])), data["delays_us"], data["shifts_us"], strict=True
    ):
        tolerance = max(1.0, 0.01 * 2 * delay)
        axes.plot(range(1, len(shifts) + 1), [shift - 2 * delay for shift in shifts], "o")
        for sign in (-1, 1):
            axes.axhline(sign * tolerance, **drawing.LIMIT)
        axes.set(title=f"delay {delay} µs", xlabel="pair", ylabel="shift less twice the delay, µs")
        axes.set_ylim(-1.5 * tolerance, 1.5 * tolerance)
