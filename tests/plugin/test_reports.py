# SPDX-License-Identifier: BSD-3-Clause
"""JUnit XML, pytest-html, xdist and the progress line around a run. On a bench without a host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_icbench.model.measurement import Measurement
from pytest_icbench.plugin import progress
from pytest_icbench.plugin.progress import PLAIN_INTERVAL_S, PLAIN_PATIENCE_S
from pytest_icbench.store.history_file import read as read_history
from pytest_icbench.store.run_directory import read_tests
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

ONE = """
@pytest.mark.icbench(switch="ovs", packet_size=[64, 1500])
def test_a(icbench):
    icbench.gate(icbench.throughput())

def test_plain(): pass
"""


def cases(path: Path) -> dict[str, ElementTree.Element]:
    return {case.attrib["name"]: case for case in ElementTree.parse(path).getroot().iter("testcase")}


def said(out: ElementTree.Element) -> tuple[str, dict[str, Any]]:
    """The first line of a case's output, which is for readers, and the last one, which is the result."""
    lines = (out.text or "").splitlines()
    return lines[0], json.loads(lines[-1])


def test_junit_has_properties_and_the_line(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=ONE)
    inner.run("--junitxml=own.xml")
    found = cases(inner.path / "own.xml")
    case = found["test_a[ovs-64B-b32-1vs1-Rmax]"]
    properties = {item.attrib["name"]: item.attrib["value"] for item in case.iter("property")}
    assert properties["icbench.case"] == "ovs-64B-b32-1vs1-Rmax"
    assert properties["icbench.verdict"] == "NO_BASELINE"
    assert properties.pop("icbench.outcome") == "undecided"  # of the test, which can have several lines
    assert float(properties["icbench.throughput_pps"]) == 5e6
    out = case.find("system-out")
    assert out is not None
    sentence, line = said(out)
    assert sentence.startswith("ovs-64B-b32-1vs1-Rmax      5.00 Mpps  4.90 to 5.10 ")
    assert line == json.loads((inner.path / "reports/latest/results.jsonl").read_text().splitlines()[0])
    assert {name.removeprefix("icbench.") for name in properties} <= set(Measurement.from_dict(line).flat())
    assert list(found["test_plain"]) == []


def test_hostile_texts_leave_the_xml_well_formed(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(
        lambda case: measurement(case, verdict="INVALID", reason="died", evidence="\x1b[31m]]><a>&\x00\ud800 é")
    )
    inner.write(test_x=ONE)
    inner.run("--junitxml=own.xml", "-k", "ovs-64B")
    out = cases(inner.path / "own.xml")["test_a[ovs-64B-b32-1vs1-Rmax]"].find("system-out")
    assert out is not None
    sentence, line = said(out)
    assert sentence == "ovs-64B-b32-1vs1-Rmax  INVALID died"
    assert line["evidence"] == "\x1b[31m]]><a>&\x00\ud800 é"


def test_run_files_are_written_into_the_run(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.ini("icbench_run_files = true\n")
    inner.write(test_x=ONE)
    inner.run()
    assert "test_plain" in cases(inner.path / "reports" / "latest" / "junit.xml")


def test_a_users_own_junit_file_is_respected(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.ini("icbench_run_files = true\n")
    inner.write(test_x=ONE)
    inner.run("--junitxml=own.xml")
    assert (inner.path / "own.xml").is_file()
    assert not (inner.path / "reports" / "latest" / "junit.xml").exists()


def test_run_files_of_a_run_without_benchmarks_are_not_written(inner: Runner, bench: type[FakeTestbed]) -> None:
    pytest.importorskip("pytest_html")
    inner.ini("icbench_run_files = true\n")
    inner.write(test_x=ONE)
    for arguments in (("-k", "plain"), ("--collect-only",), ("--icbench-plan",)):
        inner.run("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin", *arguments)
    assert not (inner.path / "reports").exists()


def test_html(inner: Runner, bench: type[FakeTestbed]) -> None:
    pytest.importorskip("pytest_html")
    inner.ini("icbench_run_files = true\n")
    inner.write(test_x=ONE)
    result = inner.spawn_with_bench("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin")
    result.assert_outcomes(passed=3)
    page = (inner.path / "reports" / "latest" / "report.html").read_text()
    assert "throughput" in page
    assert "test_a[ovs-64B-b32-1vs1-Rmax]" in page
    assert '<h1 id="title">How fast is ovs? 64 and 1500 bytes</h1>' in page
    assert f"run {(inner.path / 'reports' / 'latest').resolve().name}</p>" in page


def test_a_command_to_repeat_is_whole_on_the_terminal_and_names_no_host_in_files(inner: Runner) -> None:
    pytest.importorskip("pytest_html")
    inner.ini("icbench_run_files = true\n")
    inner.write(test_x=ONE.replace("icbench.gate(icbench.throughput())", "assert not icbench.throughput()"))
    options = ("--icbench-remote=me@lab7.example.org", "--icbench-save=main", "--icbench-history=h.jsonl", "-k", "64B")
    result = inner.spawn_with_bench("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin", *options)
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(
        ["repeat with: pytest 'test_x.py::test_a?ovs-64B*' * --icbench-remote=me@lab7.example.org"]
    )
    run = inner.path / "reports" / "latest"
    for name in ("report.html", "tests.jsonl", "run.json", "junit.xml", "results.jsonl"):
        assert "lab7" not in (run / name).read_text()
    (test,) = read_tests(run)
    assert str(test.repeat).endswith(" --icbench-remote=HOST")
    assert "--icbench-remote=HOST" in (run / "report.html").read_text()


@pytest.mark.slow
def test_a_history_grows_with_every_run_and_is_on_the_page(inner: Runner) -> None:
    pytest.importorskip("pytest_html")
    inner.ini("icbench_run_files = true\n")
    inner.write(test_x=ONE)
    for _ in range(2):
        result = inner.spawn_with_bench(
            *("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin", "--icbench-history=h.jsonl", "-k", "64B")
        )
        result.assert_outcomes(passed=1, deselected=2)
    found, troubles = read_history(inner.path / "h.jsonl")
    assert troubles == []
    assert [(entry.case, entry.figures["throughput_pps"]["value"]) for entry in found] == [
        ("ovs-64B-b32-1vs1-Rmax", 5e6)
    ] * 2
    assert len({entry.run for entry in found}) == 2
    page = (inner.path / "reports" / "latest" / "report.html").read_text()
    assert '"id":"history-0"' in page
    assert "2 results, 1 level, more is better." in page


XDIST = ("-p", "xdist.plugin")


@pytest.mark.parametrize("own", ["", "@pytest.mark.parametrize('own', [1, 2])\n"])
def test_two_workers_on_one_host_are_refused(inner: Runner, own: str) -> None:
    """Also where the names of the tests have parameters of the user."""
    pytest.importorskip("xdist")
    inner.write(test_x=own + (ONE.replace("(icbench", "(own, icbench") if own else ONE))
    result = inner.spawn_with_bench(*XDIST, "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert text.count("benchmarks cannot share a host: leave -n out") == 1
    assert "passed" not in text
    assert not (inner.path / "reports").exists()


@pytest.mark.slow
def test_two_workers_without_benchmarks_run(inner: Runner) -> None:
    pytest.importorskip("xdist")
    inner.ini("icbench_run_files = true\n")
    inner.write(test_x=ONE)
    inner.spawn_with_bench(*XDIST, "-n2", "-k", "plain").assert_outcomes(passed=1)
    assert not (inner.path / "reports").exists()


def test_one_worker_runs_and_its_results_reach_the_controller(inner: Runner) -> None:
    pytest.importorskip("xdist")
    inner.ini("icbench_run_files = true\n")
    inner.write(test_x=ONE)
    result = inner.spawn_with_bench(*XDIST, "-n1", "--junitxml=own.xml")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*icbench results*", "64B *", "reports: *"])
    assert cases(inner.path / "own.xml")["test_a[ovs-1500B-b32-1vs1-Rmax]"].find("system-out") is not None
    runs = [path for path in (inner.path / "reports").iterdir() if not path.is_symlink()]
    assert len(runs) == 1
    assert str(runs[0]) in result.stdout.str()
    assert len((runs[0] / "results.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
def test_a_worker_that_cannot_have_the_host_says_so(inner: Runner) -> None:
    pytest.importorskip("xdist")
    inner.write(test_x=ONE)
    result = inner.spawn_with_bench(*XDIST, "-n1", before="Testbed.hold_error = UsageError('another session runs')")
    result.assert_outcomes(errors=2, passed=1)
    result.stdout.fnmatch_lines(["*another session runs*"])


def refused(result: pytest.RunResult, sentence: str) -> None:
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert f"ERROR: worker gw0: {sentence}" in text
    assert "INTERNALERROR" not in text


@pytest.mark.slow
def test_a_worker_that_refuses_what_it_collects_says_why(inner: Runner) -> None:
    pytest.importorskip("xdist")
    inner.write(test_x=ONE.replace('switch="ovs"', 'switch="ovs", burst=512'))
    refused(inner.spawn_with_bench(*XDIST, "-n1"), "test_x.py::test_a: a burst of 512 does not fit")
    assert not (inner.path / "reports").exists()


@pytest.mark.slow
def test_a_worker_whose_time_is_too_short_refuses(inner: Runner) -> None:
    pytest.importorskip("xdist")
    inner.write(test_x=ONE)
    found = inner.spawn_with_bench(*XDIST, "-n1", "--icbench-budget=10")
    refused(found, "--icbench-budget: 2 cases take at least ")


def test_a_plan_for_other_hosts_is_made_here(inner: Runner) -> None:
    """Nothing is connected to: there are no such hosts."""
    pytest.importorskip("xdist")
    inner.write(test_x=ONE)
    hosts = ("--dist=load", "--tx=3*ssh=lab1.invalid", "--tx=ssh=lab2.invalid")
    result = inner.spawn_with_bench(*XDIST, "--icbench-plan", *hosts)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["2 of 2 cases, at least *", "over 4 hosts like this one at least *"])
    result = inner.spawn_with_bench(*XDIST, "--icbench-plan", "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --icbench-plan runs nothing, so there is nothing to distribute: leave -n out"])


@pytest.mark.slow
def test_a_worker_with_another_package_refuses(inner: Runner) -> None:
    pytest.importorskip("xdist")
    inner.write(test_x=ONE)
    before = (
        "import pytest_icbench.plugin.collecting\nif 'PYTEST_XDIST_WORKER' in os.environ:\n"
        "    pytest_icbench.plugin.collecting.package_version = lambda: '0.0.9'"
    )
    found = inner.spawn_with_bench(*XDIST, "-n1", before=before)
    refused(found, "its host has pytest-icbench 0.0.9, the controller's host has ")
    inner.spawn_with_bench(*XDIST, "-n1", "-k", "plain", before=before).assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_worker_that_refuses_its_options_says_why(inner: Runner) -> None:
    """The controller has the file, and no reason to complain. Nor is a worker replaced by one that says the same."""
    pytest.importorskip("xdist")
    (inner.path / "there").mkdir()
    (inner.path / "limits.toml").touch()
    inner.write(test_x=ONE)
    arguments = ("--dist=load", "--tx=popen//chdir=there", f"--rsyncdir={inner.path}", f"{inner.path}/test_x.py")
    found = inner.spawn_with_bench(*XDIST, *arguments, "--icbench-thresholds=limits.toml")
    refused(found, f"--icbench-thresholds: there is no file {inner.path}/there/limits.toml")
    found = inner.spawn_with_bench(*XDIST, *arguments, "--icbench-thresholds", "limits.toml")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    found.stderr.fnmatch_lines(
        ["ERROR: --icbench-thresholds limits.toml: xdist takes *: --icbench-thresholds=limits.toml"]
    )


def test_progress_in_a_pipe_is_whole_lines(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner.ini("icbench_turns = no\n")
    assert min(PLAIN_PATIENCE_S, PLAIN_INTERVAL_S) >= 5
    monkeypatch.setattr(progress, "PLAIN_PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 0.0)
    inner.write(test_x=ONE)
    result = inner.run("-v")
    result.stdout.fnmatch_lines(
        [
            "icbench: case 1 of 2  ovs-64B-b32-1vs1-Rmax  launch 1/7  5.25 Mpps  0:00 elapsed, *:* left",
            "test_x.py::test_a[[]ovs-64B-b32-1vs1-Rmax] PASSED *",
            "  ovs-64B   *5.00 Mpps  4.90 to 5.10 *",
            "icbench: case 2 of 2 *",
        ]
    )
    assert "\x1b" not in result.stdout.str()
    assert "\r" not in result.stdout.str()


@pytest.mark.parametrize(
    ("mpps", "text"), [(5.25, "5.25 Mpps"), (0.1, "0.10 Mpps"), (0.001, "1,000 frames/s"), (0.000025, "25 frames/s")]
)
def test_a_slow_rate_is_shown_in_frames(mpps: float, text: str) -> None:
    assert progress.rate_text(mpps) == text


@pytest.mark.parametrize("arguments", [("-q",), ("-q", "-s")])
def test_quiet_runs_have_no_progress_in_a_pipe(
    inner: Runner, bench: type[FakeTestbed], arguments: tuple[str, ...]
) -> None:
    inner.write(test_x=ONE)
    result = inner.run(*arguments)
    assert "case 1 of 2" not in result.stdout.str()
    result.assert_outcomes(passed=3)


@pytest.mark.parametrize("arguments", [(), ("-v",), ("-s",), ("-q",), ("-v", "--capture=sys")])
def test_progress_on_a_terminal_is_gone_when_results_are_printed(inner: Runner, arguments: tuple[str, ...]) -> None:
    inner.ini("icbench_turns = no\n")
    inner.write(test_x=ONE)
    screen = inner.terminal_with_bench(*arguments)
    raw, shown = screen
    assert "case 1 of 2  ovs-64B-b32-1vs1-Rmax  build" in raw
    assert "case 2 of 2" in raw
    assert not [line for line in shown if "case 1 of 2" in line or "left" in line]
    assert any("3 passed" in line for line in shown)
    if "-v" in arguments:
        assert [line for line in shown if line.startswith("test_x.py::test_a[ovs-64B-b32-1vs1-Rmax] PASSED")]
    elif "-q" not in arguments:
        assert [line.split()[:2] for line in shown if "5.00  4.90" in line] == [["64B", "5.00"], ["1500B", "5.00"]]
