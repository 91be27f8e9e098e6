# SPDX-License-Identifier: BSD-3-Clause
"""An entry that this version refuses is reported once to sessions, each time to ``icbench recover``, and stops
nobody.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.recover import recover, undo_dead_sessions
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

#: A bridge in a namespace of its own, as an older version wrote it; and what that version removed besides.
OLD = (
    '{"schema":1,"version":"0.0.1","owner":null}\n'
    '{"entry":1,"kind":"link","data":{"name":"br0","netns":"/run/netns/icbaaaaaa-r1-br"}}\n'
    '{"entry":2,"kind":"note","data":{"name":"b"}}\n'
)


def prepared(run_dir: Path) -> list[str]:
    (run_dir / "aaaaaa").mkdir(mode=0o700)
    (run_dir / "aaaaaa" / "journal").write_text(OLD)
    return []


def test_it_is_reported_once_and_all_else_is_undone(tmp_path: Path) -> None:
    undone = prepared(tmp_path)

    def note(name: str) -> None:
        undone.append(name)

    kinds = UNDO_KINDS | {"note": UndoKind(note)}
    first, second = (undo_dead_sessions(tmp_path, kinds, once=True) for _ in range(2))
    assert undone == ["b"]
    assert (first.failures, second.failures, second.refused) == ([], [], [])
    (sentence,) = first.refused
    assert sentence.startswith("session aaaaaa: this version cannot undo link {'name': 'br0', ")
    for _ in range(2):
        assert recover(tmp_path, kinds).refused == [sentence]
    assert recover(tmp_path, kinds, forget=True).undone == {"aaaaaa": 0}
    assert recover(tmp_path, kinds).refused == []


def test_what_could_not_be_undone_is_no_refusal(tmp_path: Path) -> None:
    prepared(tmp_path)

    def fail(name: str) -> None:
        raise OSError(f"{name} is busy")

    recovery = undo_dead_sessions(tmp_path, UNDO_KINDS | {"note": UndoKind(fail)}, once=True)
    assert len(recovery.refused) == 1
    assert recovery.failures == ["session aaaaaa: note {'name': 'b'} could not be undone: b is busy"]


def test_processes_of_its_session_end(tmp_path: Path) -> None:
    prepared(tmp_path)
    environment = {**os.environ, "ICBENCH_SESSION": "aaaaaa"}
    program = "import time; print(flush=True); time.sleep(100)"
    process = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # Popen returns before the kernel shows the new program's environment
        undo_dead_sessions(tmp_path, UNDO_KINDS, once=True)
        assert process.wait(5) == -9
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(os.geteuid() != 0, reason="sessions need root")
def test_a_session_begins_all_the_same(tmp_path: Path) -> None:
    prepared(tmp_path)
    tmp_path.chmod(0o700)
    kinds = UNDO_KINDS | {"note": UndoKind(lambda name: None)}
    with HostSession(kinds, run_dir=tmp_path) as session:
        assert len(session.warnings) == 1
    with HostSession(kinds, run_dir=tmp_path) as session:
        assert session.warnings == []
    (tmp_path / "aaaaaa" / "journal").write_text(OLD)

    def fail(name: str) -> None:
        raise OSError(name)

    with pytest.raises(ProvisionError, match="could not be undone"):
        HostSession(UNDO_KINDS | {"note": UndoKind(fail)}, run_dir=tmp_path)
