# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a run, a budget shared out over its cases, and their order."""

from __future__ import annotations

import json

import pytest

from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed
from tests.plugin.test_running import GATED, results


def test_plan(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.unsupported = {"testpmd": "testpmd is not installed"}
    inner.write(test_x=GATED)
    result = inner.run("--icbench-plan", "--icbench-repeats=1", "--icbench-duration=10")
    result.stdout.fnmatch_lines(
        [
            "test_x.py::test_a",
            "    0:??    2 cases  ovs",
            "skipped",
            "            2 cases  testpmd: testpmd is not installed",
            "2 of 4 cases, at least 0:*; 2 would be skipped",
        ]
    )
    assert result.ret == 0
    assert "passed" not in result.stdout.str()
    inner.run("--icbench-plan", "--icbench-repeats=1", "--icbench-duration=10", "-v").stdout.fnmatch_lines(
        [
            "    0:2?  test_x.py::test_a[[]ovs-64B-b32-1vs1-Rmax]",
            "    skip  test_x.py::test_a[[]testpmd-64B-b32-1vs1-Rmax]: testpmd is not installed",
            "2 of 4 cases, at least 0:*; 2 would be skipped",
        ]
    )


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [("--icbench-compare=nosuch", "*there is no baseline 'nosuch'*"), ("--icbench-resume=nosuch", "*nosuch*")],
)
def test_a_plan_refuses_what_the_run_would(
    inner: Runner, bench: type[FakeTestbed], argument: str, sentence: str
) -> None:
    inner.write(test_x=GATED)
    result = inner.run("--icbench-plan", argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {sentence}"])


def test_a_budget_is_shared_out(inner: Runner, bench: type[FakeTestbed]) -> None:
    """What a case does not use is the next one's; who was given a time of his own keeps it."""
    inner.ini("icbench_turns = no\n")
    bench.behaviour = staticmethod(lambda case: measurement(case, ended_by="max-duration", precision=0.02))
    inner.write(test_x=GATED)
    inner.run("-k", "64B", "--icbench-budget=5m", "--icbench-reference=no").assert_outcomes(passed=2)
    first, second = results(inner)
    assert 120 < first.settings["max_duration_s"] < 150
    assert 250 < second.settings["max_duration_s"] < 300
    assert {first.ended_by, second.ended_by} == {"budget"}
    inner.run("-k", "64B", "--icbench-budget=5m", "--icbench-max-duration=40").assert_outcomes(passed=2)
    # The same process in the same second is the same run.
    ends = [(found.settings["max_duration_s"], found.ended_by) for found in results(inner)[-2:]]
    assert ends == [(40, "max-duration")] * 2
    inner.run("-k", "64B", "--icbench-budget=5m", "--icbench-repeats=6").assert_outcomes(passed=2)
    assert [found.settings["max_duration_s"] for found in results(inner)[-2:]] == [60, 60]


def test_a_budget_that_is_too_short_runs_nothing(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    result = inner.run("--icbench-budget=10")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    sentence = "ERROR: --icbench-budget: 4 cases take at least *, more than 0:10; give more time, or select fewer cases"
    result.stderr.fnmatch_lines([sentence])
    assert bench.log == []


def test_a_plan_shows_the_budget(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    result = inner.run("--icbench-plan", "--icbench-budget=20m", "-k", "ovs")
    result.stdout.fnmatch_lines(["    0:?? of   20:0?    2 cases  ovs", "budget 20:00: 1?:?? beyond the least,*"])
    result = inner.run("--icbench-plan", "--icbench-budget=10", "-k", "ovs")
    result.stdout.fnmatch_lines(["budget 0:10: too short, nothing would be run"])


def test_a_plan_reports_a_budget_without_time_for_retests(inner: Runner, bench: type[FakeTestbed]) -> None:
    """Without them nothing is REGRESSED, whatever changed. A fifth of a short budget is less than one takes."""
    inner.write(test_x=GATED)
    inner.run("--icbench-save=main")
    least = inner.run("--icbench-plan", "--icbench-budget=20m", "-k", "ovs").stdout.str().partition("at least ")[2]
    minutes, _, seconds = least.split()[0].partition(":")
    least_s = 60 * int(minutes) + int(seconds)
    sentence = "budget *: no time for a retest, without which nothing is called a regression: give*"
    compare = ("--icbench-plan", "-k", "ovs", "--icbench-compare=main")
    for share in (1.1, 1.3):
        planned = inner.run(*compare, f"--icbench-budget={share * least_s:.0f}")
        planned.stdout.fnmatch_lines([sentence])
        minutes, _, seconds = planned.stdout.str().partition("regression: give ")[2].partition(",")[0].partition(":")
        enough_s = 60 * int(minutes) + int(seconds)
        assert enough_s > 1.3 * least_s
    inner.run(*compare, f"--icbench-budget={enough_s}").stdout.no_fnmatch_line(sentence)
    inner.run(*compare, f"--icbench-budget={enough_s - 2}").stdout.fnmatch_lines([sentence])
    saving = inner.run("--icbench-plan", "-k", "ovs", "--icbench-save=main", f"--icbench-budget={1.1 * least_s:.0f}")
    saving.stdout.no_fnmatch_line(sentence)  # nothing is compared


def test_a_plan_refuses_a_baseline_that_is_not_there(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    result = inner.run("--icbench-plan", "--icbench-compare=nosuch")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no baseline 'nosuch' in *; --icbench-save makes one"])


def test_a_random_order_is_recorded_and_repeated_by_its_seed(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(
        test_x="""
@pytest.mark.icbench(switch=["ovs", "veth"], packet_size=[64, 128, 256, 512, 1024, 1500])
def test_a(icbench):
    icbench.throughput()
"""
    )

    def ran(*options: str) -> tuple[list[str], int | None]:
        inner.run(*options).assert_outcomes(passed=12)
        latest = inner.path / "reports" / "latest"
        order = [json.loads(line)["case"] for line in (latest / "results.jsonl").read_text().splitlines()]
        seed = json.loads((latest / "run.json").read_text())["order_seed"]
        assert seed is None or isinstance(seed, int)
        return order, seed

    given, none = ran()
    drawn, seed = ran("--icbench-order=random")
    assert none is None
    assert seed is not None
    assert sorted(drawn) == sorted(given)
    assert ran(f"--icbench-order={seed}") == (drawn, seed)
    assert ran("--icbench-order=7")[0] != given
    refused = inner.run("--icbench-order=shuffled")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines(["*--icbench-order: 'shuffled' is neither given nor random nor a seed*"])
