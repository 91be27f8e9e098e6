# SPDX-License-Identifier: BSD-3-Clause
"""Habits of pytest's users: each command and its outcome, with two switches, one long form and one plain test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

TESTS = """
@pytest.mark.icbench(switch=["ovs", "veth"], packet_size=[64, 1500], protocol="quick")
def test_rate(icbench):
    icbench.gate(icbench.throughput())

@pytest.mark.published
@pytest.mark.icbench(switch="ovs", packet_size=[64, 512, 1500])
def test_rate_as_published(icbench):
    icbench.gate(icbench.throughput())

def test_plain():
    pass
"""
#: A test that fails for one of its cases.
FAILING = """
@pytest.mark.icbench(switch=["ovs", "veth"])
def test_rate(icbench):
    assert icbench.throughput().switch != "ovs"
"""
ONE = "test_x.py::test_rate[ovs-64B-b32-1vs1-Rmax]"
LONG = "test_x.py::test_rate_as_published"


@pytest.mark.parametrize(
    ("arguments", "outcomes"),
    [
        ((), {"passed": 5}),
        (("-k", "ovs"), {"passed": 2}),
        (("-k", "ovs and 64B"), {"passed": 1}),
        (("-k", "plain"), {"passed": 1}),
        (("-m", "icbench"), {"passed": 4}),
        (("-m", "not icbench"), {"passed": 1}),
        (("-m", "published"), {"passed": 3}),
        (("-m", "published or not published"), {"passed": 8}),
        (("-k", "published and 64B"), {"passed": 1}),
        (("-x", "--durations=3", "--tb=short", "-ra"), {"passed": 5}),
        (("-q",), {"passed": 5}),
        (("-v", "-s"), {"passed": 5}),
        ((ONE,), {"passed": 1}),
        ((LONG,), {"passed": 3}),
        ((f"{LONG}[ovs-512B-b32-1vs1-Rmax]",), {"passed": 1}),
        (("test_x.py", "--deselect", ONE), {"passed": 4}),
        (("-p", "no:junitxml", "-p", "no:terminal"), None),
        (("--rootdir=.", "-c", "other.ini"), {"passed": 5}),
        (("--junitxml=mine.xml", "-o", "junit_family=xunit1"), {"passed": 5}),
        (("--maxfail=1", "--strict-markers", "-W", "error"), {"passed": 5}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_runs_what_its_user_means(
    inner: Runner, bench: type[FakeTestbed], arguments: tuple[str, ...], outcomes: dict[str, int] | None
) -> None:
    inner.write(test_x=TESTS)
    (inner.path / "other.ini").write_text("[pytest]\n")
    result = inner.run(*arguments)
    assert result.ret == 0
    if outcomes is not None:
        passed = result.parseoutcomes()
        assert passed.get("passed", 0) == outcomes["passed"]
        assert set(passed) <= {"passed", "deselected"}


def test_collect_only_lists_the_short_forms(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    result = inner.run("--co", "-q")
    cases = (f"test_rate[{switch}-{size}B-b32-1vs1-Rmax]" for switch in ("ovs", "veth") for size in (64, 1500))
    assert {line for line in result.outlines if "::" in line} == {
        f"test_x.py::{name}" for name in (*cases, "test_plain")
    }
    assert bench.log == []


def test_failed_ones_run_again(inner: Runner, bench: type[FakeTestbed]) -> None:
    """Also one that is a long form."""
    inner.write(test_x=FAILING.replace("@", "@pytest.mark.published\n@", 1))
    cache = ("-p", "cacheprovider")
    assert inner.pytester.runpytest_inprocess("-p", "pytest_icbench.plugin.hooks", "-m", "published").ret == 1
    for again in ("--lf", "--last-failed"):
        result = inner.pytester.runpytest_inprocess("-p", "pytest_icbench.plugin.hooks", again, *cache)
        result.assert_outcomes(failed=1)
    result = inner.pytester.runpytest_inprocess("-p", "pytest_icbench.plugin.hooks", "-m", "published", "--ff", "-x")
    result.assert_outcomes(failed=1)


def test_arguments_of_the_environment_count(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k ovs")
    inner.write(test_x=TESTS)
    inner.run().assert_outcomes(passed=2, deselected=6)


def test_what_is_left_out_is_said_and_how_it_runs(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    (line,) = (line for line in inner.run("-k", "ovs").outlines if "published" in line)
    assert line.startswith("icbench: 3 published cases left out; 3 of them take at least 2:")
    assert line.endswith("they run with: -m published")
    assert not any("left out" in line for line in inner.run("-k", "veth").outlines)


def test_long_forms_alone_are_left_out_with_the_same_line(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x="@pytest.mark.published\n@pytest.mark.icbench(switch='ovs')\ndef test_a(icbench): pass")
    result = inner.run()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert any(line.startswith("icbench: 1 published case left out") for line in result.outlines)
    assert bench.log == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-k", "veth and 64B"), "1 of 1 case can run here: about 0:0"),
        (("--icbench-repeats=100",), "4 of 4 cases can run here: about "),
        (("--icbench-budget=5m",), "4 of 4 cases can run here: about 5:00; for less: fewer by -k"),
        (("-m", "published"), "3 of 3 cases can run here: about 2:54; for less: fewer by -k, --icbench-protocol quick"),
        (
            ("-m", "published", "--icbench-packet-size=64 128 256 512 1024 1500"),
            "; for less: fewer by -k, --icbench-protocol quick, --icbench-budget 5m",
        ),
    ],
)
def test_a_session_says_how_long_it_takes(
    inner: Runner, bench: type[FakeTestbed], arguments: tuple[str, ...], said: str
) -> None:
    inner.write(test_x=TESTS)
    lines = [line for line in inner.run(*arguments).outlines if line.startswith("icbench: ")]
    assert any(said in line for line in lines), lines


def test_a_directory_without_tests_gets_the_name_of_the_scenarios(inner: Runner) -> None:
    result = inner.run("-k", "vpp")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert any("pytest --pyargs pytest_icbench.scenarios" in line for line in result.outlines)
    inner.write(test_x="def test_plain(): pass")
    assert not any("icbench" in line for line in inner.run("-k", "vpp").outlines)


def test_switches_that_no_test_names_are_said(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    result = inner.run("--icbench-switch=macvlan", "-m", "not published", "-k", "rate")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert any(line.startswith("icbench: no case of macvlan: --icbench-switch selects") for line in result.outlines)


def test_skips_are_listed_by_reason_at_the_end(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.unsupported = {"ovs": "ovs is not installed: apt install openvswitch-switch-dpdk"}
    inner.write(test_x=TESTS)
    result = inner.run("-q")
    result.stdout.fnmatch_lines(
        ["*icbench: 2 cases skipped*", "*2 cases  ovs: ovs is not installed: apt install openvswitch-switch-dpdk"]
    )
    assert not any("nothing was measured" in line for line in result.outlines)


def test_a_session_that_measured_nothing_says_so(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.unsupported = {"ovs": "ovs is not installed: apt install openvswitch-switch-dpdk"}
    inner.write(test_x=TESTS)
    result = inner.run("-k", "ovs")
    result.stdout.fnmatch_lines(
        ["icbench: no case can run here*", "*icbench: nothing was measured*", "*2 cases  ovs: ovs is not*"]
    )
    assert result.ret == 0


def test_reports_are_written_without_being_asked_for(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    inner.pytester.runpytest_inprocess(
        *("-p", "pytest_icbench.plugin.hooks", "-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin"), "-k", "64B"
    ).assert_outcomes(passed=2, deselected=6)
    latest = inner.path / "reports" / "latest"
    assert (latest / "junit.xml").read_text().count("<testcase ") == 2
    assert "ovs-64B-b32-1vs1-Rmax" in (latest / "report.html").read_text()


def test_reports_can_be_left_out(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.ini("icbench_run_files = no\n")
    inner.write(test_x=TESTS)
    inner.run("-k", "64B")
    assert not (inner.path / "reports" / "latest" / "junit.xml").exists()


def test_plain_tests_leave_no_reports(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    inner.run("-k", "plain")
    assert not (inner.path / "reports").exists()


@pytest.mark.parametrize("where", ["sub", "."])
def test_a_sub_folder_uses_the_reports_of_its_root(inner: Runner, bench: type[FakeTestbed], where: str) -> None:
    (inner.path / "sub").mkdir()
    (inner.path / where / "test_x.py").write_text("import pytest\n" + TESTS)
    inner.run(where, "-k", "ovs and 64B").assert_outcomes(passed=1, deselected=7)
    assert (inner.path / "reports" / "latest" / "results.jsonl").is_file()


def test_a_path_that_pytest_takes_for_tests_is_refused(inner: Runner, bench: type[FakeTestbed], tmp_path: Path) -> None:
    """pytest finds another root then, and none of its ini file's values."""
    inner.write(test_x=TESTS)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    result = inner.run("--icbench-reports", str(elsewhere))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--icbench-reports={elsewhere}" in result.stderr.str()
    inner.run(f"--icbench-reports={elsewhere}", "-k", "ovs and 64B").assert_outcomes(passed=1, deselected=7)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("lnux-bridge-64B-*", True), ("ovs-65B-b32-1vs1-Rmax", True), ("ovs-*", False), ("veth-1500B-b32-*", False)],
)
def test_limits_of_no_case_are_a_slip(inner: Runner, bench: type[FakeTestbed], pattern: str, said: bool) -> None:
    inner.write(test_x=TESTS)
    (inner.path / "thresholds.toml").write_text(f'["{pattern}"]\nmin_throughput_pps = 1\n')
    found = [line for line in inner.run("-k", "ovs and 64B").outlines if "matches none of" in line]
    assert [f'["{pattern}"]' in line for line in found] == [True] * said
    assert not any("matches none" in line for line in inner.run("--icbench-switch=ovs").outlines)


def results_of(inner: Runner) -> list[dict[str, Any]]:
    text = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_quick_protocol_shortens_what_a_marker_says(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TESTS)
    inner.run(f"{LONG}[ovs-64B-b32-1vs1-Rmax]", "--icbench-protocol=quick", "--icbench-duration=0.3")
    (found,) = results_of(inner)
    settings = found["settings"]
    assert [settings[name] for name in ("repeats", "duration_s", "warmup_s", "reference")] == [6, 0.3, 0.1, False]
