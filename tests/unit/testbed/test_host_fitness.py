# SPDX-License-Identifier: BSD-3-Clause
"""Whether a host is fit now: its sentence, the wait for a quiet one, control links beside a baseline's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource import perf
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import decode, encode
from pytest_icbench.model.fitness import Control, Fitness, Link
from pytest_icbench.model.interference import Interference, Taker
from pytest_icbench.testbed import host_fitness
from pytest_icbench.testbed.host_fitness import examine, measure_link, wait_quiet
from tests.unit.scripted_rig import EXECUTABLE, FAST, MAX, ScriptedRig

QUIET = Fitness(Interference(2, 0.5, taken=0.02, stolen=0.0), 2900.0)
BUSY = Fitness(Interference(2, 0.5, taken=1.2, stolen=0.0, takers=(Taker("stress-ng-cpu", 0.98),)), 2900.0)


def test_a_quiet_host_is_fit() -> None:
    assert QUIET.fit
    assert QUIET.line == "quiet host: other processes took 0.02 of 2 CPUs, 0 % was stolen, 2900 MHz"


def test_a_busy_host_says_by_whom_and_what_helps() -> None:
    assert not BUSY.fit
    assert BUSY.line == (
        "busy host, compare within this session only: other processes took 1.20 of 2 CPUs (stress-ng-cpu 0.98), 0 %"
        " was stolen,"
        " 2900 MHz; --icbench-wait-quiet 10m waits for a quiet host"
    )
    assert "wait-quiet" not in replace(BUSY, waited_s=600.0).line


@pytest.mark.parametrize(
    ("ratios", "off"),
    [
        ((0.85, 0.7, 0.88), True),
        ((0.85, 0.95, 0.88), False),
        ((1.2, 1.15, 1.3), True),
        ((0.8, 1.2, 1.0), False),
        ((), False),
    ],
)
def test_a_control_link_is_off_if_all_its_launches_are(ratios: tuple[float, ...], off: bool) -> None:
    found = replace(QUIET, controls=(Control("veth-64B", "main", ratios),)) if ratios else QUIET
    assert found.fit is not off


@pytest.mark.parametrize(
    ("ratios", "off"),
    [((0.73, 0.75, 0.77), True), ((0.77, 0.75, 0.8), False), ((1.3, 1.35, 1.4), False), ((1.34, 1.33, 1.4), True)],
)
def test_a_control_link_is_not_off_where_sessions_had_it_so(ratios: tuple[float, ...], off: bool) -> None:
    """They lay at 87 to 120 % of their median: a tenth beyond is off."""
    found = replace(QUIET, controls=(Control("veth-64B", "main", ratios, (0.87, 1.2)),))
    assert found.fit is not off
    middle = f"{sorted(ratios)[1]:.0%}"
    assert f"control link veth-64B is at {middle} of baseline main (87% to 120% in its sessions)" in found.line


def test_a_control_link_that_is_off_is_named() -> None:
    found = replace(QUIET, controls=(Control("veth-64B", "main", (0.6, 0.62, 0.7)),))
    assert found.line.startswith(
        "other host state than the baseline's, compare within this session only: other processes took"
    )
    assert found.line.endswith("control link veth-64B is at 62% of baseline main")


def test_a_slow_clock_is_named() -> None:
    assert replace(QUIET, frequency_share=0.7).line.startswith("slow host, compare within this session only: ")
    assert "2900 MHz (70% of the greatest)" in replace(QUIET, frequency_share=0.7).line


def test_what_is_not_known_does_not_count_against_a_host() -> None:
    unknown = Fitness(Interference(2, 0.5, missing=("no times",)), missing=("no times",))
    assert unknown.fit
    assert unknown.line == "quiet host: nothing is known about other processes"


def test_it_is_read_as_it_was_written() -> None:
    found = replace(BUSY, controls=(Control("veth-64B", "main", (0.6,)),), waited_s=3.0)
    assert decode(Fitness, encode(found), "run.json") == found


def session(base: Path | None = None) -> HostSession:
    return HostSession.probing(root=None if base is None else Root(base))


def test_this_host_is_examined() -> None:
    found = examine(session(), {0}, 0.05)
    assert found.interference.cpus == 1
    assert found.interference.taken is not None


def test_a_host_that_reports_nothing_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf, "unsupported_reason", lambda: "no permit")
    found = examine(session(tmp_path), {0}, 0.01)
    assert found.interference.taken is None
    assert "/proc/stat does not have these CPUs" in found.missing[0]
    assert found.missing[1:] == (
        "the kernel counts no run delay (/proc/PID/schedstat): a thread that waits for its CPU is not seen",
        f"the kernel gives no hardware events (no permit): {perf.LACKED}, and no energy",
    )


def test_a_host_that_reports_everything_lacks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf, "unsupported_reason", lambda: None)
    assert examine(session(), {0}, 0.01).missing == ()


def looks(*found: Fitness) -> tuple[Any, list[float]]:
    """Prepared looks at a host, the last one for ever, and how long each took."""
    prepared: Iterator[Fitness] = iter(found)
    asked: list[float] = []

    def look(sample_s: float) -> Fitness:
        asked.append(sample_s)
        return next(prepared, found[-1])

    return look, asked


def test_a_quiet_host_is_not_waited_for() -> None:
    look, asked = looks(QUIET)
    assert wait_quiet(session(), {0}, 60.0, look=look) == QUIET
    assert len(asked) == 1


def test_nobody_waits_unasked() -> None:
    look, asked = looks(BUSY)
    assert wait_quiet(session(), {0}, 0.0, look=look) == BUSY
    assert len(asked) == 1


def test_the_wait_ends_once_the_host_stays_quiet() -> None:
    look, asked = looks(BUSY, QUIET, BUSY, QUIET, QUIET, QUIET, BUSY)
    reported: list[Fitness] = []
    found = wait_quiet(session(), {0}, 60.0, lambda seen, _left: reported.append(seen), look)
    assert found.quiet
    assert len(asked) == 6
    assert reported[0] == BUSY


def test_the_wait_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr("pytest_icbench.testbed.host_fitness.time.monotonic", lambda: float(next(clock)))
    look, _ = looks(BUSY)
    left: list[float] = []
    found = wait_quiet(session(), {0}, 10.0, lambda _seen, seconds: left.append(seconds), look)
    assert not found.quiet
    assert found.waited_s >= 10.0
    assert left == [6.0, 2.0]


def link(rig: ScriptedRig, monkeypatch: pytest.MonkeyPatch) -> Link | str:
    monkeypatch.setenv("ICBENCH_WORKLOAD", str(EXECUTABLE))
    monkeypatch.setattr("pytest_icbench.measure.launch.launcher.workload_path", lambda: EXECUTABLE)
    monkeypatch.setitem(host_fitness._CONTROL, "warmup_s", 0.0)  # scripted processes begin with the first window
    settings = replace(FAST, window_s=0.02)
    return measure_link(MAX, rig, "udp", settings)  # type: ignore[arg-type]


def test_a_control_link_is_measured_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = ScriptedRig()
    found = link(rig, monkeypatch)
    assert isinstance(found, Link)
    assert (found.case, found.switch, found.launches) == (Case("veth", api="udp").id, "veth", (50_000.0,) * 3)
    assert found.beside("main", [100_000.0]) == Control(found.case, "main", (0.5, 0.5, 0.5))
    beside = found.beside("main", [80_000.0, 120_000.0, 100_000.0])
    assert beside == Control(found.case, "main", (0.5, 0.5, 0.5), (0.84, 1.16))
    assert "sessions" not in found.beside("main", [99_900.0, 100_100.0]).sentence
    assert rig.log[0] == "rig build"
    assert rig.log[-1] == "rig close"


def test_a_control_link_that_cannot_be_built_costs_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = ScriptedRig()

    def build() -> None:
        raise ProvisionError("no huge page is free\nmore")

    rig.build = build  # type: ignore[method-assign]
    assert link(rig, monkeypatch) == "control link veth was not measured: no huge page is free"
    assert rig.log[-1] == "rig close"
