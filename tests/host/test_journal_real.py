# SPDX-License-Identifier: BSD-3-Clause
"""Sessions that are killed: what they changed is put back, exactly, by whoever comes next."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_icbench.cli import main
from pytest_icbench.host.host_session import RUN_DIR, HostSession
from pytest_icbench.host.journal import Journal
from pytest_icbench.host.lock import SessionBusyError
from pytest_icbench.host.recover import recover
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot
from tests.host.node_tools import clean, tidy_snapshot

__all__ = ["clean"]  # fixture

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="sessions need root")]

SEED = 20240517

#: Changes of every kind, then the same things over and over, so that a kill hits each of their moments.
HARNESS = """
import itertools, sys
from pytest_icbench.model.endpoint import Address
from pytest_icbench.host.net import links
from pytest_icbench.host.resource import hugepages
from pytest_icbench.host.process import ProcessPlace, run
from pytest_icbench.host.net.links import End
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from pytest_icbench.host.signals import SignalGuard

guard = SignalGuard()
guard.install()
with HostSession(UNDO_KINDS) as session:
    print(session.id, flush=True)
    stubborn = ["sh", "-c", "trap '' TERM INT HUP; sleep 600 & while :; do sleep 600; done"]
    hugepages.reserve(session, 0, 32)
    netns = links.create_netns(session, "main")
    links.create_pair(session, End("eth0", netns, Address.of(1, "a")), End(session.name_link("p0")))
    links.create_bridge(session, session.name_link("br"))
    links.enslave(session.name_link("p0"), session.name_link("br"))
    session.spawner.start(stubborn, log=session.dir / "its.log", place=ProcessPlace(netns))
    session.spawner.start(stubborn, log=session.dir / "its.log", place=ProcessPlace(mount_ns=True))
    mounted = session.dir / "mnt"
    mounted.mkdir()
    session.journal.record("mount", path=str(mounted))
    run(["mount", "-t", "tmpfs", "icbench", str(mounted)], timeout_s=5)
    (mounted / "file").write_text("x")
    print("up", flush=True)
    for number in itertools.count():
        hugepages.reserve(session, 0, 2)
        path = links.create_netns(session, f"n{number}")
        links.create_pair(session, End("eth0", path), End(session.name_link(f"q{number}")))
        process = session.spawner.start(stubborn, log=session.dir / "its.log", place=ProcessPlace(path))
        if number % 2:
            process.stop(term_s=0)
            links.remove_link(session.name_link(f"q{number}"))
            links.delete_netns(session, path)
"""


def harness() -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", HARNESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    assert said, process.communicate()[1]
    return said


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def stand_still(process: subprocess.Popen[str]) -> snapshot.Snapshot:
    """Stops the harness and everything that it started: from here on only others change the host."""
    os.kill(process.pid, signal.SIGSTOP)
    stopped = set[str]()
    while True:
        # A process between fork and exec is not marked yet, but is a child of one that is, or of the harness.
        family = {str(process.pid), *snapshot.take()["process"]}
        for parent in list(family):
            with suppress(OSError):  # it has ended
                for tasks in Path(f"/proc/{parent}/task").iterdir():
                    family.update((tasks / "children").read_text().split())
        if family <= stopped:
            return snapshot.take()
        for number in family - stopped:
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGSTOP)
        stopped |= family
        time.sleep(0.01)


def test_recover_puts_everything_back() -> None:
    before = tidy_snapshot()
    process = harness()
    session = line(process)
    assert line(process) == "up"
    time.sleep(0.3)
    kill(process)
    said = snapshot.difference(before, snapshot.take())
    for expected in (
        f"/run/icbench/{session} is new",
        "process ",
        "link ",
        f"mount /run/icbench/{session}/mnt",
        "huge pages",
    ):
        assert any(expected in one for one in said), expected
    done = recover(RUN_DIR, UNDO_KINDS)
    assert done.failures == []
    assert done.undone.keys() == {session}
    assert done.undone[session] > 8
    assert snapshot.left_since(before) == []
    assert recover(RUN_DIR, UNDO_KINDS).sentences() == []


def test_the_next_session_puts_everything_back() -> None:
    before = tidy_snapshot()
    process = harness()
    dead = line(process)
    assert line(process) == "up"
    kill(process)
    with HostSession(UNDO_KINDS) as session:
        assert len(session.recovered) == 1
        assert f"session {dead}:" in session.recovered[0]
    assert snapshot.left_since(before) == []


def test_a_live_session_is_not_touched(capsys: pytest.CaptureFixture[str]) -> None:
    before = tidy_snapshot()
    process = harness()
    session = line(process)
    try:
        assert line(process) == "up"
        there = stand_still(process)
        done = recover(RUN_DIR, UNDO_KINDS)
        assert (done.undone, done.failures) == ({}, [])
        assert f"process {process.pid}" in done.live[0]
        assert main.main(["recover"]) == 0
        assert f"process {process.pid}" in capsys.readouterr().out
        with pytest.raises(SessionBusyError, match=f"process {process.pid}, since"):
            HostSession(UNDO_KINDS)
        assert snapshot.difference(there, snapshot.take()) == []
        assert Journal(RUN_DIR / session / "journal", UNDO_KINDS).pending()
    finally:
        kill(process)
        recover(RUN_DIR, UNDO_KINDS)
    assert snapshot.left_since(before) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_cleans_up_and_a_second_one_does_not_stop_that(number: signal.Signals) -> None:
    before = tidy_snapshot()
    process = harness()
    line(process)
    assert line(process) == "up"
    process.send_signal(number)
    for _ in range(5):
        time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in error
    assert snapshot.left_since(before) == []


def test_killed_at_random_moments() -> None:
    moments = random.Random(SEED)
    before = tidy_snapshot()
    for _ in range(8):
        process = harness()
        line(process)
        time.sleep(moments.uniform(0, 0.4))
        kill(process)
        done = recover(RUN_DIR, UNDO_KINDS)
        assert done.failures == []
        assert snapshot.left_since(before) == []


def test_recovery_itself_can_be_killed() -> None:
    moments = random.Random(SEED + 1)
    before = tidy_snapshot()
    process = harness()
    line(process)
    assert line(process) == "up"
    time.sleep(0.3)
    kill(process)
    script = (
        "from pytest_icbench.cli import main\nfrom pytest_icbench.testbed import undo_kinds\n"
        "print(1, flush=True)\nmain.main(['recover'])"
    )
    for _ in range(4):
        interrupted = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )
        assert interrupted.stdout is not None
        interrupted.stdout.readline()
        time.sleep(moments.uniform(0, 0.15))
        interrupted.kill()
        interrupted.communicate()
    assert recover(RUN_DIR, UNDO_KINDS).failures == []
    assert snapshot.left_since(before) == []


def test_what_cannot_be_undone_stays_and_says_so(clean: None, capsys: pytest.CaptureFixture[str]) -> None:
    script = (
        "import os\nfrom pytest_icbench.host.host_session import HostSession\n"
        "from pytest_icbench.testbed.undo_kinds import UNDO_KINDS\n"
        "s = HostSession(UNDO_KINDS); s.journal.record('file', path='/proc/sys/kernel/stuck', text='1')\n"
        "s.journal.record('tree', path=str(s.dir / 'x')); os._exit(0)"
    )
    run_once = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=True, timeout=20)
    assert run_once.returncode == 0
    with HostSession(UNDO_KINDS) as session:
        assert [re.sub(r"^session \w{6}: ", "", warning) for warning in session.warnings] == [
            (
                "this version cannot undo file {'path': '/proc/sys/kernel/stuck', 'text': '1'}: no session writes such "
                "a path: undo it by hand, then run `icbench recover --forget`"
            )
        ]
    with HostSession(UNDO_KINDS) as later:
        assert later.warnings == []  # it is reported once
    assert main.main(["recover"]) == 1
    assert "no session writes such a path" in capsys.readouterr().err
    assert main.main(["recover", "--forget"]) == 1
    assert main.main(["recover"]) == 0


def test_killed_before_the_journal(clean: None) -> None:
    (RUN_DIR / "zzzzzz" / "lxc").mkdir(parents=True)
    done = recover(RUN_DIR, UNDO_KINDS)
    assert done.undone == {"zzzzzz": 0}


def test_a_mount_below_the_session_is_never_emptied(clean: None, tmp_path: Path) -> None:
    """A directory that somebody bound into the session's keeps its files."""
    (tmp_path / "precious").write_text("x")
    session = HostSession(UNDO_KINDS)
    (session.dir / "bound").mkdir()
    subprocess.run(["mount", "--bind", tmp_path, session.dir / "bound"], check=True)
    session.close()
    assert not session.dir.exists()
    assert (tmp_path / "precious").read_text() == "x"
