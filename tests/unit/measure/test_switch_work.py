# SPDX-License-Identifier: BSD-3-Clause
"""Busy share, cycles and hardware events per frame, from two samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_icbench.driver.switch.protocol import Busy
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.resource import perf
from pytest_icbench.measure.launch.switch_work import Work, WorkTrack

HZ = 2_000_000_000


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves one second with every look."""
    now: Iterator[float] = iter(float(second) for second in range(100))
    monkeypatch.setattr("time.monotonic", lambda: next(now))


def between(busy: list[Busy | None], events: list[Any] | None = None, pps: float = 1e6, hz: int | None = HZ) -> Work:
    answers, counted = iter(busy), iter(events or [None] * len(busy))
    track = WorkTrack(lambda: next(answers), lambda: next(counted), lambda: None, lambda: None)
    for _ in busy:
        track.sample()
    return track.between(pps, hz)


@pytest.mark.parametrize(
    ("samples", "share", "cycles"),
    [
        ([Busy(1000, 1000), Busy(900_001_000, 100_001_000)], 0.9, 900.0),
        ([Busy(0, workers=2), Busy(1_000_000_000, workers=2)], 0.25, 1000.0),
        ([Busy(0, workers=1), Busy(2_100_000_000, workers=1)], 1.0, 2100.0),
        ([Busy(busy_ns=5), Busy(busy_ns=500_000_005)], None, 1000.0),
        ([Busy(0, 0), Busy(0, 0)], None, 0.0),
        ([Busy(5), Busy(105)], None, 0.0001),
        ([None, None], None, None),
        ([Busy(0, 0)], None, None),
        ([Busy(0, 0, far=Busy(0, 0)), Busy(600, 400, far=Busy(980, 20))], 0.98, 0.0006),
        ([Busy(0, 0, far=Busy(0, 0)), Busy(900, 100, far=Busy(10, 90))], 0.9, 0.0009),
        ([Busy(0, 0, far=Busy(0)), Busy(600, 400, far=Busy(980))], None, 0.0006),
    ],
    ids=[
        *("cycles", "workers", "a reading late", "time", "a still clock", "no idle cycles", "silent", "one sample"),
        *("a busy far half", "an idle far half", "a far half that does not tell"),
    ],
)
@pytest.mark.usefixtures("seconds")
def test_the_switchs_work(samples: list[Busy | None], share: float | None, cycles: float | None) -> None:
    found = between(samples)
    assert found.busy_share == share
    assert found.cycles_per_packet == (None if cycles is None else pytest.approx(cycles))


@pytest.mark.usefixtures("seconds")
def test_wakeups_are_counted_for_workers_that_sleep_alone() -> None:
    assert between([Busy(0, wakeups=10), Busy(9, wakeups=50_010)]).wakeups_per_s == 50_000
    assert between([Busy(0), Busy(9)]).wakeups_per_s is None
    assert between([Busy(0, wakeups=10)]).wakeups_per_s is None


def refusing(check: Callable[[], None]) -> tuple[WorkTrack, list[str]]:
    """A switch that does not answer, and what it was asked."""
    asked: list[str] = []

    def ask(what: str) -> None:
        asked.append(what)
        raise ProvisionError("no answer within 2 s")

    return WorkTrack(lambda: ask("busy"), lambda: None, lambda: ask("batches"), check), asked


def test_a_switch_that_lives_and_does_not_answer_is_asked_no_more() -> None:
    track, asked = refusing(lambda: None)
    track.sample()
    track.sample()
    assert asked == ["busy"]
    assert track.between(1e6, HZ) == Work()


def test_a_dead_switch_is_the_error() -> None:
    def check() -> None:
        raise ProvisionError("vpp was killed by signal 9")

    track, _ = refusing(check)
    with pytest.raises(ProvisionError, match="killed by signal 9"):
        track.sample()


@pytest.mark.usefixtures("seconds")
def test_without_frames_or_a_clock_there_is_no_figure() -> None:
    assert between([Busy(0, 0), Busy(5, 5)], pps=0) == Work(0.5, None, None)
    assert between([Busy(busy_ns=0), Busy(busy_ns=5)], hz=None) == Work(None, None, None)


@pytest.mark.usefixtures("seconds")
def test_hardware_events_per_frame() -> None:
    first = {"endpoints": {"cycles": 5, "llc_misses": 1}}
    last = {"endpoints": {"cycles": 500_000_005, "llc_misses": 1_000_001}, "switch": {"cycles": 1}}
    found = between([None, None], [first, last])
    assert found.hardware == {"endpoints": {"cycles": 500.0, "llc_misses": 1.0}}
    assert between([None, None], [first, None]).hardware is None
    assert between([None, None], [first, last], pps=0).hardware is None


def test_counters_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same calls with an event that every kernel has: the task's own clock (PERF_COUNT_SW_TASK_CLOCK)."""
    monkeypatch.setattr(perf, "_HARDWARE", 1)
    monkeypatch.setattr(perf, "EVENTS", {"clock": 1})
    try:
        counters = perf.Counters([(0, -1)])
    except PermissionError as error:
        pytest.skip(f"this kernel lets nobody but root count: {error}")
    first = counters.read()["clock"]
    sum(range(100_000))
    assert counters.read()["clock"] > first >= 0
    counters.close()
    counters.close()


def test_a_kernel_that_gives_no_events_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf, "_HARDWARE", 1)
    monkeypatch.setattr(perf, "EVENTS", {"nonsense": 12345})
    assert perf.unsupported_reason() in ("No such file or directory", "Invalid argument", "Permission denied")
    with pytest.raises(OSError, match=r"No such|Invalid|denied"):
        perf.Counters([(0, -1)])
