# SPDX-License-Identifier: BSD-3-Clause
"""Accounts: no frame is unaccounted for, whatever becomes of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import Run
from pytest_icbench.measure.launch.processes import LaunchOutput, ProcessOutput
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from validation import rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "No frame is unaccounted for"
CLAIM = (
    "`scheduled = sent + refused` and `sent = received + lost` hold to the frame over every switch that this host can"
    " run, flat out and while a receiver is stopped in mid-flow. What a forwarder drops, doubles and reorders on"
    " purpose is counted exactly."
)
METHOD = """
Received frames are counted one by one. Lost frames are counted separately, from the gaps in the sequence numbers that
came and from the sender's last one. So the second sum is a check that can fail, not a definition. Each switch has two
launches of 64-byte frames. One runs as fast as the ports take them. The other runs at 100,000 frames per second, and
its receiver gets SIGSTOP for 0.3 s after half a second: frames are then lost or refused, and all are accounted for.

The workload's own forwarder (`forward`) drops each N-th frame, sends it twice, or sends it behind its successor. It
counts frames, so the number of frames sent determines what the receiver has to count. At 20,000 frames per second, in
bursts of 4, nothing else is lost on the way.
"""
SECONDS = 90.0
FIGURES = {
    "stopped": "Frames received of each window of 20 ms, relative to the frames scheduled in it, while the receiver is"
    " stopped for 0.3 s. A window's frames count to it whenever they arrive: what waits in a queue is late, not lost."
}

RATE, SLOW = Rate(100_000), Rate(20_000)
#: Parts of the forwarder's modes, and the counter that tells of them.
IMPAIRMENTS = {"drop": "lost", "dup": "duplicated", "reorder": "reordered"}
EVERY = 100
STOP_AFTER_S, STOP_S = 0.5, 0.3
LENGTHS = Lengths(duration_s=1.5, window_s=0.02, warmup_s=0.1, drain_s=1.0)


@dataclass(frozen=True)
class Sums:
    """Both ends' totals of one launch, warm-up included."""

    scheduled: int
    sent: int
    refused: int
    received: int
    lost: int

    @property
    def unaccounted(self) -> int:
        """Frames by which the two sums are wrong."""
        return abs(self.scheduled - self.sent - self.refused) + abs(self.sent - self.received - self.lost)

    @classmethod
    def of(cls, sender: ProcessOutput, receiver: ProcessOutput) -> Sums:
        """From the summaries; what is lost from sequence numbers alone."""
        assert sender.summary is not None
        assert receiver.summary is not None
        sent, received = sender.summary.sent, receiver.summary.received
        assert sent is not None
        assert received is not None
        highest = -1 if received.highest_sequence is None else received.highest_sequence
        lost = received.gaps + sent.sequences - 1 - highest
        return cls(sent.scheduled, sent.sent, sent.refused, received.received, lost)


class Stopper:
    """Stops the receiver of a launch in mid-flow, and lets it go on. Looks whenever the launch hears a line."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.run: Run | None = None
        self._stopped_at: float | None = None
        self._done = False

    def look(self, launch_output: LaunchOutput) -> bool:
        """For ``Run(enough=...)``; never ends the launch."""
        assert self.run is not None
        now, sender = time.monotonic(), launch_output.outputs[0]
        if self._stopped_at is None and len(sender.windows) * LENGTHS.window_s >= STOP_AFTER_S:
            self._signal(signal.SIGSTOP)
            self._stopped_at = now
        elif self._stopped_at is not None and not self._done and now - self._stopped_at >= STOP_S:
            self._signal(signal.SIGCONT)
            self._done = True
        return False

    def _signal(self, number: signal.Signals) -> None:
        assert self.run is not None
        with suppress(ProcessLookupError):
            os.kill(self.rig.pids(self.run.id)[1], number)


def check(settings: Settings) -> Found:
    rows: list[Row] = []
    data: dict[str, Any] = {"window_s": LENGTHS.window_s, "received_share": {}}
    with HostSession(UNDO_KINDS, settings.session_options) as session:
        cases, notes = rigs.can_run(session, [Case(name) for name in rigs.switches()])
        for case in cases:
            settings.tell(case.switch)
            with rigs.built(session, case, settings) as rig:
                rows.append(flat_out(rig, case))
                found, shares = stopped(rig, Case(case.switch, Frames(rate=RATE)))
                rows += found
                data["received_share"][case.switch] = shares
        impaired = [Case("forward", Frames(burst=4, rate=SLOW), mode=f"{kind}{EVERY}") for kind in IMPAIRMENTS]
        impaired, missing = rigs.can_run(session, impaired)
        for case in impaired:
            settings.tell(case.id)
            with rigs.built(session, case, settings) as rig:
                rows += foretold(rig, case)
    return Found(tuple(rows), data, (*notes, *missing))


def flat_out(rig: Rig, case: Case) -> Row:
    """At the maximum rate."""
    _, outputs = rigs.launch(rig, case, LENGTHS)
    return row(f"`{case.switch}`, flat out", Sums.of(outputs[0], outputs[1]))


def foretold(rig: Rig, case: Case) -> list[Row]:
    """What a forwarder does on purpose."""
    assert case.mode is not None
    kind = case.mode.rstrip("0123456789")
    # An end mark has begun the forwarder's counts anew. Without a warm-up all frames are in windows.
    launch, outputs = rigs.launch(rig, case, replace(LENGTHS, duration_s=2.0, warmup_s=0.0))
    sent, sums = launch.total("sent"), Sums.of(outputs[0], outputs[1])
    counter = IMPAIRMENTS[kind]
    expected = dict.fromkeys(IMPAIRMENTS.values(), 0)
    # The very last frame has no successor that could overtake it.
    expected[counter] = sent // EVERY - (kind == "reorder" and sent % EVERY == 0)
    rows = [row(f"`forward`, {kind} 1 in {EVERY}", sums)]
    for name, known in expected.items():
        found = launch.total(name)
        rows.append(Row(f"{name}, {kind} 1 in {EVERY} of {sent:,}", found, f"{known:,}", found == known))
    return rows


def row(what: str, sums: Sums) -> Row:
    """How many frames are missing from the books, and what became of the others."""
    fate = f"{sums.received:,} received, {sums.lost:,} lost, {sums.refused:,} refused"
    return Row(f"unaccounted, {what}: {fate}", sums.unaccounted, "0", sums.unaccounted == 0)


def stopped(rig: Rig, case: Case) -> tuple[list[Row], list[float]]:
    """With a receiver that is stopped in mid-flow; also the share of each window's frames that arrived."""
    stopper = Stopper(rig)
    run = stopper.run = Run(rig, case, LENGTHS, enough=stopper.look)
    launch = run.run(0, None)
    sums = Sums.of(run.launch_output.outputs[0], run.launch_output.outputs[1])
    what = f"`{case.switch}`, receiver stopped"
    missing = sums.lost + sums.refused
    rows = [row(what, sums), Row(f"lost or refused, {what}", missing, "above 0", missing > 0)]
    shares = [round(window.received / window.scheduled, 3) if window.scheduled else 1.0 for window in launch.windows]
    return rows, shares


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    series = data["received_share"]
    axes = figure.subplots()
    for number, (switch, shares) in enumerate(series.items()):
        times = [index * data["window_s"] for index in range(len(shares))]
        axes.step(times, [number + 0.9 * share for share in shares], where="post", linewidth=1)
        axes.axhline(number, color="#cccccc", linewidth=0.5, zorder=0)
        axes.text(times[-1] * 1.01, number + 0.3, switch)
    axes.set(xlabel="time since the first window, s", ylabel="received of scheduled, 0 to 1 each", yticks=[])
    axes.grid(axis="y", visible=False)
