# SPDX-License-Identifier: BSD-3-Clause
"""A possible regression is measured again at the session's end, on rigs built anew."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_icbench.cli.main import main as cli
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import EXIT_STATUS
from pytest_icbench.plugin import retest
from tests.baselines import keep_sessions, measured, scaled
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

CASES = """
@pytest.mark.icbench(switch="ovs", packet_size=[64, 512, 1500])
def test_a(icbench):
    icbench.gate(icbench.throughput())
"""


@pytest.fixture
def files(inner: Runner, bench: type[FakeTestbed]) -> Runner:
    """A baseline "main" with several sessions."""
    bench.behaviour = staticmethod(measured)
    inner.write(test_x=CASES)
    inner.run("--icbench-save=main")
    keep_sessions(inner.path / "baselines")
    bench.log.clear()
    return inner


def looks(*factors: float, size: int = 64) -> Callable[[Case], Measurement]:
    """What measuring one size gives, look by look, over what the baseline has; other sizes are as they were."""
    left = list(factors)
    return lambda case: measured(case, launches=scaled(left.pop(0) if case.traffic.packet_size == size else 1.0))


def results(inner: Runner) -> list[dict[str, Any]]:
    text = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_possible_regression_of_rounds_is_measured_again_by_its_test(files: Runner, bench: type[FakeTestbed]) -> None:
    """As the gate's recipes run it: three rounds over all cases, then the tests, then retests."""
    bench.behaviour = staticmethod(looks(0.8, 0.8, 0.8, 0.8))
    result = files.run("--icbench-compare=main", "--icbench-rounds=3", "--icbench-budget=20m")
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == EXIT_STATUS["regressed"]
    measured_now = [entry for entry in bench.log if entry.startswith("measure ")]
    assert len(measured_now) == 3 * 3 + 1
    assert "64B" in measured_now[-1]
    assert [line["verdict"] for line in results(files)] == ["INCONCLUSIVE", "PASS", "PASS", "REGRESSED"]


def test_a_possible_regression_is_measured_again_when_all_others_are_over(
    files: Runner, bench: type[FakeTestbed]
) -> None:
    bench.behaviour = staticmethod(looks(0.8, 0.8))
    result = files.run("--icbench-compare=main")
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == EXIT_STATUS["regressed"]
    result.stdout.fnmatch_lines(
        [
            "icbench: ovs-64B-b32-1vs1-Rmax: 20 % lower: a possible regression, measured again at the session's end",
            "*REGRESSED: ovs-64B-b32-1vs1-Rmax: 4 Mpps is 20 % lower than main (*",
        ]
    )
    sizes = [line["axes"]["packet_size"] if "packet_size" in line["axes"] else line["case"] for line in results(files)]
    assert len(sizes) == 4
    assert sizes[0] == sizes[-1]  # at first, and at the end
    verdicts = [line["verdict"] for line in results(files)]
    assert verdicts == ["INCONCLUSIVE", "PASS", "PASS", "REGRESSED"]
    assert results(files)[0]["findings"][0]["retest"] is True
    # One test, one outcome, one line.
    tests = (files.path / "reports" / "latest" / "tests.jsonl").read_text().splitlines()
    outcomes = [
        (line["nodeid"].partition("[")[2], line["outcome"], len(line["results"])) for line in map(json.loads, tests)
    ]
    assert sorted(outcomes) == [
        ("ovs-1500B-b32-1vs1-Rmax]", "passed", 1),
        ("ovs-512B-b32-1vs1-Rmax]", "passed", 1),
        ("ovs-64B-b32-1vs1-Rmax]", "failed", 2),
    ]


def test_a_report_made_later_has_the_retest_alone(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(looks(0.8, 0.8))
    files.run("--icbench-compare=main")
    table = files.path / "table.csv"
    cli(["report", str(files.path / "reports" / "latest"), "-q", "--csv", str(table)])
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert sorted(row["verdict"] for row in rows) == ["PASS", "PASS", "REGRESSED"]


def test_a_retest_has_fresh_rigs(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(looks(0.8, 0.8))
    files.run("--icbench-compare=main")
    assert [line["settings"].get("fresh", False) for line in results(files)][:1] != [True]
    builds = [entry for entry in bench.log if entry.startswith("build")]
    assert len(builds) >= 2  # of one rig that all three cases share, and of the retest


def test_what_is_as_before_when_measured_again_passes(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(looks(0.8, 1.0))
    result = files.run("--icbench-compare=main")
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    assert [line["verdict"] for line in results(files)] == ["INCONCLUSIVE", "PASS", "PASS", "PASS"]
    result.stdout.no_fnmatch_line("*1 undecided*")


def test_the_greatest_loss_comes_first(files: Runner, bench: type[FakeTestbed]) -> None:
    factors = {64: 0.9, 512: 0.5, 1500: 0.7}
    bench.behaviour = staticmethod(lambda case: measured(case, launches=scaled(factors[case.traffic.packet_size])))
    result = files.run("--icbench-compare=main")
    result.assert_outcomes(failed=3)
    again = [line["figures"]["throughput_pps"]["value"] for line in results(files)[3:]]
    assert again == sorted(again)


def test_without_time_it_stays_undecided(
    files: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retest, "retest_least_s", lambda _settings, _rate: 1e9)
    bench.behaviour = staticmethod(looks(0.8))
    result = files.run("--icbench-compare=main", "--icbench-budget=20m")
    result.assert_outcomes(passed=2)
    assert result.ret == EXIT_STATUS["undecided"]
    result.stdout.fnmatch_lines(
        ["icbench: 1 possible regression not measured again, for lack of time: raise --icbench-budget"]
    )
    (line,) = [line for line in results(files) if line["verdict"] == "INCONCLUSIVE"]
    assert line["findings"][0]["retest"] is True
    tests = (files.path / "reports" / "latest" / "tests.jsonl").read_text().splitlines()
    assert len(tests) == 3


def test_what_is_strict_waits_for_the_retest_too(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(looks(0.8, 1.0))
    files.run("--icbench-compare=main", "--icbench-strict").assert_outcomes(passed=3)


def test_an_interruption_keeps_the_first_result(files: Runner) -> None:
    files.ini("icbench_turns = no\n")
    before = (
        "from tests.baselines import measured, scaled\n"
        "sizes = {64: lambda case: measured(case, launches=scaled(0.5)), 512: lambda case: KeyboardInterrupt()}\n"
        "Testbed.behaviour = staticmethod(lambda case: sizes[case.traffic.packet_size](case))"
    )
    result = files.spawn_with_bench("--icbench-compare=main", before=before)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["INCONCLUSIVE: *: worse once,*", "*and not measured again*"])


def test_a_worker_measures_again_at_once(files: Runner) -> None:
    pytest.importorskip("xdist")
    before = (
        "from tests.baselines import measured, scaled\n"
        "factors = {64: 0.8}\n"
        "slow = lambda case: measured(case, launches=scaled(factors.get(case.traffic.packet_size, 1.0)))\n"
        "Testbed.behaviour = staticmethod(slow)"
    )
    result = files.spawn_with_bench("-p", "xdist.plugin", "-n", "1", "--icbench-compare=main", before=before)
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == EXIT_STATUS["regressed"]
    sizes = [line["case"] for line in results(files)]
    assert sizes == [sizes[0], sizes[0], *sizes[2:]]
    assert [line["verdict"] for line in results(files)] == ["INCONCLUSIVE", "REGRESSED", "PASS", "PASS"]
