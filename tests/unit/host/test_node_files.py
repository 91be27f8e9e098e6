# SPDX-License-Identifier: BSD-3-Clause
"""Files in a directory that others write to: what does not end, ends with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import node_files


def test_a_directory_that_is_filled_again_and_again_is_emptied_for_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process of a node can, that is quicker than this one."""
    (tmp_path / "files").mkdir()
    entries = node_files._entries

    def filled(directory: int) -> list[tuple[str, bool]]:
        Path(f"/proc/self/fd/{directory}/more").touch()
        return entries(directory)

    monkeypatch.setattr(node_files, "_entries", filled)
    monkeypatch.setattr(node_files, "EMPTIED_S", 0.1)
    with pytest.raises(ProvisionError, match="files cannot be used: a process fills it again and again"):
        node_files.make_directory(tmp_path, "files")
