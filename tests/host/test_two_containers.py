# SPDX-License-Identifier: BSD-3-Clause
"""Two containers of a host with a /run each: the second session is refused, and goes on once the first has ended."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_icbench.host.lock import SEVERAL_HOSTS_VARIABLE

pytestmark = [
    pytest.mark.alone,  # another session on this host would refuse the first one
    pytest.mark.skipif(os.geteuid() != 0, reason="sessions need root: run pytest as root"),
]
_SESSION = """
import sys
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
with HostSession(UNDO_KINDS):
    print("holds", flush=True)
    sys.stdin.readline()
"""


def test_the_second_session_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEVERAL_HOSTS_VARIABLE, raising=False)
    own_run = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=755 tmpfs /run && exec "$@"', "sh"]
    argv = [*own_run, sys.executable, "-c", _SESSION]
    first = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    assert first.stdout.readline() == "holds\n"
    second = subprocess.run(argv, input="\n", capture_output=True, text=True, check=False)
    assert "SessionBusyError: another icbench session runs on this host, in a container" in second.stderr
    assert f"(process {first.pid})" in second.stderr
    first.communicate("\n", timeout=20)
    assert first.returncode == 0
    assert subprocess.run(argv, input="\n", capture_output=True, text=True, check=True).stdout == "holds\n"
