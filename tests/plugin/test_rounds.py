# SPDX-License-Identifier: BSD-3-Clause
"""Rounds over all cases before the tests, on a bench without a host."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.errors import WorkloadError
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.plugin.rounds import Rounds
from pytest_icbench.plugin.xdist_workers import ControllerHooks
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

TESTS = """
calls = []

@pytest.mark.icbench(switch=["ovs", "testpmd", "vpp"], packet_size=[64, 1500])
def test_a(icbench):
    calls.append(icbench.case.id)
    assert calls.count(icbench.case.id) == 1
    icbench.gate(icbench.throughput())
"""


def cases(run: Path) -> list[str]:
    return [json.loads(line)["case"] for line in (run / "results.jsonl").read_text().splitlines()]


def rounds_of(log: list[str]) -> list[list[str]]:
    """The cases of each round in their order; what a test measures itself is a last one."""
    found: dict[str, list[str]] = {}
    for entry in log:
        if entry.startswith("measure "):
            _, _, case, *number = entry.split()
            found.setdefault(" ".join(number), []).append(case)
    return list(found.values())


def test_each_case_has_launches_in_each_round_and_its_test_runs_once(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    inner.run("--icbench-rounds=3", "--icbench-order=5").assert_outcomes(passed=6)
    rounds = rounds_of(bench.log)
    assert len(rounds) == 3
    assert all(sorted(order) == sorted(rounds[0]) for order in rounds)
    assert len(set(map(tuple, rounds))) == 3  # each in an order of its own
    assert sorted(cases(inner.path / "reports" / "latest")) == sorted(rounds[0])
    assert [bench.log.count(f"build {switch}") for switch in ("ovs", "testpmd", "vpp")] == [3, 3, 3]
    assert [bench.log.count(f"close {switch}") for switch in ("ovs", "testpmd", "vpp")] == [3, 3, 3]


def test_an_order_is_repeated_by_its_seed(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    orders = []
    for _ in range(2):
        bench.log.clear()
        inner.run("--icbench-rounds=3", "--icbench-order=5").assert_outcomes(passed=6)
        orders.append(rounds_of(bench.log))
    assert orders[0] == orders[1]


def test_progress_reports_the_round_and_the_launch() -> None:
    """A case's launches are numbered over all rounds, so this round's number of them says nothing beside."""
    shown: list[Any] = []
    rounds = Rounds.__new__(Rounds)
    rounds._number = 1
    line = SimpleNamespace(update=lambda *texts, **_: shown.append(texts))
    rounds._run = SimpleNamespace(options=SimpleNamespace(rounds=3), progress=line)  # type: ignore[assignment]
    for launch in (0, 3):
        rounds._show(Progress("x", "case", launch, 2, None, 1.0, 1.0))
    assert shown == [("x", "round 2/3 preflight"), ("x", "round 2/3 launch 3")]


def test_what_is_not_launches_of_one_kind_is_measured_by_its_test(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(
        test_x="""
@pytest.mark.icbench(switch="ovs", packet_size=64)
def test_other_settings(icbench):
    icbench.throughput(duration=3)

@pytest.mark.icbench(switch="ovs", packet_size=128, measure="search")
def test_search(icbench):
    icbench.search("ndr")
"""
    )
    inner.run("--icbench-rounds=3").assert_outcomes(passed=2)
    measured = [entry for entry in bench.log if entry.startswith("measure")]
    assert sum("round" in entry for entry in measured) == 3
    assert measured[-2:] == [
        "measure throughput ovs-64B-b32-1vs1-Rmax",
        "measure throughput ovs-128B-b32-1vs1-Rndr",
    ]


def test_a_case_that_fails_in_a_round_fails_in_its_test(inner: Runner, bench: type[FakeTestbed]) -> None:
    def behave(case: Case) -> Measurement | BaseException:
        return WorkloadError("the sender crashed") if case.switch == "vpp" else measurement(case)

    bench.behaviour = staticmethod(behave)
    inner.write(test_x=TESTS)
    result = inner.run("--icbench-rounds=3")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["*the sender crashed*"])
    # A round each, and its test.
    assert sum("vpp" in entry for entry in bench.log if entry.startswith("measure")) == 4


def test_a_case_that_is_no_number_is_not_launched_again(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(lambda case: measurement(case, verdict="INVALID", reason="stalled", evidence="x"))
    inner.write(test_x=TESTS)
    inner.run("--icbench-rounds=3", "-k", "ovs and 64B").assert_outcomes(failed=1)
    assert [len(order) for order in rounds_of(bench.log)] == [1]


def test_what_finished_rounds_measured_is_kept(inner: Runner, bench: type[FakeTestbed]) -> None:
    seen: list[str] = []

    def behave(case: Case) -> Measurement | BaseException:
        seen.append(case.id)
        return pytest.exit.Exception("stop") if len(seen) == 9 else measurement(case)

    bench.behaviour = staticmethod(behave)
    inner.write(test_x=TESTS)
    result = inner.run("--icbench-rounds=3")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    run = inner.path / "reports" / "latest"
    assert sorted(cases(run)) == sorted(seen[:6])
    ended = [json.loads(line)["ended_by"] for line in (run / "results.jsonl").read_text().splitlines()]
    assert set(ended) == {"interrupted"}
    result.stdout.fnmatch_lines(["*go on with: pytest*--icbench-resume=*"])
    assert bench.log[-1] == "give back"


def test_a_budget_is_shared_by_the_rounds(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    inner.run("--icbench-rounds=3", "--icbench-budget=20m").assert_outcomes(passed=6)
    assert [len(order) for order in rounds_of(bench.log)] == [6, 6, 6]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--icbench-rounds=2"], "*--icbench-rounds: two rounds *: give 3 or more*"),
        (["--icbench-rounds=0"], "*--icbench-rounds: *"),
        (["--icbench-rounds=9", "--icbench-repeats=4"], "*--icbench-rounds 9: 4 launches (repeats) are fewer than*"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_run(
    inner: Runner, bench: type[FakeTestbed], arguments: list[str], sentence: str
) -> None:
    inner.write(test_x=TESTS)
    result = inner.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([sentence])
    assert bench.log == []


@pytest.mark.slow
def test_workers_have_no_rounds(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    result = inner.spawn_with_bench("-p", "xdist", "-n2", "--icbench-rounds=3")
    assert result.ret != 0
    assert "workers of xdist are given one each; drop -n" in result.stdout.str() + result.stderr.str()


def test_the_controller_refuses_rounds_whatever_it_hears_first() -> None:
    """On a busy host the second worker has collected before the first is heard to have refused."""
    hooks = ControllerHooks.__new__(ControllerHooks)
    hooks._session = SimpleNamespace(options=SimpleNamespace(rounds=3))
    with pytest.raises(pytest.UsageError, match="workers of xdist are given one each"):
        hooks.pytest_xdist_node_collection_finished(["test_x.py::test_rate[ovs-64B-b32-1vs1-Rmax]"])
    hooks.pytest_xdist_node_collection_finished(["test_x.py::test_that_is_no_case"])


def test_a_plan_knows_the_rigs_of_the_rounds(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    seconds = []
    for rounds in (1, 3):
        plan = inner.run("--icbench-plan", "--icbench-repeats=6", f"--icbench-rounds={rounds}").stdout.str()
        minutes, _, rest = plan.partition("at least ")[2].split()[0].partition(":")
        seconds.append(60 * int(minutes) + int(rest))
    # Three switches, each with a reference link, are built three times.
    assert seconds[1] - seconds[0] == 3 * 2 * 2 * 1.5
