# SPDX-License-Identifier: BSD-3-Clause
"""The command that repeats a test works where the run was started."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_icbench.plugin.repeat import repeat_command

NODEID = "test_demo.py::test_rate[veth-64B-b32-1vs1-Rmax]"
MODULE = "pytest_icbench.scenarios.test_demo::test_rate[veth-64B-b32-1vs1-Rmax]"


@pytest.mark.parametrize(
    ("nodeid", "arguments", "expected"),
    [
        (NODEID, ["test_demo.py", "-x"], ["pytest", NODEID]),
        ("a/test_x.py::test_a", ["a", "--icbench-budget=9m"], ["pytest", "a/test_x.py::test_a"]),
        (NODEID, ["--pyargs", "pytest_icbench.scenarios.test_demo"], ["pytest", "--pyargs", MODULE]),
        (
            NODEID.removeprefix("test_demo.py"),
            ["--pyargs", "-q", MODULE.partition("::")[0]],
            ["pytest", "--pyargs", MODULE],
        ),
        (NODEID, ["--pyargs", "pytest_icbench.scenarios"], ["pytest", "--pyargs", MODULE]),
        (NODEID, ["--pyargs", "email", "pytest_icbench.scenarios", "-q"], ["pytest", "--pyargs", MODULE]),
        (
            "test_conformance.py::test_a",
            ["--icbench-switch", "ovs", "--pyargs", "pytest_icbench.conformance"],
            ["pytest", "--pyargs", "pytest_icbench.conformance.test_conformance::test_a", "--icbench-switch", "ovs"],
        ),
        (
            "::test_a",
            ["--icbench-switch", "json", "-k", "email", "--pyargs", "pytest_icbench.scenarios.test_demo"],
            ["pytest", "--pyargs", "pytest_icbench.scenarios.test_demo::test_a", "--icbench-switch", "json"],
        ),
        ("site/test_x.py::test_a", ["--pyargs", "no_such_package"], ["pytest", "site/test_x.py::test_a"]),
    ],
)
def test_the_command(nodeid: str, arguments: list[str], expected: list[str]) -> None:
    assert shlex.split(repeat_command(nodeid, arguments)) == expected


@pytest.mark.parametrize("named", ["pytest_icbench.scenarios", "pytest_icbench.scenarios.test_demo"])
def test_a_test_of_an_installed_package_is_found_again(named: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = shlex.split(repeat_command(NODEID, ["--pyargs", named]))[1:]
    argv = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", *words, "--collect-only", "-q"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert re.findall(r"^.*::(.+)$", done.stdout, flags=re.M) == [NODEID.partition("::")[2]]
