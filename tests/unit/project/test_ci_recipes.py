# SPDX-License-Identifier: BSD-3-Clause
"""The recipes in docs/how-to/ci are well-formed and use options that exist."""

from __future__ import annotations

import os
import re
import shutil
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
#: Each calls ``gate.sh``.
RECIPES = [name for name in FILES if name != "gate.sh"]


def loaded(name: str) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((CI / name).read_text())


def test_there_is_one_for_each() -> None:
    assert FILES == ["Jenkinsfile", "gate.sh", "github-actions.yml", "gitlab-ci.yml"]


def test_options_exist() -> None:
    used = set(re.findall(r"--icbench-[a-z-]+", (CI / "gate.sh").read_text()))
    assert {"--icbench-compare", "--icbench-save", "--icbench-candidate", "--icbench-exit-codes"} <= used
    assert used <= {row.option for row in TABLE}


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_know_both_exit_statuses(name: str) -> None:
    text = (CI / name).read_text()
    assert name == "gitlab-ci.yml" or str(EXIT_REGRESSED) in text  # there it fails as any other status
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
        return "\n".join(loaded(name)["icbench"]["script"]), ["bash", "-eo", "pipefail"]
    steps = loaded(name)["jobs"]["benchmarks"]["steps"]
    return next(step["run"] for step in steps if step.get("id") == "measure"), ["bash", "-eo", "pipefail"]


#: What a CI sets for a pull request, and for a night.
SETS = {
    "Jenkinsfile": ({"CHANGE_TARGET": "main"}, {}),
    "gitlab-ci.yml": ({"GATE": "pr BASE"}, {"GATE": "nightly"}),
    "github-actions.yml": ({"GITHUB_EVENT_NAME": "pull_request"}, {"GITHUB_EVENT_NAME": "schedule"}),
}


@pytest.mark.parametrize("code", [0, 1, 4, EXIT_REGRESSED, EXIT_UNDECIDED])
@pytest.mark.parametrize("name", RECIPES)
def test_what_a_shell_makes_of_a_recipe(name: str, code: int, tmp_path: Path) -> None:
    """With a gate.sh that only notes its arguments: no exit status is lost."""
    text, shell = measuring(name)
    for program, lines in (("ci/gate.sh", f'echo "$@" > arguments\nexit {code}'), ("bin/git", "echo BASE")):
        file = tmp_path / program
        file.parent.mkdir()
        file.write_text(f"#!/bin/sh\n{lines}\n")
        file.chmod(0o755)
    output = tmp_path / "output"
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    for sets, expected in zip(SETS[name], ("pr BASE", "nightly"), strict=True):
        environment = {**os.environ, "GITHUB_OUTPUT": str(output), "PATH": path, **sets}
        reported = subprocess.run(
            [*shell, "-c", text], cwd=tmp_path, env=environment, capture_output=True, timeout=30, check=False
        )
        if name == "github-actions.yml":  # a warning is no status of a step there
            assert reported.returncode == int(code not in (0, EXIT_UNDECIDED))
            assert output.read_text().splitlines()[-1] == f"code={code}"
        else:
            assert reported.returncode == code
        assert (tmp_path / "arguments").read_text().strip().replace("HEAD^1", "BASE") == expected


class Repository:
    """A repository whose build notes its revision, with a pytest and an icbench that note their arguments."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "repository"
        self.path.mkdir()
        self.kept = directory / "kept"
        self.bin = directory / "bin"
        self.bin.mkdir()
        for name in ("pytest", "icbench"):
            self._program(name, f'printf "%s\\n" "$@" > {directory}/{name}.arguments')
        self.directory = directory
        self.git("init", "-q")
        for number in (1, 2):
            (self.path / "version").write_text(f"{number}\n")
            self.git("add", "version")
            self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", str(number))

    def _program(self, name: str, line: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{line}\n")
        (self.bin / name).chmod(0o755)

    def git(self, *arguments: str) -> str:
        ran = subprocess.run(["git", *arguments], cwd=self.path, capture_output=True, text=True, timeout=30, check=True)
        return ran.stdout.strip()

    def gate(self, *arguments: str, code: int = 0) -> list[str]:
        """The arguments of pytest."""
        noted = self.directory / "pytest.arguments"
        self._program("pytest", f'printf "%s\\n" "$@" > {noted}; exit {code}')
        names = {"BUILD": "mkdir -p out && cp version out/switch", "PROGRAM": "out/switch"}
        ran = subprocess.run(
            ["sh", CI / "gate.sh", *arguments],
            cwd=self.path,
            env={**os.environ, **names, "ICBENCH": str(self.bin), "KEPT": str(self.kept)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == code, ran.stderr
        return noted.read_text().splitlines()


_GATE = ["--pyargs", "pytest_icbench.scenarios.test_gate", "--icbench-switch", "ovs"]
_REPORTS = [
    "--icbench-budget",
    "9m",
    "--icbench-require",
    "--icbench-exit-codes",
    "--icbench-reports=reports",
    "--junitxml",
]


def test_a_pull_request_is_measured_beside_its_base_however_often_it_is_built(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    for code in (0, EXIT_REGRESSED):
        base, candidate = repository.path / "base" / "out" / "switch", repository.path / "out" / "switch"
        sides = ["--icbench-binary", f"ovs={base}", "--icbench-candidate", f"ovs:pr={candidate}"]
        assert repository.gate("pr", "HEAD^1", code=code) == [*_GATE, *sides, *_REPORTS, "reports/junit.xml"]
        assert (base.read_text(), candidate.read_text()) == ("1\n", "2\n")
    assert not (tmp_path / "icbench.arguments").exists()


def test_nights_are_saved_then_compared_and_added_and_leave_their_program(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    kept = repository.kept / "programs" / repository.git("rev-parse", "HEAD") / "switch"
    arguments = repository.gate("nightly")
    assert kept.read_text() == "2\n"
    rounds = ["--icbench-rounds", "3", f"--icbench-baselines={repository.kept}/baselines"]
    history = f"--icbench-history={repository.kept}/history.jsonl"
    expected = [*_GATE, "--icbench-binary", f"ovs={kept}", *rounds, "--icbench-save=main", history, *_REPORTS]
    assert arguments == [*expected, "reports/junit.xml"]
    assert not (tmp_path / "icbench.arguments").exists()
    (repository.kept / "baselines" / "main").mkdir(parents=True)
    compared = [word.replace("--icbench-save", "--icbench-compare") for word in arguments]
    assert repository.gate("nightly", code=EXIT_UNDECIDED) == compared
    added = (tmp_path / "icbench.arguments").read_text().split()
    assert added[:4] == ["accept", "main", "--all", "--unchanged"]


@pytest.mark.parametrize("arguments", [("pr", "HEAD^1"), ("nightly",)], ids=lambda words: words[0])
def test_the_gate_of_a_users_repository_fits_its_own_budget(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """The installed pytest plans the script's cases, with the program that the repository builds."""
    program = shutil.which("dpdk-testpmd")
    if program is None:
        pytest.skip("dpdk-testpmd is not here")
    repository = Repository(tmp_path)
    save(repository.kept / "baselines", "main", [entry()])
    planning = f'#!/bin/sh\nexec {Path(sys.executable).with_name("pytest")} "$@" --icbench-plan\n'
    (repository.bin / "pytest").write_text(planning)
    built = {"SWITCH": "testpmd", "BUILD": f"mkdir -p out && cp {program} out/", "PROGRAM": "out/dpdk-testpmd"}
    ran = subprocess.run(
        ["sh", CI / "gate.sh", *arguments],
        cwd=repository.path,
        env={**os.environ, **built, "ICBENCH": str(repository.bin), "KEPT": str(repository.kept), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^budget 9:00: \S+ beyond the least", ran.stdout, flags=re.M), ran.stdout
    assert "no time for a retest" not in ran.stdout
