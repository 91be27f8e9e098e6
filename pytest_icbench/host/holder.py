# SPDX-License-Identifier: BSD-3-Clause
"""The protocol through which code changes the host. ``host.session.HostSession`` implements it."""

from __future__ import annotations

from typing import Any, Protocol

from pytest_icbench.host.journal import Journal
from pytest_icbench.host.process import Spawner
from pytest_icbench.host.root import Root


class Holder(Protocol):
    """Holds a host: its files, the names of what is created there, and the journal of changes."""

    @property
    def root(self) -> Root:
        """The directory that holds /sys and /proc."""
        ...

    @property
    def journal(self) -> Journal:
        """The undo log."""
        ...

    @property
    def spawner(self) -> Spawner:
        """The starter of processes, which carry the holder's mark."""
        ...

    def name(self, suffix: str) -> str:
        """Returns a name that is unique on the host. Raises ValueError if the suffix is too long."""
        ...

    def note(self, kind: str, key: str, **data: Any) -> None:
        """Records how to remove a named object, before it is created. ``forget`` takes the same kind and key."""
        ...

    def forget(self, kind: str, key: str) -> None:
        """Drops the record of an object that has been removed. Idempotent."""
        ...
