# SPDX-License-Identifier: BSD-3-Clause
"""Groups of the help, options with a name unlike their field, and options without effect. On a bench without a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_icbench.config.axis import FIRST, GROUPS
from pytest_icbench.config.option_table import TABLE
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed
from tests.plugin.test_running import GATED, LIMITS, results


def test_every_option_is_in_one_group() -> None:
    assert {row.group for row in TABLE} == {*GROUPS}
    assert len([row for row in TABLE if row.group == FIRST]) == 8


def test_the_command_line_wins_over_the_ini_file_in_what_fails(inner: Runner, bench: type[FakeTestbed]) -> None:
    (inner.path / "thresholds.toml").write_text(LIMITS)
    inner.write(test_x=GATED)
    failing, passing = {"failed": 1, "undecided": 1, "deselected": 2}, {"passed": 1, "undecided": 1, "deselected": 2}
    assert inner.run("-k", "ovs").parseoutcomes() == failing
    assert inner.run("-k", "ovs", "--icbench-fail-on=none").parseoutcomes() == passing
    inner.ini("icbench_fail_on = INVALID\n")
    assert inner.run("-k", "ovs").parseoutcomes() == passing
    assert inner.run("-k", "ovs", "--icbench-fail-on=REGRESSED").parseoutcomes() == failing


def test_a_case_checks_its_payload(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    inner.run("-k", "ovs-64B", "--icbench-check-payload", "-k", "touch and 64B and ovs").assert_outcomes(
        passed=1, deselected=3
    )


def test_each_launch_has_a_rig_of_its_own(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    inner.run("-k", "ovs-64B", "--icbench-rebuild").assert_outcomes(passed=1, deselected=3)
    assert results(inner)[-1].settings["rebuild"] is True


def test_an_unknown_fact_that_must_match_is_refused(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    result = inner.run("--icbench-must-match=nothing.known")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --icbench-must-match: 'nothing.known' names no fact*"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--icbench-switch=testpmd", "--icbench-api=udp"),
            "--icbench-api: testpmd can have no API udp (testpmd has dpdk*",
        ),
        (
            ("--icbench-switch=ovs", "--icbench-port=memif"),
            "--icbench-port: ovs can have no port kind memif (ovs has *",
        ),
        (
            ("--icbench-candidate=forward:slow=mode:cost100",),
            "--icbench-candidate: no selected case is of forward (they are of ovs, testpmd): select one *",
        ),
        (("--icbench-rate=50%",), "*'50%' of what? *"),
    ],
)
def test_what_could_only_do_nothing_is_refused(
    inner: Runner, bench: type[FakeTestbed], arguments: tuple[str, ...], sentence: str
) -> None:
    inner.write(test_x=GATED)
    result = inner.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {sentence}"])
    assert bench.log == []


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("--icbench-blocking", "--icbench-blocking has no effect: no selected case has sockets"),
        ("--icbench-search-width=1%", "--icbench-search-width has no effect: no selected case searches for ndr or pdr"),
        ("--icbench-chain=1 5", "--icbench-chain has no effect: no selected case has a network function"),
        ("--icbench-cpu-share=70", "--icbench-cpu-share has no effect: no selected case has a network function"),
        ("--icbench-pf=eth0", "--icbench-pf has no effect: no selected case is of sriov"),
        (
            "--icbench-switch=ovs testpmd forward",
            "--icbench-switch forward has no effect: no selected case is of forward: it selects among tests' switches",
        ),
    ],
)
def test_what_does_nothing_here_is_reported(
    inner: Runner, bench: type[FakeTestbed], argument: str, sentence: str
) -> None:
    inner.write(test_x=GATED)
    result = inner.run(argument, "-k", "64B")
    result.assert_outcomes(passed=2, deselected=2)
    assert f"icbench: {sentence}" in result.outlines
    assert sentence not in inner.run("-k", "64B").stdout.str()


def test_a_rate_in_bits_is_one_in_frames(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    inner.run("-k", "ovs", "--icbench-rate=10Gbps").assert_outcomes(passed=2, deselected=2)
    assert [found.case for found in results(inner)] == ["ovs-64B-b32-1vs1-R14880952", "ovs-1500B-b32-1vs1-R822368"]


@pytest.mark.parametrize("named", ["a_package", "a_package.test_y"])
def test_the_repeat_command_of_a_test_outside_of_the_root_has_its_path(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """As with ``--pyargs``, whose ids are relative to a directory of the installation, or have no file."""
    package = inner.path / "elsewhere" / "a_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "test_y.py").write_text("import pytest\n" + GATED.replace("assert", "assert not"))
    root = inner.path / "work"
    root.mkdir()
    (root / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.chdir(root)
    result = inner.run("--pyargs", named, "-k", "ovs-64B")
    result.assert_outcomes(failed=1, deselected=3)
    (command,) = [line for line in result.outlines if line.startswith("repeat with: ")]
    words = command.removeprefix("repeat with: ").replace("'", "").split()
    assert words[1] == f"{package / 'test_y.py'}::test_a[ovs-64B-b32-1vs1-Rmax]"
    again = inner.run(
        *[word for word in words[1:] if word not in ("-p", "pytest_icbench.plugin.hooks", "no:cacheprovider")]
    )
    again.assert_outcomes(failed=1)
    assert Path(root / "reports").is_dir()
