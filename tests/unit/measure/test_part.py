# SPDX-License-Identifier: BSD-3-Clause
"""A case in rounds: what each measures, and what is made of all."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from pytest_icbench.kinds.runs import measure, recomputed
from pytest_icbench.measure.repetition import Part, parts
from pytest_icbench.measure.summary.launch_log import LaunchLog, by_round
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from tests.unit.scripted_rig import FAST, MAX, RTT, ScriptedRig, scripted

#: What recomputing needs to know of the endpoints.
AROUND = Environment(
    "dedicated", ScriptedRig().endpoints, treatment={"endpoints": ["veth", "veth"], "cpus": {"endpoints": [0, 1]}}
)


def test_fixed_launches_are_spread_evenly() -> None:
    spread = list(parts(Settings(repeats=8), 3, LaunchLog(), 60))
    assert [(part.number, part.launches, part.seconds) for part in spread] == [
        (0, 3, math.inf),
        (1, 3, math.inf),
        (2, 2, math.inf),
    ]


def test_adaptive_rounds_share_the_launches_of_a_precision_and_the_time() -> None:
    spread = list(parts(Settings(), 4, LaunchLog(), 60))
    assert [(part.launches, part.seconds) for part in spread] == [(6, 15.0)] * 4


@pytest.mark.parametrize("case", [MAX, RTT])
def test_rounds_add_to_each_other_and_are_the_units_of_the_interval(case: Case) -> None:
    gathered = LaunchLog(started_at=1.0)
    windows = itertools.count()
    found: list[Measurement] = []
    for part in parts(FAST, 3, gathered, 60):
        # A rig of each round: its level is its own.
        share = (0.9, 1.0, 0.8)[part.number]
        rig, link = (ScriptedRig(path=lambda sent, share=share: round(sent * share)) for _ in (0, 1))  # type: ignore[misc]
        link.name = "link"
        assert next(windows) == part.number
        found.append(measure(replace(scripted(rig, case), around=AROUND), FAST, scripted(link, case), part=part))
    first, _, last = found
    assert [measurement.launches for measurement in found] == [1, 2, 3]
    assert [launch.round for launch in last.per_launch] == [0, 1, 2]
    assert [launch.index for launch in last.per_launch] == [0, 1, 2]
    assert len(last.per_reference_launch) == 3
    assert last.ended_by == "rounds"
    assert first.frames.throughput_pps is None or first.frames.throughput_pps.low is None
    assert last.duration_s > first.duration_s
    if case is MAX:
        assert last.frames.throughput_pps is not None
        assert last.frames.throughput_pps.low is not None
        assert last.frames.throughput_pps.high is not None
        # Student's, of three values: far wider than the values lie apart.
        assert last.frames.throughput_pps.high / last.frames.throughput_pps.low > 1.3
    assert Measurement.from_json(last.to_json()) == last.without_windows()
    assert recomputed(last).to_dict() == last.to_dict()


def test_a_round_ends_with_its_time() -> None:
    gathered = LaunchLog(started_at=1.0)
    settings = Settings(**{**FAST.to_dict(), "repeats": None})
    measurement = measure(scripted(ScriptedRig()), settings, part=Part(0, 10_000, 0.3, gathered))
    assert measurement.ended_by == "max-duration"
    assert 1 <= measurement.launches < 10_000


def test_launches_without_a_round_are_one_group() -> None:
    measurement = measure(scripted(ScriptedRig()), FAST)
    assert len(by_round(measurement.per_launch, [1, 2, 3])) == 1
