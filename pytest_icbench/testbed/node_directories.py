# SPDX-License-Identifier: BSD-3-Clause
"""The directories of a rig: what root alone writes, and what a node can write, each of bounded size."""

from __future__ import annotations

from pathlib import Path

from pytest_icbench.host.cleanup import remove_tree
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.node_files import NODE_MIB, RIG_MIB, make_tmpfs
from pytest_icbench.model.rig import node_directory


class NodeDirectories:
    """All directories of a rig. The constructor makes none.

    ``joined``: whether the nodes of a pair connect with each other and share a directory for their sockets.

    Attributes:
        work: for the switch; nodes see nothing of it but what follows.
        common: for a switch with all its sockets in one directory; nodes can read it.
        logs: for the logs of what runs in nodes; they cannot see it.
    """

    def __init__(self, session: HostSession, name: str, joined: bool) -> None:
        self._session, self._name, self._joined = session, name, joined
        self.work = session.dir / name
        self.common = self.work / "s"
        self.logs = Path()

    def make(self) -> None:
        """Makes those of the rig as a whole. Raises ProvisionError."""
        make_tmpfs(self.work, RIG_MIB, links=True)
        self.common.mkdir()
        self.logs = self._session.logs / self._name
        self.logs.mkdir()

    def remove(self) -> None:
        """Removes all. Idempotent. Raises ProvisionError."""
        remove_tree(self.work)
        remove_tree(self._session.dir / "log" / self._name)

    def of_endpoint(self, index: int, pair: int) -> list[Path]:
        """Makes what the node of an endpoint can write: its own directory, then that of its pair, if it has one.

        Raises ProvisionError. The last is that of its sockets.
        """
        return self._make(node_directory(self.work, index), pair)

    def of_function(self, pair: int, hop: int) -> list[Path]:
        """Makes the same for the node of a network function."""
        return self._make(self.work / f"f{pair}x{hop}", pair)

    def _make(self, own: Path, pair: int) -> list[Path]:
        shared = [self.work / f"w{pair}"] if self._joined else []
        for directory in (own, *shared):
            if not directory.exists():
                make_tmpfs(directory, NODE_MIB)
        return [own, *shared]
