# SPDX-License-Identifier: BSD-3-Clause
"""What code that changes the host needs of whoever holds it. ``host.session.HostSession`` is one."""

from __future__ import annotations

from typing import Any, Protocol

from pytest_icbench.host.journal import Journal
from pytest_icbench.host.process import Spawner
from pytest_icbench.host.root import Root


class Holder(Protocol):
    """Holds a host: its files, names for what is made there, and the journal of what is to be undone."""

    @property
    def root(self) -> Root:
        """Where /sys and /proc are."""
        ...

    @property
    def journal(self) -> Journal:
        """The undo log."""
        ...

    @property
    def spawner(self) -> Spawner:
        """Starts processes that carry the holder's mark."""
        ...

    def name(self, suffix: str) -> str:
        """A name that nobody else gives. Raises ValueError if the suffix is too long."""
        ...

    def note(self, kind: str, key: str, **data: Any) -> None:
        """Records how a named thing is undone, before it is made; ``forget`` takes the same kind and key."""
        ...

    def forget(self, kind: str, key: str) -> None:
        """The named thing has been removed: nothing is left to undo. Idempotent."""
        ...
