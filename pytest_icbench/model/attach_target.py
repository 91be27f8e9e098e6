# SPDX-License-Identifier: BSD-3-Clause
"""An endpoint in something that runs already, as a topology names it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: The name of the switch that stands for the path that is there.
ATTACH = "attach"
#: What can be attached to: a container by its name or id, a process, a network namespace.
KINDS = ("docker", "podman", "lxc", "pid", "netns")


@dataclass(frozen=True, slots=True)
class AttachTarget:
    """An endpoint in what runs already.

    Attributes:
        container: kind and name: ``docker:web1``, ``pid:4711``, ``netns:/run/netns/x``.
        interface: the interface that frames go through; None: the only one that suits.
        ip: the address of the interface that is used; None: its first one.
        socket: path of the vhost-user or memif socket as the container sees it; None: frames do not go through one.
        pci: the PCI function that DPDK drives; None: frames do not go through one.
    """

    container: str
    interface: str | None = None
    ip: str | None = None
    socket: str | None = None
    pci: str | None = None

    @property
    def kind(self) -> str:
        """One of ``KINDS``."""
        return self.container.partition(":")[0]

    @property
    def target(self) -> str:
        """What follows the kind: a name, a number or a path."""
        return self.container.partition(":")[2]

    def problem(self) -> str | None:
        """Returns half a sentence on what is wrong with ``container``; None if it can be looked for."""
        forms = "docker:NAME, podman:NAME, lxc:NAME, pid:NUMBER or netns:PATH"
        if self.kind not in KINDS or not self.target:
            return f"'{self.container}' names nothing to attach to: write {forms}"
        if self.kind == "pid" and not re.fullmatch("0{0,9}[1-9][0-9]{0,8}", self.target):
            return f"'{self.target}' is no process id: write pid:NUMBER"
        if self.kind == "netns" and not self.target.startswith("/"):
            return f"'{self.target}' is no absolute path: write netns:/run/netns/{self.target}"
        if self.kind in ("docker", "podman", "lxc") and self.target.startswith("-"):
            return f"'{self.target}' is no name of a container: write {forms}"
        return None
