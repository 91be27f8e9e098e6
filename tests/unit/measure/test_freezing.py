# SPDX-License-Identifier: BSD-3-Clause
"""Functions that are frozen and thawed while a launch runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.config.capabilities import unsupported_reason
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError
from pytest_icbench.measure.launch.launcher import Freezing, run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate, named_rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trace import Trace
from tests.unit.scripted_rig import EXECUTABLE, FAST, MAX, ScriptedRig

TRACE = Trace.of("freeze:20k")
CASE = Case("veth", Frames(rate=Rate(trace=TRACE)), function="wire", pairs=30)


@dataclass
class FreezingRig:
    frozen: list[tuple[int, ...]] = field(default_factory=list)

    def freeze(self, pairs: tuple[int, ...]) -> None:
        self.frozen.append(pairs)


def freezing(case: Case = CASE) -> tuple[Freezing, FreezingRig]:
    rig: Any = FreezingRig()
    return Freezing(rig, case, Settings()), rig


def test_half_of_the_functions_are_thawed_in_steps_and_frozen_again() -> None:
    assert TRACE is not None
    running = [30 - len(TRACE.frozen(second, 30)) for second in range(0, TRACE.seconds, 3)]
    assert running == [15, 20, 25, 30, 25, 20, 15]
    assert set(TRACE.rates(30)) == {20_000}
    assert TRACE.due(30, 30) == (0,) * 9 + (20_000,) * 3 + (0,) * 9
    assert [TRACE.frozen(second, 3) for second in (0, 9)] == [(3,), ()]
    assert named_rate("trace:freeze:20k") == CASE.rate
    assert named_rate(str(CASE.rate)) == CASE.rate


def test_each_second_of_a_launch_has_its_functions_and_all_run_at_its_end() -> None:
    schedule, rig = freezing()
    schedule.begin()
    schedule.follow(100.0)
    assert schedule.due == 101.0
    assert schedule.step(100.9) == 0
    for second in range(1, 21):
        schedule.step(100.0 + second)
    assert TRACE is not None
    assert rig.frozen == [TRACE.frozen(second, 30) for second in range(21)]
    assert schedule.due == float("inf")
    schedule.end()
    assert rig.frozen[-1] == ()


def test_other_loads_freeze_nothing() -> None:
    schedule, rig = freezing(CASE.sending(rate=Rate(1000)))
    schedule.begin()
    schedule.follow(100.0)
    schedule.step(200.0)
    schedule.end()
    assert rig.frozen == []


def test_frames_to_a_frozen_function_are_not_awaited() -> None:
    schedule, _ = freezing()
    windows: list[Any] = [SimpleNamespace(pair=30, number=number) for number in (90, 91, 120, 121)]
    assert [schedule.awaits(window) for window in windows] == [False, True, True, False]


def test_a_launch_ends_whether_its_functions_can_be_thawed_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Freezing) -> None:
        raise ProvisionError("cannot be thawed")

    monkeypatch.setattr(Freezing, "end", fail)
    rig = ScriptedRig(preflighted=True)
    with pytest.raises(ProvisionError, match="cannot be thawed"):
        run_launch(rig, MAX, FAST, index=0, executable=EXECUTABLE)
    assert rig.log[-1].endswith(" end")


@pytest.mark.parametrize("changed", [{"function": None}, {"pairs": 1}, {"chain": 2}, {"dimension": "latency"}])
def test_cases_without_functions_to_freeze_are_refused(changed: dict[str, Any]) -> None:
    cls = builtin_switches()["veth"]
    assert unsupported_reason(CASE, cls, 256) is None
    assert "freezes half of the functions side by side" in (
        unsupported_reason(replace(CASE, **changed), cls, 256) or ""
    )
