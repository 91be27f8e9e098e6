# SPDX-License-Identifier: BSD-3-Clause
"""The harness is killed with nodes in every state; recovery leaves the host as it was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pytest_icbench
from pytest_icbench.driver.node.lxc import end_container
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.host_session import RUN_DIR
from pytest_icbench.host.recover import recover
from pytest_icbench.host.root import Root
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot
from tests.host.node_tools import kind, require, tidy_snapshot

__all__ = ["kind"]  # fixture

pytestmark = pytest.mark.slow

#: Starts nodes, one spinning, one paused, one stopped again, then as many more as it can, with processes in them.
HARNESS = """
import itertools, sys
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from pytest_icbench.driver.guard import make_node
from pytest_icbench.driver.node.protocol import NodeSpec

def node(suffix):
    node = make_node(sys.argv[1], session, NodeSpec(session.name(suffix), [int(sys.argv[2])]))
    node.start()
    run(node, "trap '' TERM HUP; sleep 60 & wait; sleep 60")
    return node

def run(node, script):
    node.spawn(["/bin/sh", "-c", script], cpus=node.spec.cpus, log=session.dir / "its.log")

session = HostSession(UNDO_KINDS)
print("session", flush=True)
spinning = node("spinning")
run(spinning, "while :; do :; done")
node("paused").pause()
node("stopped").stop()
print("up", flush=True)
for number in itertools.count():
    one = node(f"n{number}")
    if number > 3:
        one.stop()
"""


def harness(kind: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HARNESS, kind, str(min(os.sched_getaffinity(0)))]
    # The same package as this process has, installed or not.
    root = Path(pytest_icbench.__file__).parents[1]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)


def kill_and_recover(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    recovery = recover(RUN_DIR, UNDO_KINDS)
    assert recovery.failures == []
    assert len(recovery.undone) == 1


def test_nothing_is_left_of_running_paused_and_stopped_nodes(kind: str) -> None:
    before = tidy_snapshot()
    process = harness(kind)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["session\n", "up\n"]
    kill_and_recover(process)
    assert snapshot.left_since(before) == []


@pytest.mark.parametrize("made", range(1, 4))
def test_locks_that_liblxc_had_only_begun_to_make_are_removed(made: int) -> None:
    """A kill between two of its mkdirs leaves the outer ones alone."""
    before = tidy_snapshot()
    lxcpath = "/icbzzzzzz/run/lxc"
    directory = Path("/run/lxc/lock", *Path(lxcpath).parts[1 : 1 + made])
    directory.mkdir(parents=True)
    root = Root()
    end_container(lxcpath, "icbzzzzzza", "icbzzzzzz", Layout.read(root), root)
    assert snapshot.left_since(before) == []


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_left_whenever_it_is_killed(seed: int) -> None:
    require("lxc")
    before = tidy_snapshot()
    process = harness("lxc")
    assert process.stdout is not None
    assert process.stdout.readline() == "session\n"
    time.sleep(random.Random(seed).uniform(0, 0.25))
    kill_and_recover(process)
    assert snapshot.left_since(before) == []
