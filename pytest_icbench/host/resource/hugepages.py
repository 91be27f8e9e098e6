# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages per NUMA node: only what is missing is taken, and exactly that is given back.

A session's claims on one node and page size add up: pages that are free now may be promised to a rig that has not
mapped them yet. What was taken stays with the session until it ends, so that the next rig finds unfragmented pages.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.holder import Holder
from pytest_icbench.host.resource.memory import available_kib
from pytest_icbench.host.root import Root

#: How long pages of processes that are just ending are waited for.
_SETTLE_S = 2.0


def _directory(node: int, size_kib: int) -> str:
    return f"/sys/devices/system/node/node{node}/hugepages/hugepages-{size_kib}kB"


@dataclass(slots=True)
class _Pool:
    """A session's pages of one size on one node.

    Attributes:
        before: pages the node had when the session first asked.
        foreign: those in use by others then.
        claimed: pages promised to rigs of this session.
        entry: number of the journal entry, None while nothing was taken.
    """

    before: int
    foreign: int
    claimed: int = 0
    entry: int | None = None


class HugePages:
    """A session's huge pages."""

    def __init__(self) -> None:
        self._pools: dict[tuple[int, int], _Pool] = {}

    def pool(self, root: Root, node: int, size_kib: int) -> _Pool:
        total, free = counts(root, node, size_kib)
        return self._pools.setdefault((node, size_kib), _Pool(total, total - free))


class HugePageHolder(Holder, Protocol):
    """A holder of a host with its huge pages: all of one size, in KiB."""

    @property
    def hugepages(self) -> HugePages: ...

    @property
    def hugepage_size_kib(self) -> int: ...


def sizes(root: Root, node: int = 0) -> list[int]:
    """Huge page sizes in KiB that the kernel offers on a node."""
    names = root.list(f"/sys/devices/system/node/node{node}/hugepages")
    return sorted(
        int(name.removeprefix("hugepages-").removesuffix("kB")) for name in names if name.startswith("hugepages-")
    )


def counts(root: Root, node: int, size_kib: int) -> tuple[int, int]:
    """Pages of a node in total and free. Raises ProvisionError if it has none of that size."""
    total = root.read_int(f"{_directory(node, size_kib)}/nr_hugepages")
    free = root.read_int(f"{_directory(node, size_kib)}/free_hugepages")
    if total is None or free is None:
        offered = ", ".join(f"{size // 1024} MiB" for size in sizes(root, node)) or "none"
        raise ProvisionError(
            f"NUMA node {node} has no huge pages of {size_kib // 1024} MiB (it offers {offered}): choose another"
            " --icbench-hugepage-size"
        )
    return total, free


def _set(root: Root, node: int, size_kib: int, pages: int) -> int:
    """Asks for that many pages in total; returns how many there are then."""
    try:
        root.write(f"{_directory(node, size_kib)}/nr_hugepages", str(pages))
    except OSError as error:
        raise ProvisionError(
            f"huge pages of NUMA node {node} cannot be changed ({error.strerror}): run as root"
        ) from None
    return counts(root, node, size_kib)[0]


def reserve(session: HugePageHolder, node: int, mib: int) -> None:
    """Makes sure that ``mib`` MiB of huge pages are there for the caller, on top of earlier claims.

    Raises ProvisionError, everything as before, if the kernel cannot give them; what is more than the memory is refused
    without asking it, since it would drop every cache and swap before it says no.
    """
    root, size_kib = session.root, session.hugepage_size_kib
    pages = -(-mib * 1024 // size_kib)
    if pages <= 0:
        return
    pool = session.hugepages.pool(root, node, size_kib)
    target = max(pool.before, pool.foreign + pool.claimed + pages)
    total, _ = counts(root, node, size_kib)
    if target > total:
        _check_memory(root, node, size_kib, pages=target - total)
        entry = session.journal.record(
            "hugepages",
            base=str(root.base),
            node=node,
            size_kib=size_kib,
            before=pool.before,
            taken=target - pool.before,
        )
        got = _set(root, node, size_kib, target)
        if got < target:
            give_back(str(root.base), node=node, size_kib=size_kib, before=total, taken=target - total)
            session.journal.done(entry)
            raise ProvisionError(_refusal(node, size_kib, wanted=target - total, got=max(0, got - total)))
        if pool.entry is not None:
            session.journal.done(pool.entry)
        pool.entry = entry
    pool.claimed += pages


def _name(size_kib: int) -> str:
    """As the kernel's parameters have it: 2M, 1G."""
    return f"{size_kib // 1024}M" if size_kib < 1048576 else f"{size_kib // 1048576}G"


def _check_memory(root: Root, node: int, size_kib: int, *, pages: int) -> None:
    available = available_kib(root, node)
    if available is not None and pages * size_kib > available:
        raise ProvisionError(
            f"{pages} more huge pages of {_name(size_kib)} are wanted on NUMA node {node}, which has only"
            f" {available // 1024} MiB of memory for them: run fewer pairs, or free memory"
        )


def _refusal(node: int, size_kib: int, *, wanted: int, got: int) -> str:
    size = _name(size_kib)
    return (
        f"NUMA node {node} gave {got} of {wanted} more huge pages of {size} (too little memory, or too fragmented),"
        f" and they were given back: free memory, or reserve them at boot with the kernel parameters"
        f" hugepagesz={size} hugepages={wanted}"
    )


def release(session: HugePageHolder, node: int, mib: int) -> None:
    """Ends a claim of ``reserve``; the pages stay with the session for the next one."""
    size_kib = session.hugepage_size_kib
    pool = session.hugepages.pool(session.root, node, size_kib)
    pool.claimed = max(0, pool.claimed - -(-mib * 1024 // size_kib))


def give_back(base: str, *, node: int, size_kib: int, before: int, taken: int) -> None:
    """Takes ``taken`` pages off a node's number, but never below ``before``: idempotent.

    Waits a little for pages of processes that are just ending; pages still used then are freed by the kernel later.
    """
    root = Root(Path(base))
    if not root.exists(_directory(node, size_kib)):
        return
    total, _ = counts(root, node, size_kib)
    if total <= before:
        return
    deadline = time.monotonic() + _SETTLE_S
    target = max(before, total - taken)
    while root.live and counts(root, node, size_kib)[1] < total - target and time.monotonic() < deadline:
        time.sleep(0.02)
    _set(root, node, size_kib, target)
