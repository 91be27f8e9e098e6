# SPDX-License-Identifier: BSD-3-Clause
"""Work of a moment is real time while it lasts, where that may be had, and for its own thread alone."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from pytest_icbench.host.process import realtime


def policy() -> int:
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK


def may_be_real_time() -> bool:
    with realtime():
        return policy() == os.SCHED_FIFO


@pytest.mark.skipif(not may_be_real_time(), reason="no right to real time")
def test_only_the_thread_is_real_time_and_only_for_the_block() -> None:
    before = policy()
    elsewhere: list[int] = []
    with realtime():
        assert policy() == os.SCHED_FIFO
        thread = threading.Thread(target=lambda: elsewhere.append(policy()))
        thread.start()
        thread.join()
        command = ["python3", "-c", "import os; print(os.sched_getscheduler(0))"]
        elsewhere.append(int(subprocess.run(command, capture_output=True, check=True).stdout))
    assert policy() == before
    assert elsewhere == [os.SCHED_OTHER] * 2


def test_it_ends_with_an_error() -> None:
    before = policy()
    with pytest.raises(ZeroDivisionError), realtime():
        _ = 1 / 0
    assert policy() == before


def test_without_the_right_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: object) -> None:
        raise PermissionError

    before, ran = policy(), False
    monkeypatch.setattr(os, "sched_setscheduler", refused)
    with realtime():
        ran = policy() == before
    assert ran
