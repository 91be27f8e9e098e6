# SPDX-License-Identifier: BSD-3-Clause
"""A possible regression whose old version still exists is decided by both versions, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.host.host_facts import sha256
from pytest_icbench.model.candidate import OldVersion, Program
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import EXIT_STATUS
from tests.baselines import keep_sessions, measured, scaled
from tests.measurements import measurement, side_by_side
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

CASES = """
@pytest.mark.icbench(switch="ovs", packet_size=[64, 512])
def test_a(icbench):
    icbench.gate(icbench.throughput())
"""
NEW = OldVersion(Program("/new/ovs", "9c", "l"), kernel="6.1")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "ovs-3.1"
    path.write_text("#!/bin/sh\n")
    return path


@pytest.fixture
def files(inner: Runner, bench: type[FakeTestbed], old: Path) -> Runner:
    """A baseline "main" with several sessions of the old version."""
    software = OldVersion(Program(str(old), sha256(old)), kernel="6.1")
    bench.behaviour = staticmethod(lambda case: replace(measured(case), software=software))
    inner.write(test_x=CASES)
    inner.run("--icbench-save=main")
    keep_sessions(inner.path / "baselines")
    bench.log.clear()
    return inner


def slower(software: OldVersion) -> Callable[[Case], Measurement]:
    """What measuring 64 bytes gives, by this software: a fifth less than the baseline has."""
    return lambda case: replace(
        measured(case, launches=scaled(0.8 if case.traffic.packet_size == 64 else 1.0)), software=software
    )


def compared(decision: str, ratio: float) -> Callable[[Case], tuple[Measurement, Measurement]]:
    def both(case: Case) -> tuple[Measurement, Measurement]:
        base = replace(case, candidate="before")
        found = replace(side_by_side(case, decision, ratio), base=base.id)
        now = measurement(case, side_by_side=found, decision=found.decision, ratio_to_base=ratio)
        return now, measurement(base)

    return both


def results(inner: Runner) -> list[dict[str, Any]]:
    text = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(("decision", "ratio"), [("REGRESSED", 0.8), ("PASS", 1.0)])
def test_its_verdict_is_that_of_both_side_by_side(
    files: Runner, bench: type[FakeTestbed], decision: str, ratio: float
) -> None:
    bench.behaviour, bench.compared = staticmethod(slower(NEW)), staticmethod(compared(decision, ratio))
    result = files.run("--icbench-compare=main")
    regressed = decision == "REGRESSED"
    result.assert_outcomes(passed=2 - regressed, failed=int(regressed))
    assert result.ret == (EXIT_STATUS["regressed"] if regressed else 0)
    result.stdout.fnmatch_lines(["*: measured side by side with the baseline's version, which differs in ovs"])
    last = [entry for entry in bench.log if not entry.startswith(("fitness", "give"))][-6:]
    assert "old ovs:before: ovs" in last
    assert any(entry.startswith("versions ovs-64B-b32-1vs1-Rmax of 2,") for entry in last)
    assert {"build ovs", "build ovs:before"} <= set(last)
    lines = results(files)
    assert [line["case"].partition("-")[0] for line in lines] == ["ovs"] * 3, "the old version is no case"
    assert lines[-1]["verdict"] == decision
    assert lines[-1]["side_by_side"]["base"] == "ovs:before-64B-b32-1vs1-Rmax"


def test_an_old_version_that_is_gone_is_said(files: Runner, bench: type[FakeTestbed], old: Path) -> None:
    bench.behaviour = staticmethod(slower(NEW))
    old.unlink()
    result = files.run("--icbench-compare=main")
    result.stdout.fnmatch_lines(["*: the baseline's ovs cannot be started any more: *ovs-3.1 is gone"])
    assert not any(entry.startswith("versions") for entry in bench.log)


def test_the_same_software_is_not_flagged(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(lambda case: replace(measured(case), software=NEW))
    inner.write(test_x=CASES)
    inner.run("--icbench-save=main")
    keep_sessions(inner.path / "baselines")
    bench.behaviour = staticmethod(slower(NEW))
    inner.run("--icbench-compare=main").assert_outcomes(passed=1)
    (finding,) = next(line for line in results(inner) if "64B" in line["case"])["findings"][:1]
    assert (finding["verdict"], finding["reason"]) == ("INCONCLUSIVE", "host")
    assert finding["note"] == "the software is the same: only the host can have changed"
