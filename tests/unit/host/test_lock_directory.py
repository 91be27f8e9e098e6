# SPDX-License-Identifier: BSD-3-Clause
"""The directory of sessions is closed, whatever the umask; one that others can change is refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.host.journal import Journal, UndoKind
from pytest_icbench.host.lock import HostLock
from pytest_icbench.host.recover import recover


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """A umask of the process that makes the files."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    """Returns the permission bits of a file itself."""
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.usefixtures("umask")
def test_directory_and_lock_are_closed_whatever_the_umask(tmp_path: Path) -> None:
    lock = HostLock(tmp_path / "above" / "run" / "lock")
    assert [mode(path) for path in (tmp_path / "above", lock.path.parent, lock.path)] == [0o700, 0o700, 0o600]
    lock.release()


def test_the_readable_directory_and_lock_of_an_older_version_are_closed(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir(mode=0o755)
    (run_dir / "lock").touch(mode=0o644)
    lock = HostLock(run_dir / "lock")
    assert [mode(run_dir), mode(lock.path)] == [0o700, 0o600]
    lock.release()


def refusal(run_dir: Path) -> str:
    """Returns the sentence with which lock and recovery refuse a directory, which stays as it is."""
    before = run_dir.lstat()
    with pytest.raises(UsageError) as caught:
        HostLock(run_dir / "lock")
    with pytest.raises(UsageError) as again:
        recover(run_dir, {})
    assert str(again.value) == str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (run_dir / "lock").exists()
    assert mode(run_dir) == stat.S_IMODE(before.st_mode)
    return str(caught.value)


@pytest.mark.parametrize("bits", [0o777, 0o775, 0o1777])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path, bits: int) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    run_dir.chmod(bits)
    assert refusal(run_dir) == (
        f"{run_dir} can be written by others (mode {bits:04o}), but sessions carry out as root what is written there:"
        " examine what other users have written there, and remove it"
    )


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir(mode=0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert f" belongs to user {owner}, but sessions carry out as root what is written there: " in refusal(run_dir)


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    assert refusal(tmp_path / "run").startswith(f"{tmp_path}/run is a symbolic link, but ")
    (tmp_path / "elsewhere" / "below").mkdir(mode=0o700)
    assert refusal(tmp_path / "run" / "below").startswith(f"{tmp_path}/run is a symbolic link, but ")


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    assert refusal(tmp_path / "run").startswith(f"{tmp_path}/run is not a directory, but ")


def test_a_parent_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "above" / "run").mkdir(parents=True, mode=0o700)
    (tmp_path / "above").chmod(0o777)
    assert refusal(tmp_path / "above" / "run") == (
        f"{tmp_path}/above can be written by others (mode 0777), but sessions carry out as root what is written there:"
        " make root its owner, and the only user who can write to it"
    )
    (tmp_path / "above").chmod(0o1777)
    HostLock(tmp_path / "above" / "run" / "lock").release()


@pytest.mark.parametrize("planted", ["open", "link"])
def test_a_session_that_others_could_have_planted_is_not_undone(tmp_path: Path, planted: str) -> None:
    undone: list[str] = []
    kinds = {"note": UndoKind(undone.append)}
    run_dir, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run_dir.mkdir(mode=0o700)
    session = run_dir / "abc123"
    directory = session if planted == "open" else elsewhere
    directory.mkdir()
    (directory / "precious").touch()
    (directory / "journal").write_text('{"entry":1,"kind":"note","data":{"name":"x"}}\n')
    if planted == "open":
        directory.chmod(0o777)
    else:
        session.symlink_to(elsewhere)
    for forget in (False, True):
        recovery = recover(run_dir, kinds, forget=forget)
        (failure,) = recovery.failures
        assert failure.startswith(f"session abc123: {session} ")
        assert undone == []
    assert not os.path.lexists(session)
    assert (elsewhere / "precious").exists() == (planted == "link")


def test_a_session_beside_one_that_was_planted_is_undone(tmp_path: Path) -> None:
    undone: list[str] = []
    kinds = {"note": UndoKind(lambda name: undone.append(name))}
    run_dir = tmp_path / "run"
    (run_dir / "bbbbbb").mkdir(parents=True, mode=0o700)
    (run_dir / "aaaaaa").symlink_to(tmp_path)
    run_dir.chmod(0o700)
    journal = Journal(run_dir / "bbbbbb" / "journal", kinds)
    journal.record("note", name="b")
    journal.close()
    text = journal.path.read_text().splitlines()
    journal.path.write_text("\n".join(text[1:]) + "\n")
    recovery = recover(run_dir, kinds)
    assert (undone, recovery.undone, len(recovery.failures)) == (["b"], {"bbbbbb": 1}, 1)
