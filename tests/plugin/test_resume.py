# SPDX-License-Identifier: BSD-3-Clause
"""A run's bundle, and going on with one that was interrupted. On a bench without a host."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.store.run_directory import read_tests
from pytest_icbench.store.run_json import read_info
from pytest_icbench.store.stored_run import read_run, read_with_windows
from tests.measurements import launch, measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

THREE = """
@pytest.mark.icbench(switch="ovs", packet_size=[64, 512, 1500])
def test_a(icbench):
    icbench.gate(icbench.throughput())
"""
LIMITS = '["*"]\nmin_throughput_pps = 4_000_000\n'


def latest(inner: Runner) -> Path:
    return (inner.path / "reports" / "latest").resolve()


def lines(run: Path) -> list[str]:
    return (run / "results.jsonl").read_text().splitlines()


def measured(bench: type[FakeTestbed]) -> list[str]:
    return [entry for entry in bench.log if entry.startswith("measure")]


def ended_at(size: int, error: BaseException) -> Callable[[Case], Measurement | BaseException]:
    whole = measurement(per_launch=tuple(launch(index=number) for number in range(6)))
    base = {name: getattr(whole, name) for name in ("per_launch",)}
    return lambda case: error if case.traffic.packet_size == size else measurement(case, **base)


@pytest.fixture
def interrupted(inner: Runner, bench: type[FakeTestbed]) -> Path:
    """A run of three cases that ended in the second."""
    inner.ini("icbench_turns = no\n")
    inner.write(test_x=THREE)
    bench.behaviour = staticmethod(ended_at(512, pytest.exit.Exception("stop")))
    inner.run()
    bench.log.clear()
    bench.behaviour = staticmethod(ended_at(0, pytest.exit.Exception("stop")))
    return latest(inner)


def test_a_run_holds_how_it_was_made_and_each_test(inner: Runner, bench: type[FakeTestbed]) -> None:
    (inner.path / "thresholds.toml").write_text(LIMITS)
    bench.unsupported = {"vpp": "vpp is not installed"}
    inner.write(test_x=THREE.replace('"ovs"', '["ovs", "vpp"]'))
    inner.run("--icbench-ring", "512")
    run = latest(inner)
    info = read_info(run)
    assert info is not None
    assert info.argv[-2:] == ("--icbench-ring", "512")
    assert info.files[str(inner.path / "thresholds.toml")] == LIMITS
    assert "def test_a" in info.files[str(inner.path / "test_x.py")]
    tests = {test.nodeid.partition("[")[2]: test for test in read_tests(run)}
    passed = tests["ovs-64B-b32-1vs1-Rmax]"]
    assert (passed.outcome, len(passed.results)) == ("passed", 1)
    assert passed.results[0].limits is not None
    assert passed.results[0].limits[0]["value"] == 4e6
    assert passed.repeat is not None
    assert passed.repeat.startswith("pytest 'test_x.py::test_a[ovs-64B-b32-1vs1-Rmax]' ")
    assert passed.repeat.endswith("--icbench-ring 512")
    skipped = tests["vpp-64B-b32-1vs1-Rmax]"]
    assert (skipped.outcome, skipped.reason) == ("skipped", "vpp is not installed")


def test_a_failure_prints_the_command_that_repeats_it(inner: Runner, bench: type[FakeTestbed]) -> None:
    (inner.path / "thresholds.toml").write_text(LIMITS.replace("4_", "6_"))
    inner.write(test_x=THREE)
    result = inner.run("-k", "ovs-64B")
    result.stdout.fnmatch_lines(["repeat with: *pytest 'test_x.py::test_a[[]ovs-64B-b32-1vs1-Rmax]'*"])
    (test,) = read_tests(latest(inner))
    assert test.outcome == "failed"
    assert "REGRESSED" in (test.reason or "")


def test_resuming_measures_only_what_is_missing(inner: Runner, bench: type[FakeTestbed], interrupted: Path) -> None:
    result = inner.run("--icbench-resume", interrupted.name)
    result.assert_outcomes(passed=3)
    assert [entry.split()[-1].split("-")[1] for entry in measured(bench)] == ["512B", "1500B"]
    result.stdout.fnmatch_lines([f"1 of 3 results was taken from {interrupted.name}"])
    run = latest(inner)
    assert run != interrupted
    assert lines(run)[0] == lines(interrupted)[0]
    info = read_info(run)
    assert info is not None
    assert info.resumed == interrupted.name
    stored = read_run(run)
    assert [each.place.taken_from for each in stored.results if each.place] == [interrupted.name, None, None]
    assert len(read_with_windows(stored.results[0]).per_launch[0].windows) == 10


def test_a_resumed_run_can_be_resumed_by_its_link(inner: Runner, bench: type[FakeTestbed], interrupted: Path) -> None:
    inner.run("--icbench-resume", "latest")
    bench.log.clear()
    inner.run("--icbench-resume", "latest").assert_outcomes(passed=3)
    assert measured(bench) == []


def test_what_was_taken_is_judged_by_the_limits_of_now(
    inner: Runner, bench: type[FakeTestbed], interrupted: Path
) -> None:
    (inner.path / "thresholds.toml").write_text(LIMITS.replace("4_", "6_"))
    inner.run("--icbench-resume", interrupted.name).assert_outcomes(failed=3)
    assert json.loads(lines(latest(inner))[0])["verdict"] == "REGRESSED"


def test_an_invalid_measurement_is_made_again(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=THREE)
    bench.behaviour = staticmethod(lambda case: measurement(case, verdict="INVALID", reason="stalled"))
    inner.run()
    bench.log.clear()
    bench.behaviour = staticmethod(lambda case: measurement(case))
    inner.run("--icbench-resume", "latest").assert_outcomes(passed=3)
    assert len(measured(bench)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--icbench-ring", "512"], "*the command line of *"),
        (["--icbench-resume", "nonsense"], "*there is no run 'nonsense' below *"),
    ],
)
def test_another_run_is_refused(
    inner: Runner, bench: type[FakeTestbed], interrupted: Path, arguments: list[str], message: str
) -> None:
    result = inner.run("--icbench-resume", interrupted.name, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert "hold" not in bench.log


@pytest.mark.parametrize(("place", "word"), [(0, "the host's machine"), (1, "the treatment's kernel")])
def test_another_host_or_kernel_is_refused(
    inner: Runner,
    bench: type[FakeTestbed],
    interrupted: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: int,
    word: str,
) -> None:
    facts: list[dict[str, Any]] = [{"machine": "fake"}, {"kernel": "6.1"}]
    facts[place] = dict.fromkeys(facts[place], "other")
    monkeypatch.setattr(bench, "facts", tuple(facts))
    result = inner.run("--icbench-resume", interrupted.name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{word} of {interrupted.name} was *"])


def test_another_scenario_is_refused(inner: Runner, bench: type[FakeTestbed], interrupted: Path) -> None:
    inner.write(test_x=THREE + "\n# changed\n")
    result = inner.run("--icbench-resume", interrupted.name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--icbench-resume: *test_x.py*"])


@pytest.mark.parametrize(
    ("kind", "texts", "message"),
    [
        ("", ("#!/bin/sh\n", "#!/bin/sh\n:\n"), "*the binary ovs:new of *"),
        ("config:", ("[other_config]\na = '1'\n", "[other_config]\na = '2'\n"), "*--icbench-resume: *new has *"),
    ],
)
def test_another_candidate_is_refused(
    inner: Runner, bench: type[FakeTestbed], kind: str, texts: tuple[str, str], message: str
) -> None:
    bench.compared = staticmethod(lambda case: (measurement(case), measurement(case.base)))
    inner.write(test_x=THREE)
    path = inner.path / "new"
    arguments = (f"--icbench-candidate=ovs:new={kind}{path}", "--icbench-resume=latest")
    for text in texts:
        path.write_text(text)
        path.chmod(0o755)
        result = inner.run(*arguments[: 1 if text == texts[0] else 2])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_after_a_kill_in_mid_run(inner: Runner) -> None:
    inner.ini("icbench_turns = no\n")
    inner.write(test_x=THREE)
    die = (
        "import os, signal\nfrom tests.measurements import measurement\n"
        "def behave(case):\n"
        "    if case.traffic.packet_size == 512 and not os.path.exists('killed'):\n"
        "        open('killed', 'w').close()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return measurement(case)\n"
        "Testbed.behaviour = staticmethod(behave)"
    )
    assert inner.spawn_with_bench(before=die).ret != 0
    run = latest(inner)
    assert len(lines(run)) == 1
    with (run / "tests.jsonl").open("a") as file:
        file.write('{"schema": 1, "nodeid": "cut o')  # a line that a crash cut off
    result = inner.spawn_with_bench("--icbench-resume", "latest", before=die)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines([f"1 of 3 results was taken from {run.name}"])


def test_measurements_taken_are_whole(inner: Runner, bench: type[FakeTestbed], interrupted: Path) -> None:
    """The test's own assertions run on them again."""
    stored = read_run(interrupted)
    whole = read_with_windows(stored.results[0])
    assert replace(whole, per_launch=()) == replace(stored.results[0].measurement, per_launch=())
    assert whole.to_json() == lines(interrupted)[0]
