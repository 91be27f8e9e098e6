# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong outside of a test ends in an exit status and a sentence, and never in pytest's internal error."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.store.stored_run import read_run
from tests.plugin.conftest import LOAD, Runner
from tests.plugin.fakes import FakeTestbed

TEST = "@pytest.mark.icbench(switch='ovs', packet_size=64)\ndef test_rate(icbench):\n    icbench.throughput()\n"
ODD = [
    FileNotFoundError(2, "No such file or directory", "/sys/class/net/veth7/mtu"),
    KeyError("nix"),
    ValueError("a\nb"),
]


def assert_reported(result: pytest.RunResult, status: int, sentence: str) -> None:
    said = result.stdout.str() + result.stderr.str()
    assert result.ret == status, said
    assert "INTERNALERROR" not in said
    assert sentence in said


@pytest.mark.parametrize("error", ODD, ids=["os", "key", "value"])
def test_taking_the_host(inner: Runner, bench: type[FakeTestbed], error: Exception) -> None:
    bench.hold_error = error
    inner.write(test_x=TEST)
    assert_reported(inner.run(), 4, f"ERROR: {type(error).__name__}: ")
    assert not [path for path in inner.path.glob("reports/*") if path.is_dir()]


@pytest.mark.parametrize("error", ODD, ids=["os", "key", "value"])
def test_examining_the_host(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def policy(_: FakeTestbed) -> str:
        raise error

    monkeypatch.setattr(bench, "policy", property(policy))
    inner.write(test_x=TEST)
    assert_reported(inner.run(), 0, f"icbench: {type(error).__name__}: ")


def test_giving_the_host_back(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.close_error = KeyError("nix")
    inner.write(test_x=TEST)
    assert_reported(inner.run(), 1, "KeyError: 'nix'")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("raise KeyError('nix')", "pytest_icbench_switches raised KeyError: 'nix'"),
        ("return [7]", "pytest_icbench_switches: 7 is no class"),
        ("return [type('A', (), {})]", "pytest_icbench_switches: A (conftest) has no name"),
        (
            "return [type('A', (LinuxBridge,), {'name': 7})]",
            "pytest_icbench_switches: A (abc) has no name: its attribute 'name' is 7",
        ),
        (
            "return [type('A', (LinuxBridge,), {'name': 'a', 'ports': 7})]",
            "pytest_icbench_switches: switch 'a' (abc): ports is 7, but has to be a tuple of texts",
        ),
    ],
)
def test_a_hook_for_switches(inner: Runner, bench: type[FakeTestbed], text: str, sentence: str) -> None:
    inner.pytester.makeconftest(
        "from pytest_icbench.driver.switch.kernel.linux_bridge import LinuxBridge\n"
        f"def pytest_icbench_switches(config):\n    {text}\n"
    )
    inner.write(test_x=TEST)
    result = inner.run()
    said = result.stdout.str() + result.stderr.str()
    assert result.ret in (2, 4), said
    assert "INTERNALERROR" not in said
    assert sentence in said


@pytest.mark.parametrize("hook", ["pytest_icbench_nodes", "pytest_icbench_functions", "pytest_icbench_applications"])
@pytest.mark.parametrize(
    ("text", "sentence"), [("raise KeyError('nix')", " raised KeyError: 'nix'"), ("return [7]", ": 7 is no class")]
)
def test_another_hook(inner: Runner, bench: type[FakeTestbed], hook: str, text: str, sentence: str) -> None:
    inner.pytester.makeconftest(f"def {hook}(config):\n    {text}\n")
    marker = "app='redis', switch='veth'" if "applications" in hook else "switch='ovs'"
    inner.write(test_x=TEST.replace("switch='ovs'", marker))
    result = inner.run()
    said = result.stdout.str() + result.stderr.str()
    assert result.ret in (2, 4), said
    assert "INTERNALERROR" not in said
    assert f"{hook}{sentence}" in said


@pytest.mark.parametrize("lines", ["[{'case': 7}]", "[7]", "7", "[{}, None]"])
def test_a_result_of_a_worker_that_is_none(inner: Runner, bench: type[FakeTestbed], lines: str) -> None:
    inner.pytester.makeconftest(
        "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_logreport(report):\n"
        f"    if report.when == 'call' and 'odd' in report.nodeid:\n        report.icbench = {lines}\n"
    )
    inner.write(test_x=f"{TEST.replace('test_rate', 'test_odd')}\n\n{TEST}")
    result = inner.run()
    assert_reported(result, 1, "test_x.py::test_odd[ovs-64B-b32-1vs1-Rmax]: its results are left out: ")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["  ovs-64B  its results cannot be read", "ovs *5.00 *"])


@pytest.mark.parametrize("option", ["--junitxml", "--html"])
def test_a_report_that_cannot_be_written(inner: Runner, bench: type[FakeTestbed], option: str) -> None:
    """The other report is written all the same."""
    if option == "--html":
        pytest.importorskip("pytest_html")
    inner.write(test_x=TEST)
    plugins = ["-p", "pytest_html.plugin", "-p", "pytest_metadata.plugin"]
    other = {"--junitxml": "--html", "--html": "--junitxml"}[option]
    result = inner.run(*plugins, f"{option}=/dev/full", f"{other}=other", "--self-contained-html")
    assert_reported(result, 1, "a report cannot be written: OSError: [Errno 28] No space left on device")
    assert (inner.path / "other").stat().st_size > 0


def test_the_reports_cannot_be_made(inner: Runner, bench: type[FakeTestbed]) -> None:
    (inner.path / "file").write_text("")
    inner.ini("icbench_run_files = yes\n")
    inner.write(test_x=TEST)
    assert_reported(inner.spawn_with_bench("--icbench-reports=file/x"), 4, "the reports cannot be written: ")


@pytest.mark.parametrize(
    ("following", "sentence"),
    [("", "No such file or directory"), (TEST.replace("_rate", "_last"), "has vanished with the results in it: ")],
    ids=["after the last result", "before it"],
)
def test_the_run_s_directory_vanishes(inner: Runner, bench: type[FakeTestbed], following: str, sentence: str) -> None:
    """Lost results are reported, also where the next one could be written into a new directory."""
    gone = "    [shutil.rmtree(path) for path in pathlib.Path('reports').glob('2*')]\n"
    inner.write(test_x=f"import pathlib, shutil\n{TEST}{gone}\n{following}")
    assert_reported(inner.run("--icbench-reports=reports"), 1, sentence)


ON_SMALL_DISKS = pytest.mark.skipif(os.geteuid() != 0, reason="small disks are mounted by root: run pytest with sudo")
TESTS = tuple(TEST.replace("test_rate", f"test_{number}") for number in range(8))


def on_a_small_disk(inner: Runner, tests: Iterable[str], kib: int) -> tuple[pytest.RunResult, str, list[Path]]:
    """Runs tests in a mount namespace of their own. Returns the result, what was said, and the runs on the disk."""
    (inner.path / "reports").mkdir()
    inner.ini("icbench_run_files = yes\n")
    inner.write(test_x="\n\n".join(tests))
    inner.put_bench("")
    mount = f'mount -t tmpfs -o size={kib}k tmpfs reports && "$@"; status=$?; cp -r reports kept; exit $status'
    pytest_argv = [sys.executable, "-m", "pytest", *LOAD, "-p", "pytest_html.plugin", "-p", "pytest_metadata.plugin"]
    argv: list[Any] = ["unshare", "--mount", "sh", "-c", mount, "sh", *pytest_argv, "--icbench-reports=reports", "-rA"]
    result = inner.pytester.run(*argv)
    said = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in said
    assert "Traceback" not in said
    return result, said, [path for path in (inner.path / "kept").glob("2*") if path.is_dir()]


@ON_SMALL_DISKS
@pytest.mark.parametrize("kib", [4, 8, 16, 200, *(pytest.param(kib, marks=pytest.mark.slow) for kib in (32, 60, 100))])
def test_a_full_disk(inner: Runner, kib: int) -> None:
    """What is on the disk can be read, and belongs to tests that passed."""
    result, said, runs = on_a_small_disk(inner, TESTS, kib)
    assert result.ret in (0, 1, 4), said
    if result.ret:
        assert "No space left on device" in said
    passed = {line.split()[1] for line in result.outlines if line.startswith("PASSED ")}
    assert bool(runs) == (result.ret != 4)
    for run in runs:
        stored = read_run(run)
        assert len(stored.results) >= len(passed), said
        for file in run.glob("raw/**/*.jsonl"):
            assert file.read_text().endswith("\n")


@ON_SMALL_DISKS
@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 3, 7])
@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ("head -c 9999999 /dev/zero >reports/filling", "No space left on device"),
        ("mount -o remount,ro reports", "Read-only file system"),
        ("rm -r reports/*", "has vanished|No such file or directory"),
    ],
    ids=["full", "read-only", "emptied"],
)
def test_a_disk_that_goes_between_two_tests(inner: Runner, loss: str, sentence: str, before: int) -> None:
    """What had passed has its results, unless they were removed; each later test says what is wrong."""
    loses = TESTS[before].replace("    icbench.", f"    __import__('os').system({loss!r})\n    icbench.")
    result, said, runs = on_a_small_disk(inner, [*TESTS[:before], loses, *TESTS[before + 1 :]], 4096)
    assert result.ret == 1, said
    passed = {line.split()[1].partition("[")[0] for line in result.outlines if line.startswith("PASSED ")}
    assert passed == {f"test_x.py::test_{number}" for number in range(before)}
    lost = [line for line in result.outlines if line.startswith(("FAILED ", "ERROR "))]
    assert {line.split("::")[1].split("[")[0] for line in lost} == {f"test_{number}" for number in range(before, 8)}
    assert re.search(sentence, said)
    if "rm" not in loss:
        (run,) = runs
        assert len(read_run(run).results) == before
