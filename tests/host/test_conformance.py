# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite in its short form, over every switch that this host has: ``make conformance`` is the whole.

The paths of the kernel have a file of their own, which runs beside this one (``scripts/lanes.py``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches
from tests.host.node_tools import clean

__all__ = ["clean"]  # fixture

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]


#: Cases of the paths of the kernel, by the beginning of their ids.
OF_THE_KERNEL = " or ".join(f"[{name}" for name, cls in builtin_switches().items() if cls.family == "kernel")


def conforms(directory: Path, selection: str) -> None:
    """Runs the suite's short form over a selection of its cases."""
    argv = [sys.executable, "-m", "pytest", "--pyargs", "pytest_icbench.conformance", "-m", "not icbench_long", "-q"]
    argv += ["-k", selection, "-rfEs"]
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=420, check=False)
    print(done.stdout[-6000:])  # who was skipped, and why
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


@pytest.mark.usefixtures("clean")
def test_every_switch_of_user_space_does_what_its_driver_declares(tmp_path: Path) -> None:
    conforms(tmp_path, f"not ({OF_THE_KERNEL})")
