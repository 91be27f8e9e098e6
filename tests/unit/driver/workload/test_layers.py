# SPDX-License-Identifier: BSD-3-Clause
"""The folders of the C program include one another in one direction, the one that workload/meson.build states."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_WORKLOAD = Path(__file__).parents[4] / "workload"
_SRC = _WORKLOAD / "src"
_FILES = sorted(_SRC.glob("**/*.[ch]"))
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]*)"', re.MULTILINE)


def layers() -> list[list[str]]:
    """The folders from top to bottom, those beside one another in one list."""
    meson = (_WORKLOAD / "meson.build").read_text(encoding="utf-8")
    stated = re.search(r"^# Folders of src/.*\n((?:#   \S.*\n)+)", meson, re.MULTILINE)
    assert stated, "meson.build states no order of folders"
    return [line.removeprefix("#").split() for line in stated[1].splitlines()]


def includes(path: Path) -> list[str]:
    return _INCLUDE.findall(path.read_text(encoding="utf-8"))


def test_every_folder_has_its_place_once() -> None:
    placed = [folder for layer in layers() for folder in layer]
    assert sorted(placed) == sorted(path.name for path in _SRC.iterdir() if path.is_dir())
    assert [path.name for path in _SRC.iterdir() if path.is_file()] == ["main.c"]


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(_SRC))) for path in _FILES])
def test_a_file_includes_its_own_folder_and_those_below(path: Path) -> None:
    folder = path.parent.name
    height = {name: number for number, layer in enumerate(reversed(layers())) for name in layer}
    for header in includes(path):
        assert (_SRC / header).is_file(), f"{header} is not written from src/, or does not exist"
        other = header.split("/")[0]
        below = path.name == "main.c" or height[other] < height[folder]
        assert other == folder or below, f"{header}: {other}/ is not below {folder}/"


def test_applications_are_listed_once() -> None:
    """Each row has its file, each file its row; no other file but its own names an application's row."""
    rows = re.findall(r"\bROW\((\w+)\)\s*(?:\\\n|\n)", (_SRC / "app/apps.h").read_text(encoding="utf-8"))
    assert len(rows) >= 7
    assert {path.stem for path in (_SRC / "app").glob("*.c")} == {*rows, "apps", "pause", "distance", "guest", "relay"}
    for path in _FILES:
        named = set(re.findall(r"\bapp_(\w+)\b", path.read_text(encoding="utf-8"))) & set(rows)
        assert named <= ({path.stem} if path.parent.name == "app" else set()), path
