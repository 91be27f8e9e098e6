# SPDX-License-Identifier: BSD-3-Clause
"""Launches that wait for a stationary rate: what is kept of them, when they end, what they say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.config.options import Options, merge_settings
from pytest_icbench.driver.workload.output import WindowLine, WindowRtt
from pytest_icbench.measure.launch.processes import LaunchOutput
from pytest_icbench.measure.launch.stationarity import Settling, SettlingTimes, received_by_window
from pytest_icbench.model.rig import LaunchPlan, PlannedProcess, Polled
from pytest_icbench.model.settings import Settings
from tests.measurements import launch
from tests.unit.scripted_rig import FRAMES, MAX, RTT, ScriptedRig, one, run

#: Twelve windows, of which the last ten at most are measured.
WAITING = Settings(warmup_s=0.0, max_warmup_s=0.04, duration_s=0.2, window_s=0.02, drain_s=0.02, repeats=1)

Edit = Callable[[int, dict[str, Any]], dict[str, Any] | None]


def slow_until(number: int, share: float) -> Edit:
    """Only a part of the frames arrives in the first windows; the accounts are right."""

    def edit(index: int, line: dict[str, Any]) -> dict[str, Any] | None:
        missing = round(FRAMES * (1 - share))
        if index == 1 and line["type"] == "window" and line["window"] <= number:
            return {**line, "received": FRAMES - missing}
        if index == 1 and line["type"] == "summary":
            return {**line, "received": line["received"] - number * missing, "gaps": number * missing}
        return line

    return edit


def test_a_steady_launch_keeps_its_first_windows_and_says_that_it_was_stationary() -> None:
    found = one(ScriptedRig(), settings=WAITING)
    assert (found.invalid, found.stationary, found.discarded_s) == (None, True, 0)
    assert [window.kept for window in found.windows] == [True] * 10 + [False] * 2
    assert found.duration_s == pytest.approx(0.2)


def test_a_slow_start_is_discarded_and_reported() -> None:
    found = one(ScriptedRig(edit=slow_until(2, 0.5)), settings=WAITING)
    assert (found.stationary, found.discarded_s) == (True, pytest.approx(0.04))
    assert [window.kept for window in found.windows] == [False] * 2 + [True] * 10
    assert found.throughput_pps == pytest.approx(FRAMES / 0.02)
    assert found.total("lost") == 0


def test_what_does_not_settle_in_time_is_measured_and_counted() -> None:
    found = run(ScriptedRig(edit=slow_until(6, 0.5)), max_warmup_s=0.04, duration_s=0.2, repeats=1)
    (launch,) = found.per_launch
    assert (launch.stationary, launch.discarded_s) == (False, pytest.approx(0.04))
    assert (found.unsettled_launches, found.discarded_s, found.verdict) == (1, pytest.approx(0.04), None)


def test_a_path_that_falls_silent_has_stalled_though_its_silence_is_steady() -> None:
    def silent(index: int, line: dict[str, Any]) -> dict[str, Any] | None:
        if index == 1 and line["type"] == "window" and line["window"] > 2:
            return {**line, "received": 0, "first_ns": None, "last_ns": None}
        if index == 1 and line["type"] == "summary":
            return {**line, "received": 2 * FRAMES, "highest_sequence": 2 * FRAMES - 1, "gaps": 0}
        return line

    found = one(ScriptedRig(edit=silent), settings=WAITING)
    assert (found.invalid, found.evidence) == ("stalled", "pair 1: nothing arrived in the last 10 of 12 windows")


def test_senders_are_asked_for_the_longest_launch_and_round_trips_have_a_fixed_warm_up() -> None:
    rig = ScriptedRig()
    one(rig, settings=WAITING)
    assert option(rig, "--duration") == pytest.approx(0.24)
    found = one(rig, RTT, WAITING)
    assert option(rig, "--duration") == pytest.approx(0.2)
    assert option(rig, "--warmup") == 0.25
    assert (found.stationary, found.discarded_s) == (None, 0)


def option(rig: ScriptedRig, name: str) -> float:
    argv = rig.plan.processes[0].argv
    return float(argv[argv.index(name) + 1])


def outputs(*received: list[int]) -> LaunchOutput:
    """A sender that has ended three windows beside receivers that have told of theirs."""
    from pytest_icbench.measure.launch.commands import commands

    rig = ScriptedRig()
    launch_output = LaunchOutput(commands(rig, MAX, WAITING))
    rig.launch(LaunchPlan((PlannedProcess(0, ("", "send", "--window", "0.02", "--duration", "0.06")),)))
    rig.start("l1")
    launch_output.take(Polled(tuple(line for line in rig.poll("l1", 0).lines if "summary" not in line[1])))
    other = ScriptedRig()
    other.launch(LaunchPlan((PlannedProcess(1, ("", "recv", "--window", "0.02", "--duration", "0.06")),)))
    other.start("l1")
    lines = tuple(line for line in other.poll("l1", 0).lines if '"type": "window"' in line[1])
    launch_output.take(Polled(lines[: len(received[0])]))
    return launch_output


def test_a_window_is_complete_when_both_ends_have_reported_it() -> None:
    assert received_by_window(outputs([1, 1, 1])) == [FRAMES] * 3
    assert received_by_window(outputs([1, 1])) == [FRAMES] * 2
    # Nothing came in window 2, or its frames would have been told before the sender ended window 3.
    assert received_by_window(outputs([1])) == [FRAMES, 0.0]


def test_a_launch_ends_as_soon_as_it_has_what_it_needs() -> None:
    settling = Settling(Settings(warmup_s=0.0, max_warmup_s=1.0, duration_s=0.02, window_s=0.02))
    assert not settling.enough(outputs([1, 1, 1]))
    assert settling.settled is None


@pytest.mark.parametrize(
    ("marker", "adaptive"),
    [
        ({}, True),
        ({"duration_s": 0.5}, True),
        ({"repeats": 3}, True),
        ({"warmup_s": 0.3}, False),
        ({"skip_s": 0.1}, False),
        ({"keep_s": 0.5}, False),
        ({"protocol": "thesis"}, False),
        ({"max_warmup_s": 0.0}, False),
        ({"warmup_s": 0.3, "max_warmup_s": 1.0}, True),
    ],
)
def test_who_names_a_warm_up_gets_a_fixed_one(marker: dict[str, Any], adaptive: bool) -> None:
    assert merge_settings(Options(), marker, {}, "here").settles == adaptive


#: Ten windows measured, and up to eighteen discarded.
TIMES = Settings(warmup_s=0.25, max_warmup_s=2.0, duration_s=1.0, window_s=0.1)


class Clients:
    """A launch's output of one client with these medians; told to begin anew, it does so two windows later."""

    def __init__(self, medians: Callable[[int], int | None]) -> None:
        self.medians = medians
        self.restarts: list[int] = []
        self.begin, self.asked = 1, False
        self.windows: dict[int, WindowLine] = {}
        self.output: Any = SimpleNamespace(asks=True, windows=self.windows, index=0, pair=1, summary=None)
        self.outputs = {0: self.output, 1: SimpleNamespace(asks=False, windows={}, index=1, pair=1, summary=None)}
        self.settling = SettlingTimes(TIMES, self, self.restart)  # type: ignore[arg-type]

    def restart(self) -> None:
        self.restarts.append(len(self.windows))
        self.asked = True

    def run(self) -> int:
        """Windows until the launch has enough, or its time is over."""
        for number in range(1, round(TIMES.sending_s / TIMES.window_s) + 1):
            if self.asked:
                self.begin, self.asked = number + 2, False
            rtt = WindowRtt(count=100, min_ns=1, mean_ns=1, p50_ns=self.medians(number), p99_ns=None, max_ns=9)
            self.windows[number] = WindowLine("client", 1, number, 0, None, None, rtt=rtt, rtt_from=self.begin)
            if self.settling.enough(self):  # type: ignore[arg-type]
                break
        self.output.summary = SimpleNamespace(rtt_from=self.begin)
        return len(self.windows)

    def kept(self) -> list[int]:
        made = [replace(window, number=number) for number in self.windows for window in launch(windows=1).windows]
        return [window.number for window in self.settling.keep(made) if window.kept]


def test_steady_round_trips_cost_no_time() -> None:
    clients = Clients(lambda number: 20_000 + 200 * (number % 2))
    assert (clients.run(), clients.restarts) == (10, [])
    assert (clients.settling.stationary, clients.settling.discarded_s) == (True, 0)
    assert clients.kept() == list(range(1, 11))


def test_histograms_begin_anew_behind_round_trips_that_are_not_like_the_rest() -> None:
    clients = Clients(lambda number: 40_000 if number <= 4 else 20_000)
    assert clients.run() == 22
    assert clients.restarts == [10]
    assert clients.settling.stationary is True
    assert clients.settling.discarded_s == pytest.approx(1.2)
    assert clients.kept() == list(range(13, 23))


def test_round_trips_that_never_settle_are_measured_and_said() -> None:
    clients = Clients(lambda number: 20_000 + 2_000 * number)
    assert (clients.run(), clients.restarts) == (22, [10])
    assert (clients.settling.stationary, clients.kept()) == (False, list(range(13, 23)))


def test_a_client_that_cannot_begin_anew_is_unsettled_at_its_end() -> None:
    clients = Clients(lambda number: 40_000 if number <= 4 else 20_000)
    clients.restart = lambda: None  # type: ignore[method-assign]
    clients.settling = SettlingTimes(TIMES, clients, clients.restart)  # type: ignore[arg-type]
    assert clients.run() == round(TIMES.sending_s / TIMES.window_s)
    assert clients.kept()[0] == 1
    assert clients.settling.stationary is False


def test_windows_with_too_few_answers_for_a_median_tell_nothing() -> None:
    clients = Clients(lambda number: None if number % 2 else 20_000)
    assert (clients.run(), clients.settling.stationary) == (10, None)


def test_an_unsettled_launch_of_round_trips_is_counted() -> None:
    def edit(index: int, line: dict[str, Any]) -> dict[str, Any]:
        if line["type"] == "window" and line["role"] == "client":
            p50 = 1000 * line["window"]
            return {**line, "rtt": {"count": 99, "min_ns": 1, "mean_ns": 1, "p50_ns": p50, "p99_ns": None, "max_ns": 9}}
        return line

    waiting = replace(WAITING, max_warmup_s=0.5)
    rig = ScriptedRig(edit=edit)
    assert one(rig, RTT, waiting).stationary is False
    assert option(rig, "--duration") == pytest.approx(0.45)
    assert one(ScriptedRig(), RTT, waiting).stationary is None
    short = replace(waiting, duration_s=0.1)  # too few windows to judge
    rig = ScriptedRig(edit=edit)
    assert one(rig, RTT, short).stationary is None
    assert option(rig, "--duration") == pytest.approx(0.1)
