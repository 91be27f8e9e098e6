# SPDX-License-Identifier: BSD-3-Clause
"""The baseline that is kept with a run: its files, and nothing else that lies in its directory."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_icbench.plugin.run import keep_baseline


def test_only_the_files_of_a_baseline_are_copied(tmp_path: Path) -> None:
    host = tmp_path / "baselines/main/host"
    host.mkdir(parents=True)
    (host / "ovs.json").write_text("[]")
    (host / "notes.txt").write_text("ours")
    (host / "endless.json").symlink_to("/dev/zero")
    (host.parent / "full").symlink_to("/dev/full")
    os.mkfifo(host / "waits.json")
    options: Any = SimpleNamespace(compare="main", baselines=tmp_path / "baselines")
    keep_baseline(tmp_path / "run", options)
    kept = [path for path in (tmp_path / "run").rglob("*") if not path.is_dir()]
    assert [(path.name, path.parent.name, path.read_text()) for path in kept] == [("ovs.json", "host", "[]")]
