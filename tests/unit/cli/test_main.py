# SPDX-License-Identifier: BSD-3-Clause
"""The command icbench."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_icbench.cli import main
from pytest_icbench.cli.scenarios import packaged_scenarios
from pytest_icbench.config.topology import read


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    source = tmp_path / "package" / "scenarios"
    (source / "topologies").mkdir(parents=True)
    (source / "__pycache__").mkdir()
    (source / "test_rate.py").write_text("rate")
    (source / "thresholds.toml").write_text("limits")
    (source / "topologies" / "two.toml").write_text("two")
    (source / "__pycache__" / "test_rate.pyc").write_text("x")
    monkeypatch.setattr(main, "packaged_scenarios", lambda: source)
    return source


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_scenarios_are_written_out(packaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "mine"
    assert main.main(["scenarios", str(target)]) == 0
    assert names(target) == ["test_rate.py", "thresholds.toml", "topologies/two.toml"]
    assert capsys.readouterr().out.splitlines() == [str(target / name) for name in names(target)]


def test_scenarios_are_not_overwritten(packaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / "thresholds.toml").write_text("my own")
    assert main.main(["scenarios", str(target)]) == 2
    assert names(target) == ["thresholds.toml"]
    error = capsys.readouterr().err
    assert f"{target / 'thresholds.toml'} exists" in error
    assert "--force" in error
    assert main.main(["scenarios", str(target), "--force"]) == 0
    assert (target / "thresholds.toml").read_text() == "limits"


def test_scenarios_into_a_file(packaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    assert main.main(["scenarios", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_the_package_holds_scenarios() -> None:
    assert any(packaged_scenarios().glob("test_*.py"))


def test_recover_needs_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main.main(["recover"]) == 2
    assert "needs root" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["nonsense"], ["scenarios"], ["doctor", "--what"], ["doctor", "--switch=--"]])
def test_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main.main(argv)
    assert caught.value.code == 2
    assert "usage: icbench" in capsys.readouterr().err


def test_a_closed_pipe_is_no_traceback() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m pytest_icbench.cli.main --help | exec <&-; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout in ("0\n", "1\n")


@pytest.mark.parametrize(("output", "code", "said"), [(">&-", 0, ""), (">/dev/full", 2, "No space left on device")])
def test_an_output_that_takes_nothing_is_no_traceback(output: str, code: int, said: str) -> None:
    script = f'exec "$@" {output}'
    argv = ["sh", "-c", script, "sh", sys.executable, "-m", "pytest_icbench.cli", "topology", "2vs2"]
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == bool(said)


@pytest.mark.parametrize("arguments", [[], ["--remote"], ["--switch-cores", "0"]])
def test_a_topology_is_written_that_can_be_used(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["topology", "2vs2", *arguments]) == 0
    file = tmp_path / "lab.toml"
    file.write_text(capsys.readouterr().out)
    found = read(file)
    assert found.pairs == 2
    assert found.is_remote(2) == ("--remote" in arguments)
    here = [container for container in found.containers if container.host == "local"]
    assert all(set(container.cpus) <= os.sched_getaffinity(0) and container.cpus for container in here)
    assert not any(container.cpus for container in found.containers if container.host == "remote")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["4vs3"], "icbench: topology: '4vs3' has 4 on one side and 3 on the other"),
        (["four"], "icbench: topology: 'four' is not of the form NvsN, as 4vs4"),
        (["1vs1", "--switch-cores", "x"], "'x' is not a number of cores"),
    ],
)
def test_a_topology_that_cannot_be(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main.main(["topology", *argv])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    assert said in capsys.readouterr().err


def subcommands() -> dict[str, str]:
    """The subcommands with the sentence by which the whole command lists each."""
    (action,) = (action for action in main.parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {choice.dest: str(choice.help) for choice in action._choices_actions}


def test_there_are_subcommands() -> None:
    assert len(subcommands()) > 10


@pytest.mark.parametrize(("name", "sentence"), list(subcommands().items()))
def test_the_help_of_a_subcommand_says_what_it_does(
    name: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([name, "--help"])
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert sentence.casefold() in said.casefold()


def test_the_command_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([]) == 0
    assert "usage: icbench" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("pytest-icbench ")


def test_the_demo_runs_its_scenario_with_the_options_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def run(arguments: list[str]) -> pytest.ExitCode:
        seen.append(arguments)
        return pytest.ExitCode.TESTS_FAILED

    monkeypatch.setattr(pytest, "main", run)
    assert main.main(["demo", "--icbench-plan", "-k", "ovs"]) == 1
    ((file, *options),) = seen
    assert file.endswith("/scenarios")
    assert options[:4] == ["--rootdir=.", "-c", os.devnull, f"--confcutdir={file}"]
    assert options[-3:] == ["--icbench-plan", "-k", "ovs"]
    assert not any(option.endswith("test_demo.py") for option in options)
    assert f"--ignore={file}/test_soak.py" in options


def test_the_demo_reads_no_file_of_a_project_around_it(tmp_path: Path) -> None:
    """Neither of the project that it is called in nor of the one that it is installed in."""
    site = tmp_path / "project" / "site"
    site.mkdir(parents=True)
    (site / "pytest_icbench").symlink_to(Path(main.__file__).parents[1])
    shutil.copytree(packaged_scenarios(), site / "scenarios")
    for project in (tmp_path / "project", tmp_path / "here"):
        project.mkdir(exist_ok=True)
        (project / "pytest.ini").write_text("[pytest]\naddopts = --icbench-rate 1M\n")
        (project / "conftest.py").write_text("raise RuntimeError('read')\n")
    command = [sys.executable, "-m", "pytest_icbench.cli", "demo", "--collect-only", "-q", "-k", "direct"]
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    shown = subprocess.run(command, cwd=tmp_path / "here", env=environment, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "test_rate[direct-64B-b32-1vs1-Rmax]" in shown.stdout
