# SPDX-License-Identifier: BSD-3-Clause
"""The command that repeats a test has what decides what the test is, and works in a shell."""

from __future__ import annotations

import shlex

import pytest

from pytest_icbench.plugin.repeat import repeat_command

NODEID = "test_demo.py::test_rate[veth-64B-b32-1vs1-Rmax]"


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["test_demo.py", "-x"], []),
        (["a", "--icbench-budget=9m"], []),
        (["--icbench-budget", "9m", "--icbench-switch", "ovs", "-k", "64B"], ["--icbench-switch", "ovs"]),
        (["--pyargs", "a_package", "-q", "--rootdir=/srv"], ["--rootdir=/srv"]),
        (["-c", "other.ini", "--icbench-debug", "a"], ["-c", "other.ini", "--icbench-debug"]),
    ],
)
def test_the_command(arguments: list[str], kept: list[str]) -> None:
    assert shlex.split(repeat_command(NODEID, arguments)) == ["pytest", NODEID, *kept]


def test_the_directory_of_ids_comes_first() -> None:
    assert repeat_command("test_x.py::test_a", [], "/srv/a b") == "cd '/srv/a b' && pytest test_x.py::test_a"
