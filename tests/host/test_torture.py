# SPDX-License-Identifier: BSD-3-Clause
"""The short form of ``make torture``: the same kills, faults and inputs each time."""

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


@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("kills", ["--count", "2"]),
        ("faults", ["--short"]),
        ("fuzz", ["--count", "20000", "--minutes", "0.2"]),
    ],
    ids=["kills", "faults", "fuzz"],
)
def test_some_of_it(part: str, options: list[str]) -> None:
    argv = [sys.executable, "-m", "tests.torture", "--only", part, "--seed", "1", *options]
    root = Path(__file__).parents[2]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
