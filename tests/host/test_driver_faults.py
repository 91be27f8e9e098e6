# SPDX-License-Identifier: BSD-3-Clause
"""Drivers from outside that are broken: each costs its own case, with a sentence that names it, and nothing is left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faulty_switch import conftest
from tests.host import snapshot
from tests.host.node_tools import tidy_snapshot
from tests.plugin.conftest import LOAD

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]

TEST = """
import pytest

SETTINGS = {{"repeats": 2, "warmup": 0.05, "duration": 0.2, "drain": 0.1, "max_duration": 1}}

@pytest.mark.icbench(switch={switches!r}, packet_size=64, **SETTINGS)
def test_rate(icbench):
    icbench.throughput()
"""
#: Each method of a driver that this case calls, in the order of the calls.
METHODS = (
    *("__init__", "probe", "probe_api", "probe_port", "probe_pairs", "needs", "devices", "start", "facts", "check"),
    *("prepare_traffic", "pause", "resume", "counters", "busy", "batches", "assignment", "stop"),
)
#: What ``start`` raises, and how the sentence names it.
EXCEPTIONS = {"exits": "SystemExit: 7", "fails": "Failed: of its own", "silent": "Silent"}
#: Methods that return what they must not.
RESULTS = (
    *(("probe", "None"), ("needs", "7"), ("devices", "['a']"), ("start", "[]"), ("start", "None")),
    *(("facts", "api.SwitchFacts(version=object())"), ("counters", "7"), ("busy", "api.SwitchFacts()")),
    *(("batches", "(1, 2)"), ("assignment", "{'a': 'b'}")),
)
#: The switches that share one session: a driver's fault must not reach the next one.
TOGETHER = {
    **{f"faulty{number}": (method, "raises") for number, method in enumerate(METHODS)},
    **{f"odd{number}": ("start", fault) for number, fault in enumerate(EXCEPTIONS)},
    **{f"wrong{number}": (method, f"returns {value}") for number, (method, value) in enumerate(RESULTS)},
    "leaves": ("processes", "leaves a process"),
}


def outcome(directory: Path, faults: Mapping[str, tuple[str, str]]) -> tuple[str, int]:
    """Returns what a session with these switches and a whole one says, and its exit status. Nothing may be left."""
    before = tidy_snapshot()
    (directory / "conftest.py").write_text(conftest(faults))
    (directory / "test_x.py").write_text(TEST.format(switches=[*faults, "linux-bridge"]))
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
        argv, cwd=directory, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert snapshot.left_since(before) == []
    return done.stdout + done.stderr, done.returncode


def assert_own_case_alone(said: str, status: int) -> None:
    assert status == 1, said
    assert "PASSED test_x.py::test_rate[linux-bridge-" in said
    assert "INTERNALERROR" not in said
    assert "Traceback" not in said


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What one session says of all broken switches."""
    text, status = outcome(tmp_path_factory.mktemp("together"), TOGETHER)
    assert_own_case_alone(text, status)
    return text


def assert_said(said: str, switch: str, sentence: str) -> None:
    assert f"switch '{switch}': {sentence}" in said
    assert re.search(rf"^(FAILED|ERROR) test_x\.py::test_rate\[{switch}-", said, re.MULTILINE), said


def test_no_other_case_fails(said: str) -> None:
    failed = set(re.findall(r"^(?:FAILED|ERROR) test_x\.py::test_rate\[([a-z0-9]+)-", said, re.MULTILINE))
    assert failed == set(TOGETHER)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_raises(said: str, method: str) -> None:
    assert_said(said, f"faulty{METHODS.index(method)}", f"{method}() raised KeyError: 'nix' (conftest.py:")


@pytest.mark.parametrize("fault", EXCEPTIONS)
def test_other_exceptions(said: str, fault: str) -> None:
    assert_said(said, f"odd{list(EXCEPTIONS).index(fault)}", f"start() raised {EXCEPTIONS[fault]} (")


@pytest.mark.parametrize(("method", "value"), RESULTS)
def test_a_wrong_result(said: str, method: str, value: str) -> None:
    assert_said(said, f"wrong{RESULTS.index((method, value))}", f"{method}() returned ")


def test_a_process_that_is_left(said: str) -> None:
    assert_said(said, "leaves", "stop() left 1 process (python")


def test_names_that_lead_elsewhere(tmp_path: Path) -> None:
    """Each is a switch like others, and its files are where the others' are."""
    directory = tmp_path / "a" / "b"
    directory.mkdir(parents=True)
    names = ("../../x", "/etc/x", "..", "-x", "x" * 300)
    said, status = outcome(directory, dict.fromkeys(names, ("processes", "none")))
    assert status == 0, said
    assert f"{len(names) + 1} passed" in said
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(directory)} == {directory.parent}
    assert not Path("/etc/x").exists()
