# SPDX-License-Identifier: BSD-3-Clause
"""Launches are sorted by the state of the host, and figures are of one state."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.kinds.runs import METHODS, recomputed
from pytest_icbench.measure import stopping
from pytest_icbench.measure.summary.launch_log import (
    LaunchLog,
    fullest,
    in_state,
    split_by_state,
    state_fields,
    states_of,
)
from pytest_icbench.measure.summary.summarize import Environment, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.placement import CpuState
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.states import LEAST_FACTOR
from tests import measurements
from tests.unit.scripted_rig import ScriptedRig, run

NEAR, FAR = 60.0, 330.0
CASE = Case("ovs")
AROUND = Environment("dedicated", ())


def at(index: int, pps: float, *distances: float) -> Launch:
    distance = sum(distances) / len(distances) if distances else None
    return measurements.launch(index, throughput_pps=pps, distances_ns=distances, distance_ns=distance, windows=1)


def of(*distances: float) -> list[Launch]:
    return [at(index, 1e6 * (2 if distance < 100 else 1), distance) for index, distance in enumerate(distances)]


def test_the_figures_are_of_the_state_of_most_launches() -> None:
    gathered = split_by_state(LaunchLog(launches=of(NEAR, FAR, NEAR, FAR, NEAR)))
    assert [launch.throughput_pps for launch in gathered.launches] == [2e6] * 3
    assert [(launch.index, launch.repeated) for launch in gathered.others] == [(1, "case"), (3, "case")]
    found = summarize(METHODS[CASE.kind].summary, CASE, Settings(repeats=5), gathered, AROUND)
    assert (found.launches, found.frames.throughput_pps) == (3, 2e6)
    assert found.distance_ns == pytest.approx(NEAR)
    assert [(level.launches, level.value) for level in found.levels] == [(3, 2e6), (2, 1e6)]


def test_of_equals_the_nearest_state_is_taken() -> None:
    launches = split_by_state(LaunchLog(launches=of(FAR, NEAR))).launches
    assert [launch.distance_ns for launch in launches] == [NEAR]


def test_one_state_costs_nothing_and_leaves_everything() -> None:
    gathered = LaunchLog(launches=of(NEAR, NEAR * 1.1))
    assert split_by_state(gathered) is gathered
    fields = state_fields(CASE, gathered)
    assert ([level.launches for level in fields["levels"]], fields["changed_launches"]) == ([2], 0)


def test_launches_without_a_distance_are_of_every_state() -> None:
    gathered = LaunchLog(launches=[at(0, 1e6), at(1, 1e6)])
    assert split_by_state(gathered) is gathered
    assert summarize(METHODS[CASE.kind].summary, CASE, Settings(repeats=2), gathered, AROUND).distance_ns is None


def test_a_launch_in_which_the_state_changed_belongs_to_none() -> None:
    gathered = split_by_state(LaunchLog(launches=[*of(NEAR, NEAR), at(2, 1.5e6, NEAR, FAR)]))
    assert [launch.index for launch in gathered.others] == [2]
    fields = state_fields(CASE, gathered)
    assert ([level.launches for level in fields["levels"]], fields["changed_launches"]) == ([2], 1)


def test_a_host_that_changes_in_every_launch_keeps_its_launches() -> None:
    gathered = LaunchLog(launches=[at(index, 1e6, NEAR, FAR) for index in range(3)])
    assert split_by_state(gathered) is gathered
    assert state_fields(CASE, gathered)["changed_launches"] == 3


def test_neighbours_of_the_reference_stay_together() -> None:
    gathered = split_by_state(LaunchLog(launches=of(NEAR, NEAR, NEAR), reference=of(NEAR, FAR, NEAR)))
    assert [launch.index for launch in gathered.launches] == [launch.index for launch in gathered.reference] == [0, 2]
    assert [(launch.index, launch.repeated) for launch in gathered.others] == [(1, "case"), (1, "reference")]


def test_a_launch_without_a_neighbour_in_its_state_stays_alone() -> None:
    gathered = split_by_state(LaunchLog(launches=of(NEAR), reference=of(FAR)))
    assert ([launch.index for launch in gathered.launches], gathered.reference) == ([0], [])
    assert [launch.repeated for launch in gathered.others] == ["reference"]
    found = summarize(METHODS[CASE.kind].summary, CASE, Settings(repeats=1), gathered, AROUND)
    assert (found.launches, found.frames.throughput_pps, found.ratio_to_reference) == (1, 2e6, None)


distances = st.lists(st.floats(20, 2000), min_size=1, max_size=20)


@given(st.lists(st.floats(20, 2000), min_size=1, max_size=4), st.lists(st.floats(20, 2000), max_size=5))
def test_a_case_always_keeps_a_launch(drawn: list[float], beside: list[float]) -> None:
    gathered = split_by_state(LaunchLog(launches=of(*drawn), reference=of(*beside)))
    assert gathered.launches
    kept = [*gathered.launches, *gathered.reference, *gathered.others]
    assert len(kept) == len(drawn) + len(beside)


@given(distances)
def test_no_launch_is_lost_and_those_that_stay_are_of_one_state(drawn: list[float]) -> None:
    launches = of(*drawn)
    gathered = split_by_state(LaunchLog(launches=launches))
    assert sorted(launch.index for launch in (*gathered.launches, *gathered.others)) == list(range(len(drawn)))
    kept = sorted(launch.distance_ns or 0.0 for launch in gathered.launches)
    assert kept
    assert all(b <= LEAST_FACTOR * a for a, b in itertools.pairwise(kept))
    assert len(in_state(launches, fullest(launches))) == len(gathered.launches)
    assert sum(len(in_state(launches, state)) for state in states_of(launches)) == len(launches)


def measured(*distances: float, repeats: int) -> Measurement:
    """A measurement of launches at these distances; each is read before and after."""
    pairs = itertools.chain.from_iterable((CpuState(ns, 2000.0),) * 2 for ns in distances)
    found: Measurement = run(ScriptedRig(states=iter(pairs)), repeats=repeats)
    return found


def test_recomputing_gives_the_same() -> None:
    found = measured(NEAR, FAR, FAR, NEAR, FAR, FAR, repeats=3)
    treatment = {"endpoints": ["veth", "veth"], "cpus": {"endpoints": [0, 1]}}
    found = replace(found, treatment=treatment, placement="dedicated")
    assert found.levels
    anew = recomputed(found)
    assert (anew.levels, anew.frames.throughput_pps, anew.per_other_launch) == (
        found.levels,
        found.frames.throughput_pps,
        found.per_other_launch,
    )


def test_a_case_has_as_many_launches_of_one_state_as_were_asked_for() -> None:
    found = measured(NEAR, FAR, FAR, NEAR, FAR, FAR, repeats=3)
    assert (found.launches, len(found.per_other_launch), found.ended_by) == (3, 2, "repeats")
    assert found.distance_ns == pytest.approx(FAR)


def test_many_states_end_a_case_all_the_same() -> None:
    found = measured(*(20.0 * 2**step for step in range(12)), repeats=3)
    assert found.launches == 1
    assert len(found.per_other_launch) == stopping.MOST_FOR_A_STATE * 3 - 1
    assert len(found.levels) == 6


def test_one_state_has_no_further_launch() -> None:
    found = measured(*[NEAR] * 9, repeats=3)
    assert (found.launches, len(found.levels), found.per_other_launch) == (3, 1, ())


def test_a_launch_in_which_the_state_changed_is_repeated() -> None:
    readings = [NEAR, NEAR, NEAR, FAR, FAR, FAR, FAR, FAR, FAR, FAR]
    found = run(ScriptedRig(states=iter(CpuState(ns, 2000.0) for ns in readings)), repeats=3)
    assert [launch.disturbed for launch in found.per_repeated_launch] == ["the CPUs moved from 60 to 330 ns apart"]
    assert (found.launches, found.distance_ns, found.disturbed_launches) == (3, pytest.approx(FAR), None)


def test_a_state_that_changes_in_each_launch_is_a_sentence_and_no_hang() -> None:
    rig = ScriptedRig(states=(CpuState(ns, 2000.0) for ns in itertools.cycle([NEAR, FAR])))
    found = run(rig, repeats=3)
    assert (found.launches, found.changed_launches, found.levels) == (3, 3, ())
    assert found.disturbed_launches == 3
    assert found.disturbance == "the CPUs moved from 60 to 330 ns apart"
