# SPDX-License-Identifier: BSD-3-Clause
"""Weights and quotas of the real host's control groups: set, named, and undone after a kill, too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_icbench
from pytest_icbench.driver.node.cgroups import GREATEST, SessionGroup
from pytest_icbench.driver.node.precedence import describe_weight, precede
from pytest_icbench.host.cgroup_layout import Hierarchy, Layout
from pytest_icbench.host.cpu_usage import CpuWatch, OwnProcesses
from pytest_icbench.host.host_session import RUN_DIR, HostSession
from pytest_icbench.host.process import SESSION_VARIABLE
from pytest_icbench.host.recover import recover
from pytest_icbench.host.root import Root
from pytest_icbench.testbed.switch_group import SwitchGroup
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host.node_tools import CPU, clean, require, session, spawn, started
from tests.plugin.conftest import LOAD

__all__ = ["clean", "session"]  # fixtures

#: The same package as this process has, installed or not.
PACKAGE = Path(pytest_icbench.__file__).parents[1]
CPU_HIERARCHY = Layout.read(Root()).holding("cpu")
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        os.geteuid() != 0 or CPU_HIERARCHY is None or not os.access(CPU_HIERARCHY.top, os.W_OK),
        reason="groups of the controller cpu need root, and a hierarchy that can be written",
    ),
]


@pytest.fixture
def cpu() -> Hierarchy:
    assert CPU_HIERARCHY is not None
    return CPU_HIERARCHY


def group_of(pid: int) -> str:
    """The cpu group of a process."""
    return dict(Layout.read(Root()).groups_of(Root(), pid))[CPU_HIERARCHY]  # type: ignore[index]


@pytest.mark.parametrize("kind", ["netns", "lxc"])
def test_pollers_are_before_others_until_the_session_ends(clean: None, cpu: Hierarchy, kind: str) -> None:
    require(kind)
    before = group_of(os.getpid())
    name, greatest = GREATEST[cpu.unified]
    with HostSession(UNDO_KINDS) as session:
        assert precede(session) == []
        assert session.precedence.startswith(f"{name} {greatest}")
        top = SessionGroup.get(session).name
        for group in (top, f"{top}-harness"):
            assert Path(cpu.path(group), name).read_text().strip() == greatest
        assert group_of(os.getpid()).endswith(f"/{top}-harness")
        switch = SwitchGroup(session, "some", "r1.switch")
        with switch.entered():
            process = subprocess.Popen(["sleep", "60"])
        node = started(session, kind)
        for pid in (process.pid, spawn(session, node, "sleep 60").pid):
            assert f"/{top}" in group_of(pid)
            assert "-harness" not in group_of(pid)
        process.kill()
        process.wait()
        switch.close()
        node.stop()
        assert Path(cpu.path(top), name).read_text().strip() == greatest
    assert group_of(os.getpid()) == before


KILLED = """
import subprocess, sys
from pytest_icbench.driver.node.precedence import precede, describe_weight
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
session = HostSession(UNDO_KINDS)
assert precede(session) == []
print(subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL).pid, flush=True)
sys.stdin.read()
"""


def test_after_a_kill_what_survives_is_where_it_was(clean: None) -> None:
    """What the user's tests had started is not the session's: it goes on."""
    harness = subprocess.Popen([sys.executable, "-c", KILLED], stdin=-1, stdout=-1, text=True, cwd=PACKAGE)
    assert harness.stdout is not None
    survivor = int(harness.stdout.readline())
    assert group_of(survivor).endswith("-harness")
    harness.kill()
    harness.communicate()
    assert recover(RUN_DIR, UNDO_KINDS).failures == []
    assert group_of(survivor) == group_of(os.getpid())
    os.kill(survivor, signal.SIGKILL)


SCENARIO = """import pytest
@pytest.mark.icbench(switch="veth", api="udp-mmsg", reference=False, repeats=2, duration=0.2, warmup=0.05, drain=0.2,
                     max_duration=1)
def test_rate(icbench):
    icbench.throughput()
"""


def test_a_result_says_how_its_pollers_stood(clean: None, cpu: Hierarchy, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(SCENARIO)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    reported = []
    for options in (["--icbench-precedence=all"], []):  # what tests start has none by default (tests/conftest.py)
        argv = [sys.executable, "-m", "pytest", *LOAD, "--icbench-node=netns", *options]
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        (result,) = (tmp_path / "reports/latest/results.jsonl").read_text().splitlines()
        reported.append(json.loads(result)["treatment"]["precedence"])
    assert reported == [describe_weight(Root(), cpu), "none"]


@pytest.fixture
def limited(cpu: Hierarchy) -> Iterator[Path]:
    """A group that may use a tenth of a CPU."""
    path = Path(cpu.path(f"quota{os.getpid()}"))
    path.mkdir()
    try:
        if cpu.unified:
            if not (path / "cpu.max").exists():
                pytest.skip("the controller cpu is not enabled here")
            (path / "cpu.max").write_text("10000 100000")
        else:
            (path / "cpu.cfs_quota_us").write_text("10000")
        yield path
    finally:
        path.rmdir()


def test_a_quota_that_stops_a_process_of_the_session_is_named(limited: Path) -> None:
    spin = f"echo $$ >{limited}/cgroup.procs; while :; do :; done"
    with subprocess.Popen(["sh", "-c", spin], env={**os.environ, SESSION_VARIABLE: "abc123"}) as process:
        try:
            while not group_of(process.pid).endswith(limited.name):
                time.sleep(0.01)
            watch = CpuWatch(OwnProcesses("abc123"), [CPU])
            time.sleep(1.0)
            (found,) = (one for one in watch.read().throttled if one.group.endswith(limited.name))
        finally:
            process.kill()
    assert (found.cpus, 0 < found.throttled <= found.periods) == (0.1, True)
    assert found.words.endswith("periods (quota 0.1 CPUs)")
