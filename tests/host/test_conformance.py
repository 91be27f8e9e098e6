# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite in its short form, over every switch that this host has: ``make conformance`` is the whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.node_tools import clean

__all__ = ["clean"]  # fixture

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]


@pytest.mark.usefixtures("clean")
def test_every_switch_does_what_its_driver_declares(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "pytest", "--pyargs", "pytest_icbench.conformance", "-m", "not icbench_long", "-q"]
    done = subprocess.run([*argv, "-rfEs"], cwd=tmp_path, capture_output=True, text=True, timeout=420, check=False)
    print(done.stdout[-6000:])  # who was skipped, and why
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
