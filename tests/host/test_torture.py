# SPDX-License-Identifier: BSD-3-Clause
"""The short form of ``make torture``: each part for some time. A failure prints the seed that repeats it."""

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


@pytest.mark.parametrize(("part", "minutes"), [("kills", 1.0), ("faults", 0.7), ("fuzz", 0.3)])
def test_some_of_it(part: str, minutes: float) -> None:
    count = ["--count", "20000"] if part == "fuzz" else []
    argv = [sys.executable, "-m", "tests.torture", "--only", part, "--minutes", str(minutes), *count]
    root = Path(__file__).parents[2]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
