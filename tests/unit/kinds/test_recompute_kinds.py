# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of results that are recomputed to the last digit although they have no windows, or more than windows tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.kinds.runs import differences, recomputed
from pytest_icbench.kinds.startup.startup_summary import Course, summarize_startup
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.load import Startup
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.startup import Idle, Startups
from tests.unit.scripted_rig import ScriptedRig, run

TWO: dict[str, Any] = {"endpoints": ["veth", "veth"], "cpus": {"endpoints": [0, 1]}}
#: A treatment without endpoints.
NOBODY: dict[str, Any] = {"endpoints": [], "cpus": {"endpoints": []}}


def started(failure: str | None) -> Measurement:
    startups = Startups(
        "netns",
        4,
        total_ns=(8_000_000, 9_000_000, 7_000_000),
        prepared_ns=(1_000_000,) * 3,
        process_ns=(3_000_000,) * 3,
        network_ns=(4_000_000,) * 3,
        answered_ns=(0,) * 3,
        first_trip_ns=(9_000_000, 0, 8_000_000),
        removed_ns=(2_000_000,) * 3,
        idle=(Idle(2, 300_000, 0.0), Idle(3, 450_000, 0.01)),
    )
    around = Environment(placement="cooperative", endpoints=(), treatment={**NOBODY, "node": "netns"})
    case = Case("veth", Startup("netns:4"), dimension="startup")
    return summarize_startup(case, Settings(), startups, around, Course(5.0, 1.0, failure))


@pytest.mark.parametrize("failure", [None, "no memory is left"])
def test_created_containers_are_recomputed(failure: str | None) -> None:
    recorded = Measurement.from_json(started(failure).to_json())
    assert differences(recorded, recomputed(recorded), set(recorded.to_dict())) == []
    assert recorded.startup_ns == 8_000_000


def test_what_functions_did_stays() -> None:
    measured = run(ScriptedRig())
    recorded = replace(measured, functions=(FunctionWork(1, taken=5, acl_drops=1),), treatment=TWO)
    assert recomputed(recorded).functions == recorded.functions
