# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of change that this package makes on a host, and how it is undone.

Whoever opens a session or recovers a dead one passes this table on.
"""

from __future__ import annotations

from pytest_icbench.driver.node import cgroups, precedence, registry
from pytest_icbench.host import cleanup
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.net import attached_links, links, nic, vf
from pytest_icbench.host.resource import hugepages, modules, pci, resctrl

UNDO_KINDS: dict[str, UndoKind] = {
    **cleanup.UNDO_KINDS,
    **hugepages.UNDO_KINDS,
    **links.UNDO_KINDS,
    **nic.UNDO_KINDS,
    **vf.UNDO_KINDS,
    **attached_links.UNDO_KINDS,
    **pci.UNDO_KINDS,
    **modules.UNDO_KINDS,
    **resctrl.UNDO_KINDS,
    **cgroups.UNDO_KINDS,
    **precedence.UNDO_KINDS,
    **registry.UNDO_KINDS,
}
