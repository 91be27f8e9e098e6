# SPDX-License-Identifier: BSD-3-Clause
"""Changes that belong together. Each is journaled before it is made; all are undone before the session ends."""

from __future__ import annotations

from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.holder import Holder
from pytest_icbench.host.root import Root


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

        Args:
            subject: the thing that was changed, for the error message.

        Raises ProvisionError with a sentence for each change that could not be undone.
        """
        entries, self._entries = self._entries, []
        failures = self.session.journal.undo(entries)
        if failures:
            raise ProvisionError(f"{subject} is not quite as before:\n" + "\n".join(failures))
