# SPDX-License-Identifier: BSD-3-Clause
"""The analysers of the C program find what is planted, and what they lack is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ANALYSE = Path(__file__).parents[3] / "scripts" / "analyse.py"
CLEAN = "#include <stdlib.h>\nint main(void)\n{\n\tvoid *p = malloc(3);\n\n\tfree(p);\n\treturn 0;\n}\n"


def analyse(source: Path, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ANALYSE), str(source)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )


def with_only(tmp_path: Path, *tools: str) -> str:
    """Returns a search path that has these programs and no others."""
    directory = tmp_path / "tools"
    directory.mkdir()
    for tool in tools:
        (directory / tool).symlink_to(shutil.which(tool) or pytest.skip(f"no {tool} here"))
    return str(directory)


@pytest.mark.parametrize("analyser", ["clang", "gcc"])
def test_what_is_freed_twice_is_found(tmp_path: Path, analyser: str) -> None:
    path = with_only(tmp_path, analyser, "as", "pkg-config")
    source = tmp_path / "planted.c"
    source.write_text(CLEAN)
    assert analyse(source, path).returncode == 0
    source.write_text(CLEAN.replace("free(p);", "free(p);\n\tfree(p);"))
    done = analyse(source, path)
    assert done.returncode == 1
    assert "planted.c:7" in done.stdout
    assert "free" in done.stdout
    assert f"no {'gcc' if analyser == 'clang' else 'clang'} here" in done.stdout


def test_a_file_that_needs_a_library_that_is_missing_is_left_out(tmp_path: Path) -> None:
    source = tmp_path / "ring.c"
    source.write_text("#include <rte_ring.h>\n" + CLEAN)
    done = analyse(source, with_only(tmp_path, "gcc", "as"))
    assert done.returncode == 0
    assert f"{source} is not analysed: no libdpdk here" in done.stdout
