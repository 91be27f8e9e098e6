# SPDX-License-Identifier: BSD-3-Clause
"""How long a launch waits for its processes to end: a switch that hangs, or a late peer, costs nobody time."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from pytest_icbench.errors import WorkloadError
from pytest_icbench.measure.launch import launcher
from pytest_icbench.model.interference import Interference, Taker
from pytest_icbench.model.rig import Polled
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.switch_facts import Busy
from tests.unit.scripted_rig import FAST, ScriptedRig, one

#: It ends as soon as it has ten windows that are alike.
WAITING = Settings(warmup_s=0.0, max_warmup_s=0.04, duration_s=0.2, window_s=0.02, drain_s=0.02, repeats=1)


@dataclass
class LateRig(ScriptedRig):
    """A rig whose processes say their summaries late, by a clock that goes ahead instead of waiting.

    Attributes:
        ends: whether a process says its summary now.
        answers_s: times that the switch takes to answer how busy it was.
    """

    ends: Callable[[int], bool] = lambda index: True
    answers_s: Iterator[float] = field(default_factory=lambda: itertools.repeat(0.0))
    ahead_s: float = 0.0
    _held: list[tuple[int, str]] = field(default_factory=list)

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s

    monotonic_ns = staticmethod(time.monotonic_ns)
    time = staticmethod(time.time)

    def poll(self, launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        lines = [*self._held, *super().poll(launch_id, 0).lines]
        self._held = [(index, line) for index, line in lines if '"summary"' in line and not self.ends(index)]
        if self._held == lines:
            self.ahead_s += timeout_s
        return Polled(tuple(line for line in lines if line not in self._held))

    def busy(self) -> Busy | None:
        self.ahead_s += next(self.answers_s)
        return None

    @property
    def reported(self) -> bool:
        return "rig told stop" in self.log


def late(monkeypatch: pytest.MonkeyPatch) -> LateRig:
    rig = LateRig()
    monkeypatch.setattr(launcher, "time", rig)
    return rig


def test_a_launch_that_ends_early_gives_its_processes_what_a_hanging_switch_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig, polls = late(monkeypatch), []
    rig.answers_s = iter([0.0, 5.0])

    def ends(index: int) -> bool:
        polls.append(rig.reported)
        return sum(polls) > 4  # neither end has at the first look after it was told

    rig.ends = ends
    assert one(rig, settings=WAITING).invalid is None
    assert rig.reported


def test_a_receiver_has_its_time_after_a_sender_that_ended_late(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = late(monkeypatch)
    rig.ends = lambda index: rig.reported if index else rig.ahead_s > launcher.END_MARGIN_S - 0.3
    assert one(rig, settings=FAST).invalid is None


def test_a_receiver_that_does_not_end_although_it_was_reported_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = late(monkeypatch)
    rig.ends = lambda index: index == 0
    with pytest.raises(WorkloadError, match=r"recv of pair 1: still running 3\.\d s after the measured time; it hangs"):
        one(rig, settings=FAST)
    assert rig.reported


@pytest.mark.parametrize(
    ("waited", "by", "why"),
    [
        (
            0.97,
            0,
            (
                "it did not get its CPU, so nothing is claimed: other processes took 1.00 of 2 CPUs (stress 0.97),"
                " endpoint 0"
            ),
        ),
        (0.97, 1, "it hangs"),
        (0.1, 0, "it hangs"),
    ],
)
def test_a_process_that_never_gets_its_cpu_is_reported_from_one_that_hangs(
    monkeypatch: pytest.MonkeyPatch, waited: float, by: int, why: str
) -> None:
    rig = late(monkeypatch)
    takers = (Taker("stress", waited),)
    rig.interferences = itertools.repeat(Interference(2, 3.0, 1.0, 0.0, waited, f"endpoint {by}", takers))
    rig.ends = lambda index: index == 1
    with pytest.raises(WorkloadError, match=rf"send of pair 1: .*; {re.escape(why)}"):
        one(rig, settings=FAST)
