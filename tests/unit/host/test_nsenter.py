# SPDX-License-Identifier: BSD-3-Clause
"""The start of a process within namespaces, against processes that are there already."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.host import nsenter
from pytest_icbench.host.nsenter import Bounds, start_within
from pytest_icbench.host.process import wait_until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not nsenter.can_enter(), reason="enters namespaces: run pytest as root"
)


def test_a_child_that_is_stopped_before_its_program_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As any process of its container can do, by its pid there."""

    def execute(_job: Any) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)

    monkeypatch.setattr(nsenter, "_execute", execute)
    began = time.monotonic()
    process = start_within(os.getpid(), ["true"], Bounds([0], {}, [], []), log=tmp_path / "log")
    try:
        assert time.monotonic() - began < nsenter.HELPER_S / 2
        assert wait_until(lambda: process.is_stopped, 5)
    finally:
        process.stop(term_s=0)
