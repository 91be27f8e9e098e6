# SPDX-License-Identifier: BSD-3-Clause
"""What is taken of an image into the root file system of containers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_icbench.driver.node import container


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/dev/full", None])
def test_what_is_no_file_of_an_image_is_left_out_and_never_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str | None
) -> None:
    cache, taken = tmp_path / "image/etc/ld.so.cache", tmp_path / "made/etc/ld.so.cache"
    for path in (cache, taken):
        path.parent.mkdir(parents=True)
    if kind is None:
        cache.write_bytes(b"libraries")
    else:
        os.mkfifo(cache) if kind == "fifo" else cache.symlink_to(kind)
    container._write_files(tmp_path / "made", tmp_path / "image")
    assert (taken.read_bytes() if taken.exists() else None) == (b"libraries" if kind is None else None)
