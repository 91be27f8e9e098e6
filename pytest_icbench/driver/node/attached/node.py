# SPDX-License-Identifier: BSD-3-Clause
"""A node in the network namespace of what runs already. It has the host's files, so the container needs none of ours.

Its processes are in control groups of the session, and pinned by their affinity: those of the container stay as they
are, and a quota of theirs does not hold for what is measured.
"""

from __future__ import annotations

from typing import ClassVar

from pytest_icbench.driver.node.attached.target import find
from pytest_icbench.driver.node.netns import NetnsNode
from pytest_icbench.driver.node.protocol import NodeFacts
from pytest_icbench.errors import ProvisionError


class AttachedNode(NetnsNode):
    """A node in a namespace that is there, see ``node.protocol.Node``. Its spec says which (``existing``)."""

    kind: ClassVar[str] = "attached"

    def start(self) -> NodeFacts:
        """Starts a holder in the namespace. Raises ProvisionError if that is not there."""
        if self.spec.existing is None:
            raise ProvisionError(f"node {self.spec.name} has nothing to attach to: name it in a topology")
        return super().start()

    def _open(self) -> str:
        """Returns the path of the namespace that is there."""
        assert self.spec.existing is not None
        return find(self.spec.existing).netns

    def _close(self, netns: str) -> None:
        """Leaves the namespace as it is."""
