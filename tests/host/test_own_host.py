# SPDX-License-Identifier: BSD-3-Clause
"""A host of its own on this machine (scripts/own_host.sh): its sessions and this host's know nothing of each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_icbench.host.host_session import HostSession
from tests.host import snapshot
from tests.host.node_tools import clean, require, session, started
from tests.second_host import unsupported_reason

__all__ = ["clean", "session"]  # fixtures

# Its sessions see those of the lane on a host of its own come and go.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
]

ROOT = Path(__file__).parents[2]
OWN_HOST = ROOT / "scripts" / "own_host.sh"
#: A session with a node, which lasts until its standard input ends. Prints what it makes, and what is left of it.
SESSION = f"""
import json, sys
sys.path.append({str(ROOT)!r})
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot
from tests.host.node_tools import started
before = snapshot.take()
with HostSession(UNDO_KINDS) as session:
    started(session, sys.argv[1])
    print(json.dumps(snapshot.difference(before, snapshot.take())), flush=True)
    sys.stdin.read()
print(json.dumps(snapshot.left_since(before)))
sys.exit(7)
"""


def there(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen([str(OWN_HOST), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def groups_of(process: subprocess.Popen[str]) -> list[Path]:
    """The control groups that its host has, in any hierarchy."""
    return [path for top in ("", "*/") for path in Path("/sys/fs/cgroup").glob(f"{top}own-host.{process.pid}")]


@pytest.mark.parametrize("kind", ["netns", "lxc"])
def test_two_sessions_at_once_do_not_see_each_other(session: HostSession, kind: str) -> None:
    require(kind)
    started(session, kind)
    before = snapshot.take()
    with there(sys.executable, "-P", "-c", SESSION, kind) as process:
        assert process.stdout is not None
        made = json.loads(process.stdout.readline())
        assert {"process", "cgroup", "file"} <= {line.split()[0] for line in made}
        assert not any(session.id in line for line in made)
        assert groups_of(process) != []
        assert snapshot.left_since(before) == []
        left, _ = process.communicate(timeout=60)
    assert (json.loads(left), process.returncode) == ([], 7)
    assert groups_of(process) == []


def test_numbers_of_huge_pages_are_its_own() -> None:
    script = "for file in /sys/kernel/mm/hugepages/*/nr_hugepages; do cat $file; echo 3 >$file; cat $file; done"
    before = snapshot.take()["huge pages"]
    if not before:
        pytest.skip("this kernel has no huge pages")
    said, _ = there("sh", "-c", script).communicate(timeout=60)
    assert set(said.split()) == {"0", "3"}
    assert snapshot.take()["huge pages"] == before


#: Tells the numbers of huge pages that a second host of its tests has.
SECOND_HOST = f"""
import sys
from pathlib import Path
sys.path.append({str(ROOT)!r})
from tests.second_host import second_host
with second_host(Path(sys.argv[1])) as host:
    print(host.run("sh", "-c", "cat /sys/kernel/mm/hugepages/*/nr_hugepages").stdout)
"""


@pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason()))
def test_a_second_host_there_has_its_numbers(tmp_path: Path) -> None:
    if not snapshot.take()["huge pages"]:
        pytest.skip("this kernel has no huge pages")
    change = 'for file in /sys/kernel/mm/hugepages/*/nr_hugepages; do echo 3 >$file; done; exec "$@"'
    program = (sys.executable, "-P", "-c", SECOND_HOST, str(tmp_path))
    said, _ = there("sh", "-c", change, "sh", *program).communicate(timeout=60)
    assert set(said.split()) == {"3"}


def test_a_signal_ends_it_and_all_that_runs_there() -> None:
    with there("sh", "-c", "setsid sleep 1000 & echo $TMPDIR; sleep 1000") as process:
        assert process.stdout is not None
        directory = Path(process.stdout.readline().strip())
        assert directory.is_dir()
        running = {
            pid for group in groups_of(process) for pid in (group / "init.scope/cgroup.procs").read_text().split()
        }
        assert len(running) >= 4
        process.terminate()
        assert process.wait(30) != 0
    # The kernel removes a group only when nothing runs in it.
    assert (groups_of(process), directory.exists()) == ([], False)
