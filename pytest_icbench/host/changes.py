# SPDX-License-Identifier: BSD-3-Clause
"""Changes that belong together: journaled each before it is made, and undone together before the session ends."""

from __future__ import annotations

from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.holder import Holder
from pytest_icbench.host.root import Root


class Changes:
    """What one part of a session changes. Undone by the journal's own undo functions, as after the session's death."""

    def __init__(self, session: Holder) -> None:
        self.session = session
        self._entries: list[int] = []

    @property
    def root(self) -> Root:
        """Where /sys and /proc are."""
        return self.session.root

    def record(self, kind: str, **data: Any) -> None:
        """Notes how a change is undone; call it before the change. See ``Journal.record``."""
        self._entries.append(self.session.journal.record(kind, **data))

    def write(self, name: str, text: str) -> None:
        """Writes a kernel file that is to have its old text again. Raises OSError; nothing if it has the new text."""
        before = self.root.read(name)
        if before is None or before == text:
            return
        self.record("file", path=str(self.root.path(name)), text=before)
        self.root.write(name, text)

    def undo(self, what: str) -> None:
        """Undoes everything, the latest first. Idempotent. Raises ProvisionError about ``what``, with what remains."""
        entries, self._entries = self._entries, []
        failures = self.session.journal.undo(entries)
        if failures:
            raise ProvisionError(f"{what} is not quite as before:\n" + "\n".join(failures))
