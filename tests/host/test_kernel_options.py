# SPDX-License-Identifier: BSD-3-Clause
"""Kernel options of a session that is killed: recovery puts the values of before back. Needs root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_icbench.host.host_session import RUN_DIR
from pytest_icbench.host.recover import recover
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="sessions need root")]

BUSY_READ = Path("/proc/sys/net/core/busy_read")
HARNESS = """
import sys, time
from pytest_icbench.host.resource.sysctl import KernelOptions
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

with HostSession(UNDO_KINDS) as session:
    KernelOptions(session, {"net.core.busy_read": sys.argv[1]}).set()
    print("set", flush=True)
    time.sleep(60)
"""


def test_a_killed_sessions_options_are_restored() -> None:
    before = BUSY_READ.read_text().strip()
    other = str(int(before) + 37)
    with subprocess.Popen([sys.executable, "-c", HARNESS, other], stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == "set\n"
        assert BUSY_READ.read_text().strip() == other
        harness.send_signal(signal.SIGKILL)
    recover(RUN_DIR, UNDO_KINDS)
    assert BUSY_READ.read_text().strip() == before
