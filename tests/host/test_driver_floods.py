# SPDX-License-Identifier: BSD-3-Clause
"""Drivers from outside that take all that a host has: processes without end, a gigabyte of log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.host.test_driver_faults import assert_own_case_alone, outcome

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]


def test_processes_without_end(tmp_path: Path) -> None:
    said, status = outcome(tmp_path, {"faulty": ("processes", "forks without end")})
    assert_own_case_alone(said, status)
    assert "switch 'faulty'" in said
    assert "starts processes without end" in said or "running, which were killed" in said


def test_a_gigabyte_of_log(tmp_path: Path) -> None:
    said, status = outcome(tmp_path, {"faulty": ("processes", "logs a gigabyte")})
    assert status == 0, said
    assert "2 passed" in said
