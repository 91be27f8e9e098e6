# SPDX-License-Identifier: BSD-3-Clause
"""Undoes the changes of sessions that were killed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.cleanup import kill_session, remove_tree
from pytest_icbench.host.journal import Journal, UndoKind
from pytest_icbench.host.lock import HostLock, OpenDirectoryError, SessionBusyError, check_directory
from pytest_icbench.wording import counted


@dataclass(slots=True)
class Recovery:
    """The result of a recovery.

    Attributes:
        undone: sessions whose changes were undone, with the number of changes.
        live: sessions that were left alone because their process still runs.
        failures: one sentence for each change that could not be undone.
        refused: one sentence for each entry of a journal that this version does not understand, or that no session
            writes. The session's processes have ended, and its other changes are undone.
    """

    undone: dict[str, int] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """Returns one sentence per session."""
        undone = [f"session {name}: {counted(count, 'change')} undone" for name, count in self.undone.items()]
        return undone + [f"session {name} is alive and was left alone" for name in self.live]


#: A file in the directory of a session whose refused entries have been reported.
_REPORTED = "reported"


def undo_dead_sessions(
    run_dir: Path, kinds: Mapping[str, UndoKind], *, forget: bool = False, once: bool = False
) -> Recovery:
    """Undoes every session below ``run_dir`` whose process has ended.

    The caller holds the lock, so that no session starts meanwhile.

    Args:
        kinds: the ways in which changes are undone, by an entry's kind.
        forget: see ``recover``.
        once: whether to leave out refused entries that an earlier call with ``once`` has reported.
    """
    recovery = Recovery()
    for directory in sorted(path for path in run_dir.iterdir() if path.is_symlink() or path.is_dir()):
        name = directory.name
        if name.startswith("."):  # moved away
            continue
        try:
            check_directory(directory)
            if (directory / "journal").exists():
                _undo_session(directory, kinds, recovery, forget=forget, once=once)
            elif _remove(directory, recovery, forget=forget):  # killed before its first change
                recovery.undone[name] = 0
        except (OpenDirectoryError, OSError) as error:
            why = error if isinstance(error, OpenDirectoryError) else f"{directory} cannot be read ({error.strerror})"
            recovery.failures.append(f"session {name}: {why}")
            if forget:
                _remove(directory, recovery, forget=True)
    return recovery


def _remove(directory: Path, recovery: Recovery, *, forget: bool) -> bool:
    """Removes a session's directory. Returns whether it could; else a sentence of ``recovery`` says why.

    ``forget``: whether a directory that cannot be removed is moved away, so that sessions can start again.
    """
    try:
        remove_tree(directory)
    except ProvisionError as error:
        aside = _move_away(directory) if forget else None
        moved = f"; it is now {aside}" if aside else ""
        recovery.failures.append(f"session {directory.name}: {error}{moved}")
        return False
    return True


def _move_away(directory: Path) -> Path | None:
    """Renames a session's directory, so that no later session finds it. Returns its new path, None if it cannot."""
    name = f"{directory.parent.name}-{directory.name}-{time.time_ns()}"
    # The directory of all sessions can be a file system of its own, as where containers share it.
    for aside in (directory.parent.with_name(name), directory.with_name(f".{name}")):
        with suppress(OSError):
            return directory.rename(aside)
    return None


def _undo_session(
    directory: Path, kinds: Mapping[str, UndoKind], recovery: Recovery, *, forget: bool, once: bool
) -> None:
    """Undoes the changes of a session, unless its process runs, and adds the result to ``recovery``."""
    name = directory.name
    journal = Journal(directory / "journal", kinds)
    try:
        if journal.owner is not None and journal.owner.alive():
            recovery.live.append(name)
            return
        pending = len(journal.pending())
        sentences = journal.undo_all()
        refused, undone = journal.refused, pending - len(journal.pending())
        if refused:  # none of its processes may disturb the next measurement
            try:
                kill_session(name)
            except ProvisionError as error:
                sentences.append(str(error))
    finally:
        journal.close()
    recovery.failures += [f"session {name}: {sentence}" for sentence in sentences if sentence not in refused]
    if not (once and (directory / _REPORTED).exists()):
        recovery.refused += [f"session {name}: {sentence}" for sentence in refused]
    if not sentences or forget:
        if _remove(directory, recovery, forget=forget):
            recovery.undone[name] = undone
    elif once and refused:
        with suppress(OSError):  # the entries are then reported again
            (directory / _REPORTED).touch()


def recover(run_dir: Path, kinds: Mapping[str, UndoKind], *, forget: bool = False) -> Recovery:
    """Takes the lock and calls ``undo_dead_sessions``. Does nothing while a session runs, which did this at its start.

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
