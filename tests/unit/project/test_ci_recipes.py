# SPDX-License-Identifier: BSD-3-Clause
"""The recipes in docs/how-to/ci are well-formed and use options that exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.option_table import TABLE
from pytest_icbench.model.verdict import EXIT_STATUS
from pytest_icbench.store.baselines import save
from tests.baselines import entry

EXIT_REGRESSED, EXIT_UNDECIDED = EXIT_STATUS["regressed"], EXIT_STATUS["undecided"]

ROOT = Path(__file__).parents[3]
CI = ROOT / "docs" / "how-to" / "ci"
FILES = sorted(path.name for path in CI.iterdir())


def loaded(name: str) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((CI / name).read_text())


def test_there_is_one_for_each() -> None:
    assert FILES == ["Jenkinsfile", "github-actions.yml", "gitlab-ci.yml"]


@pytest.mark.parametrize("name", FILES)
def test_options_and_targets_exist(name: str) -> None:
    text = (CI / name).read_text()
    used = set(re.findall(r"--icbench-[a-z-]+", text))
    assert used <= {row.option for row in TABLE}
    assert {"--icbench-compare", "--icbench-exit-codes"} <= used
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= rules
    assert str(EXIT_REGRESSED) in text
    assert str(EXIT_UNDECIDED) in text


def test_github() -> None:
    recipe = loaded("github-actions.yml")
    job = recipe["jobs"]["benchmarks"]
    assert "self-hosted" in job["runs-on"]
    assert recipe["concurrency"] == {"group": "icbench", "cancel-in-progress": False, "queue": "max"}
    measure = next(step["run"] for step in job["steps"] if step.get("id") == "measure")
    assert re.search(rf"^ *{EXIT_REGRESSED}\) .*exit 1", measure, flags=re.M)
    assert re.search(rf"^ *{EXIT_UNDECIDED}\) (?!.*exit)", measure, flags=re.M)
    assert any("GITHUB_STEP_SUMMARY" in step.get("run", "") for step in job["steps"])


def test_gitlab() -> None:
    job = loaded("gitlab-ci.yml")["icbench"]
    assert job["allow_failure"] == {"exit_codes": [EXIT_UNDECIDED]}
    assert job["resource_group"]
    assert job["artifacts"]["reports"] == {"junit": "reports/junit.xml", "metrics": "openmetrics.txt"}
    assert all(isinstance(line, str) for line in job["script"] + job["after_script"])


def test_jenkins() -> None:
    text = (CI / "Jenkinsfile").read_text()
    for opening, closing in ("{}", "()", "[]"):
        assert text.count(opening) == text.count(closing)
    assert text.count("'''") == 2
    assert re.search(rf"code == {EXIT_UNDECIDED}\) {{\s+unstable\(", text)
    assert re.search(rf"code == {EXIT_REGRESSED}\) {{\s+error\(", text)


def measuring(name: str) -> tuple[str, list[str]]:
    """The text that a recipe gives to a shell to measure, and that shell as its CI calls it."""
    if name == "Jenkinsfile":
        return (CI / name).read_text().split("'''")[1], ["sh", "-xe"]
    if name == "gitlab-ci.yml":
        script = loaded(name)["icbench"]["script"]
        return next(line for line in script if "pytest" in line), ["bash", "-eo", "pipefail"]
    steps = loaded(name)["jobs"]["benchmarks"]["steps"]
    return next(step["run"] for step in steps if step.get("id") == "measure"), ["bash", "-eo", "pipefail"]


@pytest.mark.parametrize("code", [0, 1, 4, EXIT_REGRESSED, EXIT_UNDECIDED])
@pytest.mark.parametrize("name", FILES)
def test_what_a_shell_makes_of_a_recipe(name: str, code: int, tmp_path: Path) -> None:
    """With a pytest that only notes its arguments: all recipes measure alike, and no exit status is lost."""
    text, shell = measuring(name)
    program = tmp_path / ".venv" / "bin" / "pytest"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > arguments\nexit {code}\n')
    program.chmod(0o755)
    output = tmp_path / "output"
    for history in ([], ["--icbench-history=/var/lib/icbench/history.jsonl"]):
        environment = {**os.environ, "GITHUB_OUTPUT": str(output), "HISTORY": "".join(history)}
        told = subprocess.run(
            [*shell, "-c", text], cwd=tmp_path, env=environment, capture_output=True, timeout=30, check=False
        )
        if name == "github-actions.yml":  # a warning is no status of a step there
            assert told.returncode == int(code not in (0, EXIT_UNDECIDED))
            assert output.read_text().splitlines()[-1] == f"code={code}"
        else:
            assert told.returncode == code
        assert (tmp_path / "arguments").read_text().splitlines() == [
            *["scenarios/test_gate.py", "--icbench-rounds", "3", "--icbench-budget", "9m", "--icbench-compare", "main"],
            *["--icbench-exit-codes", *history, "--icbench-reports", "reports", "--junitxml", "reports/junit.xml"],
        ]


@pytest.mark.parametrize("name", FILES)
def test_only_runs_of_main_are_a_history_and_no_job_shows_results_of_an_earlier_one(name: str) -> None:
    text = (CI / name).read_text()
    assert text.count("--icbench-history=") == 1
    condition = {
        "Jenkinsfile": "env.BRANCH_NAME in [null, 'main']",
        "gitlab-ci.yml": '$CI_PIPELINE_SOURCE == "schedule"\n      variables:\n        HISTORY: --icbench-history=',
        "github-actions.yml": "HISTORY: ${{ github.event_name != 'pull_request' && '--icbench-history=",
    }
    assert condition[name] in text
    assert text.index("git clean -fdxq reports") < text.index(".venv/bin/pytest")


@pytest.mark.parametrize("name", FILES)
def test_the_gate_fits_its_own_budget(name: str, tmp_path: Path) -> None:
    """The command as the recipe has it, planned on this host."""
    command = re.search(r"\.venv/bin/pytest ((?:[^\n|]|\\\n)*--icbench-exit-codes)", (CI / name).read_text())
    assert command is not None
    arguments = shlex.split(command[1].replace("\\\n", " "))
    assert arguments[0] == "scenarios/test_gate.py"
    save(tmp_path, "main", [entry()])
    planned = subprocess.run(
        [Path(sys.executable).with_name("pytest"), *arguments, "--icbench-plan", f"--icbench-baselines={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert re.search(r"^budget 9:00: \S+ beyond the least", planned.stdout, flags=re.M), planned.stdout
    if "vpp is not installed" in planned.stdout:  # twelve cases at most
        assert "no time for second looks" not in planned.stdout
