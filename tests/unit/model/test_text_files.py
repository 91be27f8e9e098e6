# SPDX-License-Identifier: BSD-3-Clause
"""Files as editors, git and other systems leave them: read, or refused in one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.model.text_files import read_text

TEXT = "a = 'ü'\nb = 1\n"
CONFLICT = "<<<<<<< HEAD\na = 1\n=======\na = 2\n>>>>>>> other\n"
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\r\n").encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        b"\xfe\xff" + TEXT.replace("\n", "\r\n").encode("utf-16-be"),
    ],
)
def test_a_text_is_the_same_however_it_was_saved(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert read_text(path) == TEXT


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (LFS.encode(), "git lfs pull"),
        (LFS.replace("\n", "\r\n").encode(), "git lfs pull"),
        (CONFLICT.encode(), "merge conflict"),
        (b"\xff\xfea", "truncated data"),
        (TEXT.encode("utf-16-le") + b"\xff", "can't decode"),
        (b"a" * 101, "more than 100 bytes"),
    ],
)
def test_what_is_no_text_is_named(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=word) as caught:
        read_text(path, 100 if word.endswith("bytes") else 1000, name="--option: x", remedy="; restore it")
    assert str(caught.value).startswith("--option: x cannot be read (")
    assert str(caught.value).endswith("; restore it")


def test_marks_within_a_line_are_no_conflict(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a = '<<<<<<< '\n=======\n>>>>>>> \n")
    assert read_text(path).startswith("a")


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/dev/full", "directory", "none", "loop"])
def test_what_is_no_file_is_refused_before_it_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind != "none":
        path.symlink_to(path if kind == "loop" else kind)
    with pytest.raises(UsageError, match=r"x cannot be read \([A-Za-z ]+\)$"):
        read_text(path)
