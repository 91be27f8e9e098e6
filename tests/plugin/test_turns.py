# SPDX-License-Identifier: BSD-3-Clause
"""Cases that take turns, on a bench without a host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_icbench.errors import WorkloadError
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.plugin import progress, turns
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

TESTS = """
@pytest.mark.icbench(switch=["ovs", "testpmd", "vpp"], packet_size=[64, 1500], repeats=6)
def test_a(icbench):
    icbench.gate(icbench.throughput())
"""
SWITCHES = ("ovs", "testpmd", "vpp")


@pytest.fixture
def three(bench: type[FakeTestbed]) -> type[FakeTestbed]:
    """A bench on which each case is over after three turns."""
    bench.turns = 3
    return bench


def cases_of(run: Path) -> list[str]:
    return [json.loads(line)["case"] for line in (run / "results.jsonl").read_text().splitlines()]


def launches(log: list[str]) -> list[str]:
    return [entry.split()[2] for entry in log if entry.startswith(("turn ", "measure "))]


def test_cases_take_turns_and_their_tests_stay_in_order(inner: Runner, three: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    inner.run("--icbench-order=5").assert_outcomes(passed=6)
    order = launches(three.log)
    first, second, third = order[:6], order[6:12], order[12:]
    assert sorted(first) == sorted(second) == sorted(third) == sorted(set(order))
    assert len({tuple(turn) for turn in (first, second, third)}) > 1
    assert cases_of(inner.path / "reports" / "latest") == first  # the session's order
    assert [three.log.count(f"build {switch}") for switch in SWITCHES] == [1, 1, 1]
    assert [three.log.count(f"close {switch}") for switch in SWITCHES] == [1, 1, 1]


def test_the_user_can_have_each_case_at_once(inner: Runner, three: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    inner.run("--icbench-turns=no").assert_outcomes(passed=6)
    assert len(launches(three.log)) == 6


def test_a_group_takes_no_longer_than_the_bound(
    inner: Runner, three: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TURNS_S", 0.0)
    inner.write(test_x=TESTS)
    inner.run().assert_outcomes(passed=6)
    assert len(launches(three.log)) == 6  # groups of one are measured at once


def test_what_would_not_run_or_prepares_the_host_takes_no_part(inner: Runner, three: type[FakeTestbed]) -> None:
    inner.write(
        test_x="""
@pytest.fixture
def governor():
    yield

@pytest.mark.icbench(switch="ovs", packet_size=64)
def test_a(icbench):
    icbench.throughput()

@pytest.mark.skipif("True", reason="x")
@pytest.mark.icbench(switch="ovs", packet_size=128)
def test_skipped(icbench):
    icbench.throughput()

@pytest.mark.xfail(run=False)
@pytest.mark.icbench(switch="ovs", packet_size=129)
def test_not_run(icbench):
    icbench.throughput()

@pytest.mark.icbench(switch="ovs", packet_size=256)
def test_prepared(icbench, governor):
    icbench.throughput()

@pytest.mark.icbench(switch="ovs", packet_size=257)
def test_other_settings(icbench):
    icbench.throughput(duration=3)

@pytest.mark.icbench(switch="ovs", packet_size=512, measure="search")
def test_search(icbench):
    icbench.search("ndr")

@pytest.mark.icbench(switch="ovs", packet_size=1500)
def test_b(icbench):
    icbench.throughput()
"""
    )
    inner.run().assert_outcomes(passed=5, skipped=1, xfailed=1)
    counted = {size: sum(f"ovs-{size}B" in entry for entry in launches(three.log)) for size in (64, 256, 512, 1500)}
    assert counted == {64: 3, 256: 1, 512: 1, 1500: 3}
    assert not any("128B" in entry or "129B" in entry for entry in three.log)


def test_an_error_is_that_of_its_test(inner: Runner, three: type[FakeTestbed]) -> None:
    def behave(case: Case) -> Measurement | BaseException:
        return WorkloadError("the sender crashed") if case.switch == "vpp" else measurement(case)

    three.behaviour = staticmethod(behave)
    inner.write(test_x=TESTS)
    result = inner.run()
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["*the sender crashed*"])
    assert sum(entry.startswith("measure") and "vpp" in entry for entry in three.log) == 2


def test_a_broken_switch_fails_its_tests_alone(
    inner: Runner, three: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeTestbed, "broken", {"testpmd"})
    inner.write(test_x=TESTS)
    inner.run().assert_outcomes(passed=4, failed=2)


def test_what_is_no_number_is_so_for_its_test(inner: Runner, three: type[FakeTestbed]) -> None:
    def behave(case: Case) -> Measurement:
        bad = {"verdict": "INVALID", "reason": "stalled", "evidence": "x"} if case.switch == "ovs" else {}
        return measurement(case, **bad)

    three.behaviour = staticmethod(behave)
    inner.write(test_x=TESTS)
    inner.run().assert_outcomes(passed=4, failed=2)
    assert three.log.count("close ovs") == three.log.count("build ovs")


def test_what_was_measured_before_the_first_failure_is_kept(inner: Runner, three: type[FakeTestbed]) -> None:
    def behave(case: Case) -> Measurement | BaseException:
        return WorkloadError("x") if case.switch == "testpmd" else measurement(case)

    three.behaviour = staticmethod(behave)
    inner.write(test_x=TESTS)
    inner.run("-x").assert_outcomes(passed=2, failed=1)
    run = inner.path / "reports" / "latest"
    assert sorted(set(cases_of(run))) == sorted({case for case in launches(three.log) if "testpmd" not in case})
    assert [json.loads(line)["ended_by"] for line in (run / "results.jsonl").read_text().splitlines()] == [
        "repeats"
    ] * 4


def test_an_interruption_keeps_the_launches_so_far(inner: Runner, three: type[FakeTestbed]) -> None:
    seen: list[str] = []

    def behave(case: Case) -> Measurement | BaseException:
        seen.append(case.id)
        return pytest.exit.Exception("stop") if len(seen) == 3 else measurement(case)

    three.behaviour = staticmethod(behave)
    inner.write(test_x=TESTS)
    result = inner.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    run = inner.path / "reports" / "latest"
    ended = {
        fields["case"]: fields["ended_by"]
        for fields in map(json.loads, (run / "results.jsonl").read_text().splitlines())
    }
    assert len(ended) == 6
    assert sorted(case for case, why in ended.items() if why != "interrupted") == sorted(seen[:2])
    result.stdout.fnmatch_lines(["*go on with: pytest*--icbench-resume=*"])
    assert three.log[-1] == "give back"


def test_a_budget_gives_each_case_its_time(inner: Runner, three: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS.replace(", repeats=6", ""))
    inner.run("--icbench-budget=4m").assert_outcomes(passed=6)
    run = inner.path / "reports" / "latest"
    given = [
        json.loads(line)["settings"]["max_duration_s"] for line in (run / "results.jsonl").read_text().splitlines()
    ]
    assert 100 < sum(given) <= 240


def test_progress_names_the_turn(inner: Runner, three: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PLAIN_PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 0.0)
    inner.write(test_x=TESTS)
    inner.run("-v").stdout.fnmatch_lines(
        [
            "icbench: case 2 of 6  ovs-1500B-b32-1vs1-Rmax  turn 1 build *",
            "icbench: case 6 of 6  vpp-1500B-b32-1vs1-Rmax  turn 3 launch 1/7  5.25 Mpps  0:00 elapsed, 0:00 left",
            "test_x.py::test_a[[]ovs-64B-b32-1vs1-Rmax] PASSED *",
        ]
    )


def test_a_test_with_settings_of_its_own_takes_no_part(inner: Runner, three: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS.replace("throughput()", "throughput(duration=3)"))
    inner.run().assert_outcomes(passed=6)
    assert len(launches(three.log)) == 6


def test_a_test_that_may_not_measure_or_takes_the_rig_takes_no_part(inner: Runner, three: type[FakeTestbed]) -> None:
    inner.write(
        test_x="""
def helper(icbench):
    icbench.throughput()

@pytest.mark.icbench(switch="ovs", packet_size=[64, 65], repeats=6)
def test_a(icbench):
    icbench.gate(icbench.throughput())

@pytest.mark.icbench(switch="ovs", packet_size=128, repeats=6)
def test_nothing(icbench):
    assert icbench.case

@pytest.mark.icbench(switch="ovs", packet_size=256, repeats=6)
def test_by_a_helper(icbench):
    helper(icbench)

@pytest.mark.icbench(switch="ovs", packet_size=512, repeats=6)
def test_on_the_rig(icbench):
    icbench.rig()
    icbench.throughput()
"""
    )
    inner.run().assert_outcomes(passed=5)
    order = [case.split("-")[1] for case in launches(three.log)]
    assert sorted(order[:6]) == ["64B"] * 3 + ["65B"] * 3
    assert order[6:] == ["256B", "512B"]
