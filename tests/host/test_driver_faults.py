# SPDX-License-Identifier: BSD-3-Clause
"""Drivers from outside that are broken: each costs its own case, with a sentence that names it, and nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faulty_switch import conftest
from tests.host.node_tools import clean
from tests.plugin.conftest import LOAD

__all__ = ["clean"]  # fixture

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
    pytest.mark.usefixtures("clean"),
]

TEST = """
import pytest

SETTINGS = {"repeats": 2, "warmup": 0.05, "duration": 0.4, "drain": 0.3}

@pytest.mark.icbench(switch=["faulty", "linux-bridge"], packet_size=64, **SETTINGS)
def test_rate(icbench):
    icbench.throughput()
"""
#: Each method of a driver that this case calls, in the order of the calls.
METHODS = (
    *("__init__", "probe", "probe_api", "probe_pairs", "needs", "devices", "start", "facts", "check", "connected"),
    *("pause", "resume", "counters", "busy", "batches", "assignment", "stop"),
)


def outcome(directory: Path, method: str, fault: str) -> tuple[str, int]:
    (directory / "conftest.py").write_text(conftest(method, fault))
    (directory / "test_x.py").write_text(TEST)
    argv = [
        sys.executable,
        "-m",
        "pytest",
        *LOAD,
        "-p",
        "no:randomly",
        "--icbench-node=netns",
        "-rA",
        "-q",
        "test_x.py",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        argv, cwd=directory, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    return done.stdout + done.stderr, done.returncode


def assert_own_case_alone(said: str, status: int, sentence: str) -> None:
    assert status == 1, said
    assert sentence in said
    assert "PASSED test_x.py::test_rate[linux-bridge-" in said
    assert "INTERNALERROR" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_raises(tmp_path: Path, method: str) -> None:
    said, status = outcome(tmp_path, method, "raises")
    assert_own_case_alone(said, status, f"switch 'faulty': {method}() raised KeyError: 'nix' (conftest.py:")


@pytest.mark.parametrize("fault", ["exits", "fails", "silent"])
def test_other_exceptions(tmp_path: Path, fault: str) -> None:
    said, status = outcome(tmp_path, "start", fault)
    name = {"exits": "SystemExit: 7", "fails": "Failed: of its own", "silent": "Silent"}[fault]
    assert_own_case_alone(said, status, f"switch 'faulty': start() raised {name} (")


@pytest.mark.parametrize(
    ("method", "value"),
    [
        *(("probe", "None"), ("needs", "7"), ("devices", "['a']"), ("start", "[]"), ("start", "None")),
        *(("facts", "api.SwitchFacts(version=object())"), ("counters", "7"), ("busy", "api.SwitchFacts()")),
        *(("batches", "(1, 2)"), ("assignment", "{'a': 'b'}")),
    ],
)
def test_a_wrong_result(tmp_path: Path, method: str, value: str) -> None:
    said, status = outcome(tmp_path, method, f"returns {value}")
    assert_own_case_alone(said, status, f"switch 'faulty': {method}() returned ")


def test_a_process_that_is_left(tmp_path: Path) -> None:
    said, status = outcome(tmp_path, "processes", "leaves a process")
    assert_own_case_alone(said, status, "switch 'faulty': stop() left 1 process (python")


def test_processes_without_end(tmp_path: Path) -> None:
    said, status = outcome(tmp_path, "processes", "forks without end")
    assert_own_case_alone(said, status, "switch 'faulty'")
    assert "starts processes without end" in said or "running, which were killed" in said


def test_a_gigabyte_of_log(tmp_path: Path) -> None:
    said, status = outcome(tmp_path, "processes", "logs a gigabyte")
    assert status == 0, said
    assert "2 passed" in said
