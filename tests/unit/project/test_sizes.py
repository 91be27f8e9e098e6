# SPDX-License-Identifier: BSD-3-Clause
"""A file of code has at most 400 lines, and a package few modules at its top."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MOST_LINES = 400
MOST_MODULES = 8
_KINDS = (".py", ".c", ".h", ".js", ".css", ".sh")
#: Below the repository, and not of it.
_BUILT = {"build", "dist", "reports"}


def files_of_code(root: Path) -> list[Path]:
    """The files below every folder but those that are hidden or made; also of the folder itself."""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name[0] != "." and path.name not in _BUILT]
    files = [*root.iterdir(), *(path for folder in folders for path in folder.rglob("*"))]
    return sorted(path for path in files if path.suffix in _KINDS and path.is_file())


def too_long(root: Path) -> list[str]:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files_of_code(root)}
    return [f"{path.relative_to(root)}: {lines} lines" for path, lines in lengths.items() if lines > MOST_LINES]


def test_no_file_has_more_than_400_lines() -> None:
    assert {"conftest.py", "setup.sh", "main.c", "api.py"} <= {path.name for path in files_of_code(ROOT)}
    assert not too_long(ROOT)


def test_few_modules_lie_at_the_top_of_the_package() -> None:
    modules = [path.name for path in (ROOT / "pytest_icbench").glob("*.py")]
    assert "api.py" in modules
    assert len(modules) <= MOST_MODULES


@pytest.mark.parametrize(("lines", "named"), [(400, []), (401, ["a/b.c: 401 lines"])])
def test_the_test_counts_lines(tmp_path: Path, lines: int, named: list[str]) -> None:
    for folder in ("a", "build", ".venv"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "b.c").write_text("x\n" * (lines if folder == "a" else 500))
    assert too_long(tmp_path) == named
