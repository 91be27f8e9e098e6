# SPDX-License-Identifier: BSD-3-Clause
"""Undoes the changes of sessions that were killed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_icbench.host import run_directory
from pytest_icbench.host.cleanup import remove_tree
from pytest_icbench.host.journal import Journal, UndoKind
from pytest_icbench.host.lock import HostLock, SessionBusyError


@dataclass(slots=True)
class Recovery:
    """The result of a recovery.

    Attributes:
        undone: sessions whose changes were undone, with the number of changes.
        live: sessions that were left alone because their process still runs.
        failures: one sentence for each change that could not be undone.
    """

    undone: dict[str, int] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """Returns one sentence per session."""
        undone = [f"session {name}: {count} changes undone" for name, count in self.undone.items()]
        return undone + [f"session {name} is alive and was left alone" for name in self.live]


def undo_dead_sessions(run_dir: Path, kinds: Mapping[str, UndoKind], *, forget: bool = False) -> Recovery:
    """Undoes every session below ``run_dir`` whose process has ended.

    The caller holds the lock, so that no session starts meanwhile.

    Args:
        kinds: the ways in which changes are undone, by an entry's kind.
        forget: see ``recover``.
    """
    recovery = Recovery()
    for directory in sorted(path for path in run_dir.iterdir() if path.is_symlink() or path.is_dir()):
        name = directory.name
        try:
            run_directory.check(directory)
        except run_directory.OpenDirectoryError as error:
            recovery.failures.append(f"session {name}: {error}")
            if forget:
                remove_tree(directory)
            continue
        if not (directory / "journal").exists():  # killed before its first change
            remove_tree(directory)
            recovery.undone[name] = 0
            continue
        journal = Journal(directory / "journal", kinds)
        try:
            if journal.owner is not None and journal.owner.alive():
                recovery.live.append(name)
                continue
            pending = len(journal.pending())
            failures = [f"session {name}: {sentence}" for sentence in journal.undo_all()]
            undone = pending - len(journal.pending())
        finally:
            journal.close()
        recovery.failures += failures
        if failures and not forget:
            continue
        remove_tree(directory)
        recovery.undone[name] = undone
    return recovery


def recover(run_dir: Path, kinds: Mapping[str, UndoKind], *, forget: bool = False) -> Recovery:
    """Takes the lock and calls ``undo_dead_sessions``. Does nothing while a session runs: it did this at its start.

    Args:
        kinds: the ways in which changes are undone, by an entry's kind. Dead sessions may need any of them.
        forget: whether to drop the journals of changes that could not be undone, so that sessions can start again.

    Raises OSError if there is no permission to take the lock, OpenDirectoryError if others can write to ``run_dir``.
    """
    if not os.path.lexists(run_dir):
        return Recovery()
    try:
        lock = HostLock(run_dir / "lock")
    except SessionBusyError as error:
        return Recovery(live=[f"({error})"])
    try:
        return undo_dead_sessions(run_dir, kinds, forget=forget)
    finally:
        lock.release()
