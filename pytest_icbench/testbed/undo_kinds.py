# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of change that this package makes on a host, and how it is undone.

Code that opens a session, or recovers what a dead one left, passes them on.
"""

from __future__ import annotations

from pytest_icbench.driver.node import cgroups, docker, lxc, oci, podman, precedence
from pytest_icbench.host import undo
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.net import nic, present, vf
from pytest_icbench.host.resource import modules, pci, resctrl

UNDO_KINDS: dict[str, UndoKind] = {
    **undo.UNDO_KINDS,
    **nic.UNDO_KINDS,
    **vf.UNDO_KINDS,
    **present.UNDO_KINDS,
    **pci.UNDO_KINDS,
    **modules.UNDO_KINDS,
    **resctrl.UNDO_KINDS,
    **cgroups.UNDO_KINDS,
    **precedence.UNDO_KINDS,
    **lxc.UNDO_KINDS,
    **oci.UNDO_KINDS,
    **podman.UNDO_KINDS,
    **docker.UNDO_KINDS,
}
