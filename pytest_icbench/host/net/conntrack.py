# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's table of connections: the entries of a network namespace, and the size of the table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.resource.hugepages import memory_kib
from pytest_icbench.host.root import Root

_PROC = "/proc/sys/net/netfilter/nf_conntrack_"
#: Bytes of an entry, rounded up.
_ENTRY_BYTES = 512


@dataclass(frozen=True, slots=True)
class Sessions:
    """A namespace's connections: entries of the table, and how many were refused and evicted since it was made."""

    entries: int
    refused: int
    evicted: int


@contextmanager
def _socket(netns: str) -> Iterator[Any]:
    from pyroute2.netlink.exceptions import NetlinkError  # takes a third of a second, which only a session needs
    from pyroute2.netlink.nfnetlink.nfctsocket import NFCTSocket

    try:
        with enter_netns(netns), NFCTSocket() as conntrack:
            yield conntrack
    except NetlinkError as error:
        raise ProvisionError(f"the kernel refused a look at its connections ({error})") from None


def count_sessions(netns: str) -> Sessions:
    """Returns the connections of the namespace at a path. Raises ProvisionError."""
    with _socket(netns) as conntrack:
        by_cpu = [dict(message["attrs"]) for message in conntrack.stat()]
        entries = sum(dict(message["attrs"]).get("CTA_STATS_GLOBAL_ENTRIES", 0) for message in conntrack.count())

    def total(*names: str) -> int:
        return sum(counts.get(f"CTA_STATS_{name}") or 0 for counts in by_cpu for name in names)

    return Sessions(entries, total("DROP", "CHAIN_TOOLONG"), total("EARLY_DROP"))


def flush_sessions(netns: str) -> None:
    """Removes all connections of a namespace. Raises ProvisionError."""
    with _socket(netns) as conntrack:
        conntrack.flush()


def explain_misfit(root: Root, size: int) -> str | None:
    """Returns why the table of each namespace cannot have a size; None if it can. Changes nothing."""
    if root.exists(f"{_PROC}max") and not os.access(root.path(f"{_PROC}max"), os.W_OK):
        return "nf_conntrack_max can be set by root on the host alone, not in a container"
    connections = root.read_int(f"{_PROC}count") or 0
    if 2 * connections > size:
        has = f"the host itself has {connections} connections"
        return f"the size is for all namespaces, and {has}: take {2 * connections} or more"
    wanted_mib, available_mib = size * _ENTRY_BYTES >> 20, memory_kib(root).get("MemAvailable", 0) >> 10
    return f"it may take {wanted_mib} MiB, and the host has {available_mib}" if wanted_mib > available_mib else None


def set_size(changes: Changes, size: int) -> int:
    """Sets the maximum of connections of each namespace, which only the host can. Returns the table's buckets.

    Raises ProvisionError.
    """
    try:
        changes.write(f"{_PROC}max", f"{size}\n")
    except OSError as error:
        raise ProvisionError(f"nf_conntrack_max cannot be set ({error.strerror}): run as root on the host") from None
    check_size(changes.root, size)
    return changes.root.read_int(f"{_PROC}buckets") or 0


def check_size(root: Root, size: int) -> None:
    """Raises ProvisionError if the size has changed."""
    now = root.read_int(f"{_PROC}max")
    if now != size:
        raise ProvisionError(
            f"nf_conntrack_max is {now}, not the {size} that it was set to: do not change it during a run"
        )
