# SPDX-License-Identifier: BSD-3-Clause
"""The short form of ``make torture``: the same kills and faults each time. Its inputs are a unit test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="sessions are killed as root: run pytest with sudo"),
]


def test_the_short_form() -> None:
    argv = [sys.executable, "-m", "tests.torture", "--only=kills", "--only=faults", "--short", "--seed=1"]
    root = Path(__file__).parents[2]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
