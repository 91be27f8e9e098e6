# SPDX-License-Identifier: BSD-3-Clause
"""Changes of the host. Each is journaled before it is made, and undone before the session ends."""

from __future__ import annotations

from typing import Any, Protocol

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.journal import Journal
from pytest_icbench.host.process import Spawner
from pytest_icbench.host.root import Root


class Holder(Protocol):
    """Holds a host: its files, the names of what is created there, and the journal of changes."""

    @property
    def root(self) -> Root:
        """The directory that holds /sys and /proc."""

    @property
    def journal(self) -> Journal:
        """The undo log."""

    @property
    def spawner(self) -> Spawner:
        """The starter of processes, which carry the holder's mark."""

    def name(self, suffix: str) -> str:
        """Returns a name that is unique on the host. Raises ValueError if the suffix is too long."""

    def note(self, kind: str, key: str, **data: Any) -> None:
        """Records how to remove a named object, before it is created. ``forget`` takes the same kind and key."""

    def forget(self, kind: str, key: str) -> None:
        """Drops the record of an object that has been removed. Idempotent."""


class Changes:
    """The changes of one part of a session. They are undone by the journal's functions, as after a session's death."""

    def __init__(self, session: Holder) -> None:
        self.session = session
        self._entries: list[int] = []

    @property
    def root(self) -> Root:
        """The directory that holds /sys and /proc."""
        return self.session.root

    def record(self, kind: str, **data: Any) -> None:
        """Records how a change is undone. To be called before the change; see ``Journal.record``."""
        self._entries.append(self.session.journal.record(kind, **data))

    def write(self, name: str, text: str) -> None:
        """Writes a kernel file whose old text is restored later, unless it has the new text. Raises OSError."""
        before = self.root.read(name)
        if before is None or before == text:
            return
        self.record("file", path=str(self.root.path(name)), text=before)
        self.root.write(name, text)

    def undo(self, subject: str) -> None:
        """Undoes all changes, the latest first. Idempotent.

        ``subject``: the thing that was changed, for the error message. Raises ProvisionError with a sentence for each
        change that could not be undone.
        """
        entries, self._entries = self._entries, []
        failures = self.session.journal.undo(entries)
        if failures:
            raise ProvisionError(f"{subject} could not be restored completely:\n" + "\n".join(failures))
