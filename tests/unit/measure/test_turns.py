# SPDX-License-Identifier: BSD-3-Clause
"""A case that is measured turn by turn, over rigs that are only scripts."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from pytest_icbench.errors import WorkloadError
from pytest_icbench.kinds.runs import Measuring
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from tests.unit.scripted_rig import FAST, ScriptedRig, run, scripted

ADAPTIVE = replace(FAST, repeats=None, max_duration_s=1.0)


def begin(rig: ScriptedRig, reference: ScriptedRig | None = None, settings: Settings = FAST) -> Measuring:
    return Measuring(scripted(rig), settings, None if reference is None else scripted(reference))


def to_its_end(measuring: Measuring, between_s: float = 0.0) -> tuple[int, Measurement]:
    """Returns the number of turns and the measurement."""
    for turns in range(1, 99):
        if (measurement := measuring.take_turn()) is not None:
            return turns, measurement
        time.sleep(between_s)
    raise AssertionError("it has no end")


def test_a_turn_is_a_launch_of_the_case_and_one_of_its_reference() -> None:
    log: list[str] = []
    turns, found = to_its_end(begin(ScriptedRig(name="c", log=log), ScriptedRig(name="r", log=log)))
    assert (turns, found.launches, found.ended_by) == (3, 3, "repeats")
    # The reference is preflighted first; then every other turn begins with it.
    assert "".join(entry[0] for entry in log if entry.endswith("launch")) == "cr" + "r" + "rc" + "cr"
    whole = run(ScriptedRig(), ScriptedRig(), repeats=3)
    assert (found.ratio_to_reference, found.verdict) == (whole.ratio_to_reference, whole.verdict)
    assert all(launch.round is None for launch in found.per_launch)


def test_what_others_do_between_two_turns_takes_none_of_its_time() -> None:
    turns, found = to_its_end(begin(ScriptedRig(), settings=ADAPTIVE), between_s=0.1)
    _, alone = to_its_end(begin(ScriptedRig(), settings=ADAPTIVE))
    assert (found.launches, found.ended_by) == (alone.launches, alone.ended_by)
    assert found.duration_s < 0.1 * turns


def test_progress_counts_its_own_time() -> None:
    shown: list[Progress] = []
    measuring = begin(ScriptedRig(), settings=ADAPTIVE)
    measuring.strategy.on_progress = shown.append
    measuring.take_turn()
    time.sleep(0.5)
    measuring.take_turn()
    assert max(progress.elapsed_s for progress in shown) < 0.4


def test_a_rig_that_was_built_again_is_preflighted_again() -> None:
    rig, reference = ScriptedRig(preflighted=False), ScriptedRig(preflighted=False)
    measuring = begin(rig, reference)
    measuring.take_turn()
    assert rig.preflighted
    assert reference.preflighted
    before = len(reference.log)
    measuring.take_turn()
    launches = reference.log[before:].count("rig launch")
    reference.preflighted = False  # as it is after ``build``
    before = len(reference.log)
    measuring.take_turn()
    assert reference.log[before:].count("rig launch") == launches + 1


def test_what_is_no_number_is_over() -> None:
    turns, found = to_its_end(begin(ScriptedRig(path=lambda sent: 0), settings=replace(FAST, window_s=0.01)))
    assert (turns, found.verdict, found.ended_by) == (1, "INVALID", "invalid")


def test_an_error_leaves_its_rig_running() -> None:
    log: list[str] = []
    measuring = begin(ScriptedRig(name="c", log=log), ScriptedRig(name="r", log=log, exits={0: 3}))
    with pytest.raises(WorkloadError):
        to_its_end(begin(ScriptedRig(exits={0: 3})))
    _, found = to_its_end(measuring)
    assert (found.launches, found.ratio_to_reference) == (3, None)
    assert [entry for entry in log if "resume" in entry][-1] == "c resume"


def test_an_interrupted_case_has_the_launches_so_far() -> None:
    measuring = begin(ScriptedRig())
    assert measuring.interrupted() is None
    measuring.take_turn()
    found = measuring.interrupted()
    assert found is not None
    assert (found.launches, found.ended_by, found.verdict) == (1, "interrupted", None)
