# SPDX-License-Identifier: BSD-3-Clause
"""Logs of processes are cut when they become huge, and their writers go on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_icbench.host import process
from pytest_icbench.host.process import Spawner

#: Writes lines of 100 letters, one for each line of its input.
WRITER = """
import os, sys
for number, _ in enumerate(sys.stdin):
    os.write(2, b"%099d\\n" % number)
    os.write(1, b"done\\n")
"""


def test_a_log_is_cut_to_its_end_while_its_writer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LOG_MAX_BYTES", 1000)
    monkeypatch.setattr(process, "_TAIL_BYTES", 300)
    spawner, log = Spawner("aaaaaa"), tmp_path / "log"
    writer = spawner.start([sys.executable, "-c", WRITER], log=log, pipes=True)
    assert writer.stdin is not None
    assert writer.stdout is not None

    def write(lines: int) -> None:
        for _ in range(lines):
            writer.stdin.write(b"\n")  # type: ignore[union-attr]
            assert writer.stdout.readline() == b"done\n"  # type: ignore[union-attr]

    write(10)
    spawner.bound_logs()
    assert log.stat().st_size == 1000
    write(1)
    spawner.bound_logs()
    assert log.read_text().split() == [f"{number:099d}" for number in (8, 9, 10)]
    write(1)
    assert writer.tail(1) == f"{11:099d}"
    assert log.stat().st_size == 400
    log.unlink()
    spawner.bound_logs()
    writer.stop()
