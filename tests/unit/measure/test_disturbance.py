# SPDX-License-Identifier: BSD-3-Clause
"""Launches that others disturb: known by what was taken, repeated a few times, kept and told."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.kinds.runs import recomputed
from pytest_icbench.measure import repetition
from pytest_icbench.measure.launch.disturbance import LEAST_S, why_disturbed
from pytest_icbench.measure.repetition import MOST_DISTURBED
from pytest_icbench.model.fitness import too_disturbed
from pytest_icbench.model.interference import Interference, Taker, Throttled, joined
from pytest_icbench.model.launch import EndpointWork, Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from tests.unit.scripted_rig import RTT, ScriptedRig, one, place, run
from tests.unit.search_model import Model, find, timeless

QUIET = Interference(2, 1.0, taken=0.02, stolen=0.0, waited=0.001, waited_by="endpoint 0")
BUSY = replace(QUIET, taken=0.52, takers=(Taker("stress-ng-cpu", 0.48),))


@pytest.mark.parametrize(
    ("changes", "disturbed"),
    [
        ({}, False),
        ({"taken": 0.11}, True),
        ({"taken": 0.09}, False),
        ({"taken": 0.09, "cpus": 1}, True),
        ({"stolen": 0.05}, True),
        ({"waited": 0.06}, True),
        ({"taken": 0.2, "seconds": 0.1}, False),  # two ticks
        ({"taken": None, "stolen": None, "waited": None}, False),
        ({"seconds": 0.0, "taken": 2.0}, False),
    ],
)
def test_a_launch_is_disturbed_by_what_others_took(changes: dict[str, float], disturbed: bool) -> None:
    assert (why_disturbed(replace(QUIET, **changes)) is not None) is disturbed  # type: ignore[arg-type]


def test_it_is_reported_by_whom() -> None:
    assert why_disturbed(BUSY) == "other processes took 0.52 of 2 CPUs (stress-ng-cpu 0.48)"
    waiting = replace(BUSY, waited=0.2, stolen=0.1)
    assert why_disturbed(waiting) == (
        "other processes took 0.52 of 2 CPUs (stress-ng-cpu 0.48), endpoint 0 waited 20.0% of the time for its CPU,"
        " the hypervisor took 0.10"
    )
    assert why_disturbed(None) is None


def test_a_quota_is_reported_instead_of_what_others_took() -> None:
    found = replace(BUSY, waited=0.2, throttled=(Throttled("/ci/job", 1.5, 37, 50),))
    reported = "group /ci/job was throttled in 37 of 50 periods (quota 1.5 CPUs)"
    assert why_disturbed(found) == f"{reported}, endpoint 0 waited 20.0% of the time for its CPU"
    assert why_disturbed(replace(QUIET, throttled=found.throttled)) == reported
    both = joined(found, replace(QUIET, throttled=(Throttled("/", 1.0, 1, 2),)))
    assert both is not None
    assert both.words.startswith(f"{reported}, group / was throttled in 1 of 2 periods (quota 1 CPU), ")


@given(st.floats(0, 4), st.floats(0.001, 10), st.integers(1, 8))
def test_more_of_the_same_never_disturbs_less(taken: float, seconds: float, cpus: int) -> None:
    seen = replace(QUIET, taken=taken, seconds=seconds, cpus=cpus)
    if why_disturbed(seen) is not None:
        assert taken * seconds > LEAST_S
        assert why_disturbed(replace(seen, taken=2 * taken)) is not None


def test_two_hosts_are_one_path() -> None:
    there = Interference(1, 1.0, taken=0.5, stolen=0.1, waited=0.2, waited_by="switch", takers=(Taker("make", 0.5),))
    both = joined(BUSY, there)
    assert both is not None
    assert (both.cpus, both.taken, both.waited, both.waited_by) == (3, 1.02, 0.2, "switch")
    assert [taker.name for taker in both.takers] == ["make", "stress-ng-cpu"]
    assert joined(BUSY, None) is None
    unknown = joined(BUSY, replace(there, taken=None, waited=None, missing=("no run delay",)))
    assert unknown is not None
    assert (unknown.taken, unknown.waited, unknown.missing) == (None, None, ("no run delay",))


def measured(*seen: Interference | None, repeats: int = 3) -> Measurement:
    rig = ScriptedRig(interferences=iter(seen))
    found: Measurement = run(rig, repeats=repeats)
    return found


def test_a_disturbed_launch_is_repeated_and_kept() -> None:
    found = measured(QUIET, BUSY, QUIET, QUIET)
    assert (found.launches, found.disturbed_launches, found.disturbed_repeated) == (3, 0, 1)
    assert [launch.repeated for launch in found.per_repeated_launch] == ["case"]
    assert found.per_repeated_launch[0].windows
    assert all(window.disturbed for window in found.per_repeated_launch[0].windows)
    assert found.disturbed_windows == 0
    assert "stress-ng-cpu 0.48" in str(found.disturbance)


def test_repeats_are_few_and_what_stays_disturbed_is_counted() -> None:
    found = measured(*[BUSY] * 20)
    assert (found.launches, found.disturbed_launches, found.disturbed_repeated) == (3, 3, MOST_DISTURBED)
    assert found.disturbed_windows == found.windows == 9
    assert sorted(launch.index for launch in found.per_repeated_launch) == [0, 1, 2]


def test_repeats_cost_at_most_a_share_of_the_time() -> None:
    rig = ScriptedRig(interferences=iter([BUSY] * 20))
    found = run(rig, max_duration_s=1e-6)
    assert (found.launches, found.disturbed_launches, found.disturbed_repeated) == (3, 3, 0)


def test_what_was_measured_has_no_say() -> None:
    """A launch that lost half of its frames is kept; the undisturbed one that follows a disturbed one counts."""
    rig = ScriptedRig(path=lambda sent: sent // 2, interferences=iter([QUIET] * 3))
    assert run(rig).disturbed_repeated == 0


def test_a_long_run_is_not_repeated(tmp_path: object) -> None:
    rig = ScriptedRig(interferences=iter([BUSY] * 20))
    found = run(rig, repeats=1, stream=f"{tmp_path}/stream.jsonl")
    assert (found.launches, found.disturbed_launches, found.disturbed_repeated) == (1, 1, 0)


def test_without_a_watch_nothing_is_claimed() -> None:
    found = measured()
    assert (found.disturbed_launches, found.disturbance, found.disturbed_repeated) == (None, None, 0)


def test_what_other_independent_checks_say_counts_without_a_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed(monkeypatch, *range(6))
    found = find(Model(3e6), None, Rate(), repeats=6, max_duration_s=1)
    assert (found.launches, found.disturbed_launches, found.disturbance) == (6, 6, "other processes took a CPU")
    assert too_disturbed(found)


def test_a_disturbed_result_is_computed_anew_as_it_was() -> None:
    found = replace(
        measured(QUIET, BUSY, BUSY, BUSY, BUSY, QUIET),
        treatment={"endpoints": ["veth"] * 4, "cpus": {"endpoints": [0, 1, 2, 3]}},
    )
    again = recomputed(Measurement.from_dict(found.to_dict(windows=True)))
    assert again == found


def test_the_reference_is_watched_too() -> None:
    rig, reference = ScriptedRig(), ScriptedRig(interferences=iter([BUSY, QUIET, QUIET, QUIET]))
    found = run(rig, reference)
    assert [launch.repeated for launch in found.per_repeated_launch] == ["reference"]
    assert len(found.per_reference_launch) == 3


@pytest.mark.parametrize(("service", "marked"), [((), True), ((0,), False), ((9,), True)])
def test_without_a_cpu_for_the_rest_switches_are_the_harness_own(service: tuple[int, ...], marked: bool) -> None:
    rig = ScriptedRig(
        placement=replace(place(), service=service),
        edit=lambda index, line: {**line, "involuntary_switches": 1} if line["type"] == "window" else line,
    )
    launch: Launch = one(rig)
    assert all(window.disturbed is marked for window in launch.windows)


def test_round_trips_are_repeated_alike() -> None:
    rig = ScriptedRig(interferences=iter([BUSY, QUIET, QUIET, QUIET]))
    assert run(rig, case=RTT).disturbed_repeated == 1


def test_gaps_of_a_loop_disturb_unless_endpoints_share_a_cpu() -> None:
    gaps = (EndpointWork(0, 0.02, 3), EndpointWork(1, 0.12, 9), EndpointWork(2))
    assert why_disturbed(QUIET, gaps, 1.0) == "endpoint 1 lost 12.0% of the time in gaps"
    assert why_disturbed(None, gaps, 1.0) is not None
    # A gap belongs to the window in which it began, and can be longer than all of them.
    assert why_disturbed(QUIET, (EndpointWork(0, 1.87, 1),), 1.0) == "endpoint 0 lost 100.0% of the time in gaps"
    assert why_disturbed(QUIET, gaps, 1.0, shared=True) is None
    assert why_disturbed(QUIET, gaps, 4.0) is None


@pytest.mark.parametrize(
    ("silent", "others", "ended"),
    [
        (2, "other processes took 1.43 of 2 CPUs", (None, 2)),
        (3, "other processes took 1.43 of 2 CPUs", ("INVALID", 2)),
        (1, None, ("INVALID", 0)),
    ],
)
def test_a_silence_while_others_have_the_cpus_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, silent: int, others: str | None, ended: tuple[str | None, int]
) -> None:
    plain, ran = vars(repetition)["run_launch"], itertools.count()

    def run_launch(*args: Any, **named: Any) -> Launch:
        launch: Launch = plain(*args, **named)
        if next(ran) >= silent:
            return launch
        return replace(launch, invalid="stalled", evidence="pair 1: nothing arrived", disturbed=others)

    monkeypatch.setattr(repetition, "run_launch", run_launch)
    found = run(ScriptedRig())
    assert (found.verdict, found.repeated) == ended
    reported = [*found.faults, *([f"stalled: {found.evidence}"] if found.verdict else [])]
    assert set(reported) == {"stalled: pair 1: nothing arrived" + (f"; {others}" if others else "")}


def disturbed(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Launches that are models; those of these numbers, as they run, are disturbed."""
    timeless(monkeypatch)
    plain, ran = vars(repetition)["run_launch"], itertools.count()

    def run_launch(*args: Any, **named: Any) -> Launch:
        launch: Launch = plain(*args, **named)
        return replace(launch, disturbed="other processes took a CPU") if next(ran) in numbers else launch

    monkeypatch.setattr(repetition, "run_launch", run_launch)


def test_repeats_leave_the_time_for_the_fewest_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed(monkeypatch, *range(9))
    found = find(Model(3e6), Model(15e6), Rate(), max_duration_s=27)  # enough for seven pairs
    assert (found.launches, found.disturbed_repeated) == (6, 2)


def test_a_trial_of_a_search_counts_without_its_repeated_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed(monkeypatch, 3)
    found = find(Model(3e6), Model(15e6))
    assert found.disturbed_repeated == 1
    assert found.searched.search is not None
    trials = found.searched.search.trials
    launch_s = [trial.effective_s - trial.duration_s for trial in trials]
    assert max(launch_s) == pytest.approx(min(launch_s))
