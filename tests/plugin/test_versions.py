# SPDX-License-Identifier: BSD-3-Clause
"""Candidates in a run of pytest, on a bench without a host: ids, order, decisions, reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.cli.main import main
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.report import markdown
from pytest_icbench.store.stored_run import read_run
from tests.measurements import measurement, side_by_side
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

FLAT = """
@pytest.mark.icbench(switch=["ovs", "veth"], packet_size=[64, 128])
def test_a(icbench):
    icbench.gate(icbench.throughput())
"""


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "ovs-vswitchd"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def gives(decision: str, ratio: float, **more: Any) -> Callable[[Case], tuple[Measurement, Measurement]]:
    def compared(case: Case) -> tuple[Measurement, Measurement]:
        found = side_by_side(case, decision, ratio, **more)
        now = measurement(case, side_by_side=found, decision=found.decision, ratio_to_base=ratio)
        old, new = ({"switch": {"version": version}} for version in ("3.1", "3.2"))
        return replace(now, treatment=new), replace(measurement(case.base), treatment=old)

    return compared


def results(inner: Runner) -> list[Measurement]:
    text = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    return [Measurement.from_json(line) for line in text.splitlines()]


def test_a_candidate_takes_its_bases_place_and_both_results_are_kept(
    inner: Runner, bench: type[FakeTestbed], binary: Path
) -> None:
    bench.compared = staticmethod(gives("PASS", 1.0))
    inner.write(test_x=FLAT)
    result = inner.run("-v", f"--icbench-candidate=ovs:new={binary}", "--junitxml=junit.xml")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*test_a?ovs:new-64B-b32-1vs1-Rmax? PASSED*"])
    assert [entry for entry in bench.log if entry.startswith(("build ovs", "versions", "close ovs"))] == [
        "build ovs:new",
        "build ovs",
        "versions ovs:new-64B-b32-1vs1-Rmax of 2, 0.03",
        "versions ovs:new-128B-b32-1vs1-Rmax of 2, 0.03",
        "close ovs:new",
        "close ovs",
    ]
    assert [(each.case, each.verdict, each.decision) for each in results(inner)][:3] == [
        ("ovs-64B-b32-1vs1-Rmax", None, None),
        ("ovs:new-64B-b32-1vs1-Rmax", "PASS", "PASS"),
        ("ovs-128B-b32-1vs1-Rmax", None, None),
    ]
    assert results(inner)[1].treatment_changes == {"switch.version": ["3.1", "3.2"]}
    junit = (inner.path / "junit.xml").read_text()
    assert junit.count('name="icbench.decision" value="PASS"') == 2
    assert junit.count('name="icbench.ratio_to_base"') == 2
    assert 'name="icbench.case" value="ovs-64B-b32-1vs1-Rmax"' not in junit
    result.stdout.fnmatch_lines(["ovs:new against its base: PASS (2 PASS)"])
    shown = "ovs:new-64B-b32-1vs1-Rmax: PASS, throughput_pps +0.0 % (-1.0 % to +1.0 %, 9 pairs): 5 against 5 Mpps"
    assert shown in " ".join(result.stdout.str().split())


def test_a_regression_fails_with_both_sides_and_their_versions(
    inner: Runner, bench: type[FakeTestbed], binary: Path
) -> None:
    bench.compared = staticmethod(gives("REGRESSED", 0.9))
    inner.write(test_x=FLAT)
    result = inner.run(f"--icbench-candidate=ovs:new={binary}", "--icbench-packet-size=64")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "REGRESSED: ovs:new-64B-b32-1vs1-Rmax: 4.5 Mpps is 10 % lower than base (9 to 11 %, 9 pairs)*",
            "unlike the base: *switch.version is 3.2 here and 3.1 there*",
            "ovs:new against its base: REGRESSED (1 REGRESSED)",
            "false alarms of the whole session (2 comparisons): at most 1 %",
        ]
    )


def test_the_allowance_is_that_of_the_bases_limits(inner: Runner, bench: type[FakeTestbed], binary: Path) -> None:
    bench.compared = staticmethod(gives("PASS", 1.0))
    inner.write(test_x=FLAT)
    (inner.path / "thresholds.toml").write_text('["ovs-64B-*"]\nallowance = 0.1\n')
    inner.run(f"--icbench-candidate=ovs:new={binary}").assert_outcomes(passed=4)
    assert [entry.partition(", ")[2] for entry in bench.log if entry.startswith("versions")] == [
        "0.1",
        "0.03",
    ]


def test_a_candidate_is_held_to_the_limits_of_its_base_and_to_its_own(
    inner: Runner, bench: type[FakeTestbed], binary: Path
) -> None:
    bench.compared = staticmethod(gives("PASS", 1.0))
    inner.write(test_x=FLAT)
    limits = '["ovs-64B-*"]\nmin_throughput_pps = 9e9\n["ovs-128B-*"]\nmin_throughput_pps = 9e9\n'
    (inner.path / "thresholds.toml").write_text(limits + '["ovs:new-128B-*"]\nmin_throughput_pps = 1\n')
    result = inner.run(f"--icbench-candidate=ovs:new={binary}", "--icbench-switch=ovs")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["REGRESSED: ovs:new-64B-b32-1vs1-Rmax: 5 Mpps is below 9000 Mpps*"])
    assert [(each.case.partition("-b")[0], each.verdict) for each in results(inner)] == [
        ("ovs-64B", None),
        ("ovs:new-64B", "REGRESSED"),
        ("ovs-128B", None),
        ("ovs:new-128B", "PASS"),
    ]
    # So that `icbench report` judges by the same.
    stored = read_run((inner.path / "reports" / "latest").resolve())
    values = [[limit["value"] for limit in each.place.limits or ()] for each in stored.results if each.place]
    assert values == [[], [9e9], [], [1.0]]


def test_every_comparison_of_a_test_counts(inner: Runner, bench: type[FakeTestbed], binary: Path) -> None:
    def compared(case: Case) -> tuple[Measurement, Measurement]:
        return measurement(case), measurement(case.base)

    bench.compared = staticmethod(compared)
    inner.write(
        test_x="""
@pytest.mark.icbench(switch="ovs", packet_size=[64, 128], comparisons=2)
def test_a(icbench):
    icbench.throughput()
    icbench.latency()

@pytest.mark.icbench(switch="ovs")
def test_b(icbench):
    for _ in range(2):
        icbench.measure()
"""
    )
    result = inner.run(f"--icbench-candidate=ovs:new={binary}")
    result.assert_outcomes(passed=2, failed=1)
    assert [" ".join(entry.split()[2:4]) for entry in bench.log if entry.startswith("versions")] == ["of 5,"] * 5
    result.stdout.fnmatch_lines(
        ["*test_x.py::test_b: --icbench-candidate: this is comparison 2 of the test*announces 1*comparisons=2"]
    )


def test_the_overall_decision_is_the_worst_wherever_it_is_reported(
    inner: Runner, bench: type[FakeTestbed], binary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def compared(case: Case) -> tuple[Measurement, Measurement]:
        return (
            gives("IMPROVED", 1.2)(case)
            if case.traffic.packet_size == 64
            else gives("INCONCLUSIVE", 0.96, reason="bound")(case)
        )

    bench.compared = staticmethod(compared)
    inner.write(test_x=FLAT)
    result = inner.run(f"--icbench-candidate=ovs:new={binary}")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*= 3 passed, 1 undecided in *"])
    overall = "ovs:new against its base: INCONCLUSIVE (1 INCONCLUSIVE, 1 IMPROVED)"
    rate = "false alarms of the whole session (2 comparisons): at most 1 %"
    result.stdout.fnmatch_lines([overall, rate])
    run = inner.path / "reports" / "latest"
    assert f"**{markdown.escape(overall)}**\n\n{markdown.escape(rate)}\n" in (run / "summary.md").read_text()
    assert (
        'icbench_candidate_info{candidate="ovs:new",decision="INCONCLUSIVE"} 1' in (run / "openmetrics.txt").read_text()
    )
    capsys.readouterr()
    main(["report", str(run)])
    reported = capsys.readouterr().out.splitlines()
    assert overall in reported
    assert rate in reported


def test_a_sentence_that_is_too_long_for_a_line_goes_on_in_the_next(
    inner: Runner, bench: type[FakeTestbed], binary: Path
) -> None:
    bench.compared = staticmethod(gives("PASS", 0.99))
    inner.write(test_x=FLAT)
    result = inner.run(f"--icbench-candidate=ovs:next-release-candidate={binary}")
    place = next(place for place, line in enumerate(result.outlines) if line.startswith("  ovs:next-release"))
    assert " ".join(" ".join(result.outlines[place : place + 2]).split()) == (
        "ovs:next-release-candidate-64B-b32-1vs1-Rmax: PASS, throughput_pps -1.0 %"
        " (-2.0 % to +0.0 %, 9 pairs): 4.95 against 5 Mpps"
    )


def test_an_invalid_side_fails_the_case(inner: Runner, bench: type[FakeTestbed], binary: Path) -> None:
    def compared(case: Case) -> tuple[Measurement, Measurement]:
        bad = {"verdict": "INVALID", "reason": "stalled", "evidence": "the base, x: nothing came"}
        return measurement(case, **bad), measurement(case.base, **bad)

    bench.compared = staticmethod(compared)
    inner.write(test_x=FLAT)
    result = inner.run(f"--icbench-candidate=ovs:new={binary}", "--icbench-packet-size=64")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["INVALID: ovs:new-64B-b32-1vs1-Rmax: stalled*", "ovs:new against its base: INVALID (1 INVALID)"]
    )


def test_a_base_that_does_not_start_is_no_missing_ratio(
    inner: Runner, bench: type[FakeTestbed], binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeTestbed, "broken", {"ovs"})
    inner.write(test_x=FLAT)
    result = inner.run(f"--icbench-candidate=ovs:new={binary}", "--icbench-packet-size=64")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["the base, *ovs does not start*"])


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("osv:new={binary}", "--icbench-candidate: there is no switch 'osv'; did you mean ovs?"),
        ("ovs:new=/none", "--icbench-candidate: ovs:new: there is no file /none"),
        ("ovs:a/b={binary}", "--icbench-candidate: 'a/b' is not a name for a candidate*"),
        ("veth:new={binary}", "--icbench-candidate: veth:new: veth runs no binary*"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_run(
    inner: Runner, bench: type[FakeTestbed], binary: Path, mode: str, sentence: str
) -> None:
    inner.write(test_x=FLAT)
    result = inner.run(f"--icbench-candidate={mode.format(binary=binary)}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {sentence}"])
    assert bench.log == []


def test_a_long_run_is_skipped(inner: Runner, bench: type[FakeTestbed], binary: Path) -> None:
    inner.write(
        test_x="""
@pytest.mark.icbench(switch="ovs")
def test_a(icbench):
    icbench.soak()
"""
    )
    result = inner.run(f"--icbench-candidate=ovs:new={binary}", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*--icbench-candidate compares launches; leave it out for long runs and trains*"])


def test_an_ini_file_names_several(inner: Runner, bench: type[FakeTestbed], binary: Path) -> None:
    bench.compared = staticmethod(gives("PASS", 1.0))
    inner.ini(f"icbench_candidate =\n    ovs:a={binary}\n    ovs:b={binary}\n")
    inner.write(test_x=FLAT)
    result = inner.run("--icbench-packet-size=64", "--icbench-switch=ovs", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["ovs:a against its base: PASS (1 PASS)", "ovs:b against its base: PASS*"])
