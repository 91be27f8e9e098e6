# SPDX-License-Identifier: BSD-3-Clause
"""Loads that are a part of a rate which is looked for first, on a bench without a host."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

LOADED = """
@pytest.mark.icbench(dimension="latency", switch="ovs", rate=["pdr:0.5%*0.1", "pdr:0.5%*0.5"], reference=False)
def test_a(icbench):
    found = icbench.latency()
    assert (found.frames.load, found.frames.load_of_pps) == (icbench.case.rate.share, 5e6)
    icbench.gate(found)
"""
BY_CALL = """
@pytest.mark.icbench(switch="ovs", rate="pdr:0.5%", pairs=2, reference=False)
def test_a(icbench):
    for load in (0.1, 0.9):
        icbench.gate(icbench.latency(load=load))
"""


def results(inner: Runner) -> list[Measurement]:
    text = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    return [Measurement.from_json(line) for line in text.splitlines()]


def measured(bench: type[FakeTestbed]) -> list[str]:
    return [entry for entry in bench.log if entry.startswith("measure")]


def test_the_rate_is_looked_for_once_and_its_parts_have_stable_ids(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=LOADED)
    inner.run("-v").assert_outcomes(passed=2)
    assert measured(bench) == [
        "measure throughput ovs-64B-b32-1vs1-Rpdr:0.5",
        "measure latency ovs-64B-b32-1vs1-R500k",
        "measure latency ovs-64B-b32-1vs1-R2500k",
    ]
    found = results(inner)
    assert [(each.dimension, each.case, each.frames.load) for each in found] == [
        ("throughput", "ovs-64B-b32-1vs1-Rpdr:0.5", None),
        ("latency", "ovs-64B-b32-1vs1-Rpdr:0.5:x10", 0.1),
        ("latency", "ovs-64B-b32-1vs1-Rpdr:0.5:x50", 0.5),
    ]
    assert [each.verdict for each in found] == ["NO_BASELINE"] * 3
    assert found[1].axes["rate"] == "pdr:0.5%*0.1"


def test_a_call_names_the_part(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=BY_CALL)
    inner.run().assert_outcomes(passed=1)
    assert measured(bench) == [
        "measure throughput ovs-64B-b32-2vs2-Rpdr:0.5",
        "measure latency ovs-64B-b32-2vs2-R250k",
        "measure latency ovs-64B-b32-2vs2-R2250k",
    ]
    assert [each.case.partition("-R")[2] for each in results(inner)] == ["pdr:0.5", "pdr:0.5:x10", "pdr:0.5:x90"]


def test_a_search_without_a_rate_fails_every_load(inner: Runner, bench: type[FakeTestbed], monkeypatch: Any) -> None:
    def behaviour(case: Case) -> Measurement:
        return measurement(case, verdict="INVALID", reason="no-forwarding", evidence="nothing arrived")

    monkeypatch.setattr(bench, "behaviour", staticmethod(behaviour))
    inner.write(test_x=LOADED)
    result = inner.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*no-forwarding*ovs-64B-b32-1vs1-Rpdr:0.5: nothing arrived*"])
    assert measured(bench) == ["measure throughput ovs-64B-b32-1vs1-Rpdr:0.5"]


SOAK = """
@pytest.mark.icbench(switch="ovs", rate="1k")
def test_a(icbench):
    found = icbench.soak(%s)
    assert (found.loss_events, found.loss_event_count) == ((), 0)
    icbench.gate(found)
"""


@pytest.mark.parametrize(
    ("call", "options", "seconds"), [("", [], 20), ("3", [], 3), ("3", ["--icbench-soak-duration=2h"], 7200)]
)
def test_a_long_run_is_one_launch_of_its_own_length(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: Any, call: str, options: list[str], seconds: float
) -> None:
    seen: list[Any] = []
    measure: Any = bench.measure

    def remember(self: Any, rigs: Any, case: Any, reference: Any, settings: Any, on_progress: Any) -> Any:
        seen.append(settings)
        return measure(self, rigs, case, reference, settings, on_progress)

    monkeypatch.setattr(bench, "measure", remember)
    inner.write(test_x=SOAK % call)
    inner.run(*options).assert_outcomes(passed=1)
    (settings,) = seen
    assert (settings.duration_s, settings.repeats, settings.reference) == (seconds, 1, False)
    assert settings.stream.endswith("/soak/test_a%5Bovs-64B-b32-1vs1-R1k%5D.jsonl")


def test_a_part_of_another_rate_is_refused(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=BY_CALL.replace("pdr:0.5%", "1k"))
    result = inner.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*a load of 0.1 is a part of a searched rate (ndr, pdr:0.5%), not of 1k*"])
