# SPDX-License-Identifier: BSD-3-Clause
"""What the parent of a session has set is put aside, also for what the session starts, and restored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="sessions and policies need root: run pytest as root")

_SHOW = """
import json, os, signal, subprocess, sys
from pathlib import Path
from pytest_icbench.host.cleanup import UNDO_KINDS
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import run

SHOW = '''import json, os, signal
mask = os.umask(0)
os.umask(mask)
blocked = sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ())))
ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
print(json.dumps([os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), mask, blocked, ignored]))'''

def child():
    return json.loads(subprocess.run([sys.executable, "-c", SHOW], stdout=subprocess.PIPE).stdout)

before = child()
with HostSession(UNDO_KINDS, run_dir=Path(sys.argv[1])):
    held, code = child(), run(["sh", "-c", "exit 3"], timeout_s=5, check=False).returncode
print(json.dumps([before, held, child(), code]))
"""
PLAIN = [0, 0, 0o22, [], False]


def inherit(wrapper: list[str], tmp_path: Path) -> list[Any]:
    """The state of children before, in and after a session, and the exit code of a command that ends with 3."""
    plain = ["nice", "-n", str(-os.getpriority(os.PRIO_PROCESS, 0)), "sh", "-c", 'umask 022; exec "$@"', "sh"]
    script = [*plain, *wrapper, sys.executable, "-c", _SHOW, str(tmp_path / "run")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("wrapper", "state"),
    [
        (["chrt", "--fifo", "20"], [1, *PLAIN[1:]]),
        (["chrt", "--idle", "0"], [5, *PLAIN[1:]]),
        (["nice", "-n", "7"], [0, 7, *PLAIN[2:]]),
        (["sh", "-c", 'umask 0777; exec "$@"', "sh"], [0, 0, 0o777, [], False]),
        (["env", "--block-signal=TERM"], [0, 0, 0o22, [15], False]),
        (["env", "--ignore-signal=CHLD"], [0, 0, 0o22, [], True]),
    ],
    ids=["real time", "idle", "nice", "umask", "blocked", "SIGCHLD"],
)
def test_it_is_put_aside_and_restored(tmp_path: Path, wrapper: list[str], state: list[Any]) -> None:
    held = [*PLAIN[:2], state[2] & 0o077, *PLAIN[3:]]
    assert inherit(wrapper, tmp_path) == [state, held, state, 3]
