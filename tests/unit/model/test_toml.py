# SPDX-License-Identifier: BSD-3-Clause
"""A user's TOML file: as it is, or one sentence."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.model.text_files import read_toml


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    content = 'name = "ü"\nn = 1\n'.encode()
    path.write_bytes(content)
    file = read_toml(path)
    assert (file.path, file.data) == (path, {"name": "ü", "n": 1})
    assert file.text.encode() == content
    assert file.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "x.toml cannot be read (No such file or directory)"),
        (b"\xff", "x.toml cannot be read ('utf-8' codec can't decode"),
        (b"a =", "x.toml is not valid TOML: "),
        (b"a = " + b"[" * 5000, "x.toml is not valid TOML: "),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content)
    for where, begin in (("", f"{tmp_path}/"), ("--icbench-x", f"--icbench-x: {tmp_path}/")):
        with pytest.raises(UsageError) as caught:
            read_toml(path, where)
        assert str(caught.value).startswith(begin + sentence)
        assert "\n" not in str(caught.value)
