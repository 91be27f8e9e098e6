# SPDX-License-Identifier: BSD-3-Clause
"""An endpoint that fails is the last to be blamed: first the switch, dead or about to be, then one that is stopped."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.measure.launch import culprit
from pytest_icbench.model.rig import LaunchPlan, Polled
from tests.unit.scripted_rig import PACED, ScriptedRig, run

DEATH = "icbench-basicfwd was killed by signal 11 (Segmentation fault); its log is empty"
STOPPED = "testpmd (process 7) was stopped by a signal, as SIGSTOP does"


class Dying(ScriptedRig):
    """The kernel is still taking its switch apart when its endpoint fails: it is dead at the third look."""

    looks = 0

    def check(self) -> None:
        self.looks += 1
        if self.looks >= 3:
            raise ProvisionError(DEATH)


class Refusing(Dying):
    """The first process of a launch ends before its peer can be started."""

    def launch(self, plan: LaunchPlan) -> str:
        raise WorkloadError("icbench-workload of endpoint 0 ended with exit code 3 before it opened /s")


class Failing(ScriptedRig):
    """A process ends before it is ready."""

    def poll(self, launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        return Polled((), {1: 3})


class DyingAndFailing(Dying, Failing): ...


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy host: the switch takes its time to die."""
    monkeypatch.setattr(culprit, "DIES_WITHIN_S", 20.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("preflighted", [True, False])
@pytest.mark.parametrize("rig", [Dying, DyingAndFailing, Refusing])
def test_a_switch_that_is_about_to_be_dead_is_named_and_not_its_endpoint(
    rig: type[ScriptedRig], preflighted: bool
) -> None:
    made: Any = rig(exits={1: 3}, preflighted=preflighted)
    found = run(made, case=PACED)
    assert (found.verdict, found.reason, found.evidence) == ("INVALID", "died", DEATH)
    assert made.looks >= 3


@pytest.mark.usefixtures("patient")
def test_a_program_that_asks_a_dying_switch_does_not_make_it_a_stalled_one() -> None:
    def refuse(launch_id: str, delay_s: float = 0.0) -> int:
        raise ProvisionError("`ovs-appctl` failed with exit code 1")

    rig = Dying()
    rig.start = refuse  # type: ignore[method-assign]
    assert (run(rig).reason, run(rig).evidence) == ("died", DEATH)


@pytest.mark.parametrize("preflighted", [True, False])
def test_an_endpoint_that_fails_beside_a_stopped_switch_is_not_blamed(preflighted: bool) -> None:
    found = run(Failing(preflighted=preflighted, fault=STOPPED))
    assert (found.verdict, found.reason) == ("INVALID", "no-forwarding")
    assert str(found.evidence).startswith(f"{STOPPED}; ")
    assert "of pair 1 ended with exit code 3 (set-up failed)" in str(found.evidence)


def test_the_wait_for_a_switch_that_lives_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, monotonic=lambda: sum(slept))
    monkeypatch.setattr(culprit, "time", clock)
    monkeypatch.setattr(culprit, "DIES_WITHIN_S", 1.0)
    with pytest.raises(WorkloadError, match="set-up failed"), culprit.switch_first(ScriptedRig()):
        raise WorkloadError("set-up failed")
    assert sum(slept) == pytest.approx(1.0, abs=0.05)


def test_a_preflight_whose_process_was_killed_is_made_again() -> None:
    rig = ScriptedRig(exits={1: -9}, preflighted=False)
    end = rig.end

    def mend(launch_id: str) -> None:
        rig.exits.clear()
        end(launch_id)

    rig.end = mend  # type: ignore[method-assign]
    found = run(rig)
    assert (found.verdict, found.launches) == (None, 3)
    assert [fault.split(":")[0] for fault in found.faults] == ["died"]
