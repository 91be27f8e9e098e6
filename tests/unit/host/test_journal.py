# SPDX-License-Identifier: BSD-3-Clause
"""The undo log: on disk before the change, undone in reverse, torn lines, owners."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import recover as recovering
from pytest_icbench.host.journal import Entry, Journal, Owner, UndoKind, process_start_time
from pytest_icbench.host.recover import Recovery, recover
from pytest_icbench.version import package_version

#: Names that the kinds ``note``, ``early``, ``lasting`` and ``broken`` were called with.
_calls: list[str] = []


def _broken(name: str) -> None:
    _calls.append(name)
    raise ProvisionError(f"{name} is stuck")


KINDS = {
    "note": UndoKind(lambda name: _calls.append(name)),
    "early": UndoKind(lambda name: _calls.append(name), early=True),
    "lasting": UndoKind(lambda name: _calls.append(name), survives_reboot=True),
    "broken": UndoKind(_broken),
}


@pytest.fixture
def undone() -> list[str]:
    """Names that were undone, in order."""
    _calls.clear()
    return _calls


def test_it_is_on_disk_before_the_caller_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    path = tmp_path / "journal"
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(path.read_bytes()))
    log = Journal(path, KINDS)
    number = log.record("note", name="a")
    assert synced[-1] == path.read_bytes()
    line = json.loads(synced[-1].splitlines()[-1])
    assert line == {"entry": number, "kind": "note", "data": {"name": "a"}}


def test_undone_in_reverse_and_once(tmp_path: Path, undone: list[str]) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    for name in "abc":
        log.record("note", name=name)
    assert log.undo_all() == []
    assert undone == ["c", "b", "a"]
    assert log.undo_all() == []
    assert undone == ["c", "b", "a"]


def test_processes_end_before_what_they_hold_is_freed(tmp_path: Path, undone: list[str]) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    log.record("early", name="processes")
    log.record("note", name="pages")
    log.record("note", name="link")
    log.undo_all()
    assert undone == ["processes", "link", "pages"]


def test_done_is_forgotten(tmp_path: Path, undone: list[str]) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    first, second = log.record("note", name="a"), log.record("note", name="b")
    log.done(second)
    log.done(second)
    log.done(99)
    assert Journal(log.path, KINDS).pending() == [Entry(first, "note", {"name": "a"})]


def test_it_goes_on_after_an_error_and_keeps_what_failed(tmp_path: Path, undone: list[str]) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    log.record("note", name="a")
    log.record("broken", name="b")
    log.record("note", name="c")
    failures = log.undo_all()
    assert undone == ["c", "b", "a"]
    assert failures == ["broken {'name': 'b'} could not be undone: b is stuck"]
    assert [entry.kind for entry in Journal(log.path, KINDS).pending()] == ["broken"]


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        ("moved", {"name": "eth7"}, "its kind is unknown"),
        ("note", {"name": "eth7", "lanes": 4}, "there is no key 'lanes'; known are name"),
    ],
    ids=["kind", "data"],
)
def test_what_a_newer_version_changed_is_reported_and_kept_and_the_rest_is_undone(
    tmp_path: Path, undone: list[str], kind: str, data: dict[str, object], why: str
) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    log.record("early", name="processes")
    log.record("note", name="namespace")
    log.record(kind, **data)
    log.record("note", name="later")
    header, *lines = log.path.read_text().splitlines()
    assert json.loads(header)["version"] == package_version()
    log.path.write_text("\n".join([json.dumps(json.loads(header) | {"version": "9.8.7"}), *lines]) + "\n")
    older = Journal(log.path, KINDS)
    (failure,) = older.undo_all()
    assert undone == ["processes", "later", "namespace"]
    assert failure == (
        f"this version cannot undo {kind} {data}: {why}: run `icbench recover` of pytest-icbench 9.8.7 or later"
    )
    assert [entry.data["name"] for entry in Journal(log.path, KINDS).pending()] == ["eth7"]
    assert older.undo_all() == [failure]
    newer = KINDS | {kind: UndoKind(lambda name, lanes=0: undone.append(name))}
    assert Journal(log.path, newer).undo_all() == []
    assert undone[3:] == ["eth7"]


def test_a_journal_that_does_not_say_its_version_can_be_undone(tmp_path: Path, undone: list[str]) -> None:
    path = tmp_path / "journal"
    path.write_text(json.dumps({"schema": 1, "owner": asdict(Owner.current())}) + "\n")
    log = Journal(path, KINDS)
    log.record("note", name="a")
    log.record("moved", name="b")
    (failure,) = log.undo_all()
    assert undone == ["a"]
    assert failure.endswith("its kind is unknown: run `icbench recover` of the pytest-icbench that made it")


def test_what_this_version_does_not_understand_of_itself_is_to_be_undone_by_hand(tmp_path: Path) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    log.record("moved", name="b")
    (failure,) = log.undo_all()
    assert failure.endswith("its kind is unknown: undo it by hand, then run `icbench recover --forget`")


#: Lines as no session writes them, with what is told about each.
ODD_LINES = {
    '{"entry":2,"kind":"note"}': "line 3 of {path}: data is missing",
    '{"entry":"2","kind":"note","data":{}}': "line 3 of {path}: entry: expected an integer, found '2'",
    '{"entry":2,"kind":["note"],"data":{}}': "line 3 of {path}: kind: expected a string, found ['note']",
    '{"entry":2,"kind":"note","data":null}': "line 3 of {path}: data: expected an object, found None",
    '{"entry":2,"kind":"note","data":[1]}': "line 3 of {path}: data: expected an object, found [1]",
    '{"entry":2,"kind":"note","data":{}}': "note {}: name is missing",
    '{"entry":2,"kind":"typed","data":{"name":null}}': "typed {'name': None}: name: expected a string, found None",
    '{"entry":2,"kind":"moved\\u001b","data":{"\\ud800":1}}': "'moved\\x1b' {'\\ud800': 1}: its kind is unknown",
    '{"done":[2]}': "line 3 of {path}: done: expected an integer, found [2]",
    "[" * 100_000: "line 3 of {path}: nested too deeply",
    "5": "line 3 of {path}: expected an object, found 5",
    '{"entry":2,"kind":"no': "line 3 of {path}: damaged, not valid JSON",
    "\0" * 30: "line 3 of {path}: damaged, not valid JSON",
}


@pytest.mark.parametrize("line", ODD_LINES, ids=range(len(ODD_LINES)))
def test_an_odd_line_is_reported_and_all_else_is_undone(tmp_path: Path, undone: list[str], line: str) -> None:
    def typed(name: str) -> None:
        _calls.append(name)

    for session in ("aaaaaa", "bbbbbb"):
        (tmp_path / session).mkdir(mode=0o700)
    text = '{"schema":1,"owner":null}\n{"entry":1,"kind":"note","data":{"name":"a"}}\n'
    last = '{"entry":3,"kind":"note","data":{"name":"c"}}\n'
    (tmp_path / "aaaaaa" / "journal").write_text(f"{text}{line}\n{last}")
    (tmp_path / "bbbbbb" / "journal").write_text(text)
    recovery = recover(tmp_path, KINDS | {"typed": UndoKind(typed)})
    assert undone == ["c", "a", "a"]
    assert recovery.failures == []
    (refusal,) = recovery.refused
    told = ODD_LINES[line].replace("{path}", str(tmp_path / "aaaaaa" / "journal"))
    assert refusal == (
        f"session aaaaaa: this version cannot undo {told}: run `icbench recover` of the pytest-icbench that made it"
    )
    assert recovery.undone == {"bbbbbb": 1}
    recovery = recover(tmp_path, KINDS, forget=True)
    assert undone == ["c", "a", "a"]
    assert recovery.undone.keys() == {"aaaaaa"}


@pytest.mark.parametrize("mounted", [False, True])
def test_what_cannot_be_removed_is_moved_away_when_it_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounted: bool
) -> None:
    """``mounted``: the directory of all sessions is a file system of its own, out of which nothing can be renamed."""

    def refuse(path: Path) -> None:
        raise ProvisionError(f"{path} cannot be removed")

    rename = Path.rename

    def rename_within(path: Path, target: Path) -> Path:
        if mounted and path.parent != target.parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(path, target)

    monkeypatch.setattr(recovering, "remove_tree", refuse)
    monkeypatch.setattr(Path, "rename", rename_within)
    run_dir = tmp_path / "run"
    (run_dir / "aaaaaa").mkdir(parents=True, mode=0o700)
    run_dir.chmod(0o700)
    assert recover(run_dir, KINDS).failures == [f"session aaaaaa: {run_dir}/aaaaaa cannot be removed"]
    recovery = recover(run_dir, KINDS, forget=True)
    (aside,) = run_dir.glob(".run-aaaaaa-*") if mounted else tmp_path.glob("run-aaaaaa-*")
    assert (recovery.undone, recovery.failures[0].endswith(f"; it is now {aside}")) == ({}, True)
    assert recover(run_dir, KINDS) == Recovery()


def test_whatever_an_undo_function_raises_the_others_are_called(tmp_path: Path, undone: list[str]) -> None:
    log = Journal(tmp_path / "journal", KINDS | {"odd": UndoKind(lambda name: {}[name])})
    for kind in ("note", "odd", "note"):
        log.record(kind, name=kind)
    assert log.undo_all() == ["odd {'name': 'odd'} could not be undone: KeyError: 'odd'"]
    assert undone == ["note", "note"]


@pytest.mark.parametrize(
    "owner",
    ["", '{"schema":1,"ow', '{"owner":null}\n', '{"owner":[]}\n', '{"owner":{"pid":1}}\n'],
    ids=["empty", "torn", "null", "list", "keys"],
)
def test_without_a_known_owner_the_lock_reports_that_a_session_is_dead(
    tmp_path: Path, undone: list[str], owner: str
) -> None:
    (tmp_path / "aaaaaa").mkdir(mode=0o700)
    (tmp_path / "aaaaaa" / "journal").write_text(owner)
    assert recover(tmp_path, KINDS) == Recovery(undone={"aaaaaa": 0})


def test_the_owner_of_a_newer_version_is_known(tmp_path: Path) -> None:
    owner = asdict(Owner.current()) | {"container": "x"}
    (tmp_path / "journal").write_text(json.dumps({"schema": 2, "owner": owner}) + "\n")
    log = Journal(tmp_path / "journal", KINDS)
    assert log.owner is not None
    assert log.owner.alive()


def test_the_entries_of_another_boot(tmp_path: Path, undone: list[str]) -> None:
    path = tmp_path / "journal"
    log = Journal(path, KINDS)
    log.record("note", name="gone with the boot")
    log.record("lasting", name="a directory")
    owner = asdict(Owner.current()) | {"boot": "another"}
    lines = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({"schema": 1, "owner": owner}), *lines[1:]]) + "\n")
    again = Journal(path, KINDS)
    assert again.owner is not None
    assert not again.owner.alive()
    assert again.undo_all() == []
    assert undone == ["a directory"]
    assert again.pending() == []


def test_a_forked_child_records_and_undoes_nothing(tmp_path: Path, undone: list[str]) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    number = log.record("note", name="a")
    before = log.path.read_bytes()
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            with pytest.raises(ProvisionError, match=rf"forked from process {os.getppid()}, .*leave --forked out$"):
                log.record("note", name="b")
            log.done(number)
            assert log.undo_all() == []
            assert undone == []
            failed = 0
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0
    assert log.path.read_bytes() == before
    assert log.undo_all() == []
    assert undone == ["a"]


def test_a_journal_that_is_no_file_is_named_and_can_be_forgotten(tmp_path: Path) -> None:
    (tmp_path / "aaaaaa").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "aaaaaa" / "journal")
    (failure,) = recover(tmp_path, KINDS).failures
    assert f"{tmp_path / 'aaaaaa'} cannot be read (not a regular file)" in failure
    recover(tmp_path, KINDS, forget=True)
    assert not (tmp_path / "aaaaaa").exists()


def test_numbers_go_on_after_reopening(tmp_path: Path) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    numbers = [log.record("note", name="a"), log.record("note", name="b")]
    log.done(numbers[1])
    log.close()
    log.close()
    assert Journal(tmp_path / "journal", KINDS).record("note", name="c") > numbers[1]


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(max_size=5), st.integers(1, 6)), max_size=8), st.floats(0, 1))
def test_a_torn_journal_is_a_prefix(steps: list[str | int], where: float) -> None:
    """Cut anywhere, it holds what the whole lines say, and can be written on."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        log = Journal(Path(directory) / "journal", KINDS)
        for step in steps:
            if isinstance(step, str):
                log.record("note", name=step)
            else:
                log.done(step)
        log.close()
        whole = log.path.read_bytes()
        cut = whole[: round(where * len(whole))]
        complete = cut[: cut.rfind(b"\n") + 1]
        expected: dict[int, str] = {}
        for line in complete.splitlines()[1:]:
            value = json.loads(line)
            if "entry" in value:
                expected[value["entry"]] = value["data"]["name"]
            else:
                expected.pop(value["done"], None)
        log.path.write_bytes(cut)
        torn = Journal(log.path, KINDS)
        found = {entry.number: entry.data["name"] for entry in torn.pending()}
        # A last line that lacks only its newline is whole: it may be there too, never anything else.
        assert found == expected or cut + b"\n" == whole[: len(cut) + 1]
        number = torn.record("note", name="next")
        assert Journal(log.path, KINDS).pending()[-1] == Entry(number, "note", {"name": "next"})


def test_an_owner_is_known_by_pid_and_start_time() -> None:
    owner = Owner.current()
    assert owner.alive()
    assert not Owner(owner.boot, owner.pid, owner.start_time + 1, owner.since).alive()
    assert not Owner("another boot", owner.pid, owner.start_time, owner.since).alive()


def test_a_zombie_is_dead() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        assert process_start_time(pid) is None
    finally:
        os.waitpid(pid, 0)
    assert process_start_time(pid) is None


def test_a_full_disk_is_an_error_before_the_change(tmp_path: Path) -> None:
    full = Path("/dev/full")
    log = Journal(tmp_path / "journal", KINDS)
    log.close()
    log._file = os.open(full, os.O_WRONLY)
    with pytest.raises(OSError, match="No space left"):
        log.record("note", name="a")
    assert log.pending() == []


def test_a_journal_that_vanished_is_an_error_before_the_change(tmp_path: Path, undone: list[str]) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    log.record("note", name="a")
    (tmp_path / "journal").unlink()
    with pytest.raises(FileNotFoundError, match="has vanished"):
        log.record("note", name="b")
    assert log.undo_all() == []
    assert undone == ["a"]


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, space: int) -> Iterator[None]:
    """Lets files take so many more bytes, as a disk that fills up."""
    write, left = os.write, space

    def limited(fd: int, data: bytes) -> int:
        nonlocal left
        taken = min(left, len(data))
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left -= taken
        return write(fd, data[:taken])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", limited)
        yield


@pytest.mark.parametrize("space", [0, 1, 10, 47, 48])
def test_a_write_that_failed_does_not_swallow_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, space: int
) -> None:
    log = Journal(tmp_path / "journal", KINDS)
    log.record("note", name="first")
    with full_disk(monkeypatch, space), pytest.raises(OSError, match=r"(?i)no space left"):
        log.record("note", name="second")
    log.record("note", name="third")
    for journal in (log, Journal(log.path, KINDS)):
        names = [entry.data["name"] for entry in journal.pending()]
        assert names == ["first", "third"]


def test_undoing_needs_no_space(tmp_path: Path, undone: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = tmp_path / "run"
    (run_dir / "aaaaaa").mkdir(parents=True, mode=0o700)
    log = Journal(run_dir / "aaaaaa" / "journal", KINDS)
    for name in "ab":
        log.record("note", name=name)
    log.close()
    header, *lines = log.path.read_text().splitlines()
    header = json.dumps(json.loads(header) | {"owner": None})
    log.path.write_text("\n".join([header, *lines, '{"entry":3,"ki']))
    monkeypatch.setattr(os, "pwrite", lambda *_: os.write(-1, b"x"))
    with full_disk(monkeypatch, 5):
        assert recover(run_dir, KINDS) == Recovery(undone={"aaaaaa": 2})
    assert undone == ["b", "a"]
    assert not log.path.exists()
