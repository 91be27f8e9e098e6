# SPDX-License-Identifier: BSD-3-Clause
"""The fuzz targets are built again when a header alone changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3]
TARGET = "workload/tests/fuzz_answers"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("clang") is None, reason="no clang on PATH: apt install clang")
def test_a_fuzz_target_depends_on_the_headers_of_all_its_sources(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(*argv: str | Path) -> str:
        words = list(map(str, argv))
        return subprocess.run(
            words, check=True, capture_output=True, text=True, env={**os.environ, "PATH": path}
        ).stdout

    run("meson", "setup", tmp_path / "build", SOURCES, "-Dfuzz=auto")
    if TARGET not in run("ninja", "-C", tmp_path / "build", "-t", "targets", "all"):
        pytest.skip("clang cannot link libFuzzer: apt install libclang-rt-14-dev")
    run("ninja", "-C", tmp_path / "build", TARGET)
    known = run("ninja", "-C", tmp_path / "build", "-t", "deps", TARGET)
    assert {"fuzz_answers.c", "codec.c", "codec.h"} <= {Path(line.strip()).name for line in known.splitlines()}
