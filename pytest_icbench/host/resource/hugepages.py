# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages per NUMA node. Only missing pages are taken, and exactly these are given back.

A session's claims on one node and page size add up: pages that are free now may be promised to a rig that has not
mapped them yet. Pages that were taken stay with the session until it ends, so that the next rig gets unfragmented ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_icbench.errors import NoRoom, ProvisionError
from pytest_icbench.host import entry_checks
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.journaled_changes import Holder
from pytest_icbench.host.process import wait_until
from pytest_icbench.host.root import Root


def memory_kib(root: Root) -> dict[str, int]:
    """Returns the fields of /proc/meminfo by name, in KiB (in pages where it counts pages)."""
    fields: dict[str, int] = {}
    for line in (root.read("/proc/meminfo") or "").splitlines():
        key, _, value = line.partition(":")
        with suppress(ValueError, IndexError):
            fields[key] = int(value.split()[0])
    return fields


def available_kib(root: Root, node: int) -> int | None:
    """Returns the KiB of a node that could become huge pages, free or cache; None if unknown."""
    fields = {}
    for line in (root.read(f"{_NODE}{node}/meminfo") or "").splitlines():
        words = line.split()  # Node 0 MemFree: 4431836 kB
        fields[words[2].rstrip(":")] = int(words[3])
    if "MemFree" not in fields:
        return None
    available = fields["MemFree"] + sum(
        fields.get(key, 0) for key in ("Active(file)", "Inactive(file)", "SReclaimable")
    )
    if len(root.glob(f"{_NODE}[0-9]*")) == 1:
        # A kernel that initialises memory as it is used counts only part of it in the node's figures.
        available = max(available, memory_kib(root).get("MemAvailable", 0))
    return available


#: The time to wait for the pages of processes that are ending.
_SETTLE_S = 2.0
_NODE = "/sys/devices/system/node/node"


def _directory(node: int, size_kib: int) -> str:
    return f"{_NODE}{node}/hugepages/hugepages-{size_kib}kB"


@dataclass(slots=True)
class _Pool:
    """A session's pages of one size on one node.

    Attributes:
        before: the node's pages at the session's first request.
        foreign: the pages then in use by others.
        claimed: pages promised to rigs of this session.
        entry: number of the journal entry, None as long as nothing was taken.
    """

    before: int
    foreign: int
    claimed: int = 0
    entry: int | None = None

    def target(self, pages: int) -> int:
        """Returns how many pages the node needs in total to grant this many more."""
        return max(self.before, self.foreign + self.claimed + pages)


class HugePages:
    """A session's huge pages."""

    def __init__(self) -> None:
        self._pools: dict[tuple[int, int], _Pool] = {}

    def pool(self, root: Root, node: int, size_kib: int) -> _Pool:
        """Returns the session's pool of one size on one node. Raises ProvisionError if the node has none."""
        total, free = counts(root, node, size_kib)
        return self._pools.setdefault((node, size_kib), _Pool(total, total - free))


class HugePageHolder(Holder, Protocol):
    """A holder of a host with its huge pages, which are all of one size."""

    @property
    def hugepages(self) -> HugePages:
        """The session's huge pages."""

    @property
    def hugepage_size_kib(self) -> int:
        """The size of a page in KiB."""


def sizes_kib(root: Root, node: int | None = None) -> list[int]:
    """Returns the huge page sizes in KiB that the kernel offers on a node; None: on the host."""
    names = root.list("/sys/kernel/mm/hugepages" if node is None else f"{_NODE}{node}/hugepages")
    return sorted(
        int(name.removeprefix("hugepages-").removesuffix("kB")) for name in names if name.startswith("hugepages-")
    )


def counts(root: Root, node: int, size_kib: int) -> tuple[int, int]:
    """Returns a node's pages: (total, free). Raises ProvisionError if it has none of that size."""
    total = root.read_int(f"{_directory(node, size_kib)}/nr_hugepages")
    free = root.read_int(f"{_directory(node, size_kib)}/free_hugepages")
    if total is None or free is None:
        if size_kib in sizes_kib(root, node):
            raise ProvisionError(
                f"{_directory(node, size_kib)} does not show the number of huge pages: find out whether"
                " something is mounted over its files"
            )
        offered = ", ".join(f"{size // 1024} MiB" for size in sizes_kib(root, node)) or "none"
        raise ProvisionError(
            f"NUMA node {node} has no huge pages of {size_kib // 1024} MiB (it offers {offered}): choose another"
            " --icbench-hugepage-size"
        )
    return total, free


def free_mib(root: Root) -> int:
    """Returns the MiB of all unused pages, of every size and node. A size without a readable count has none."""
    total = 0
    for path in root.glob(f"{_NODE}[0-9]*"):
        node = int(path.rpartition("/node")[2])
        for size_kib in sizes_kib(root, node):
            total += (root.read_int(f"{_directory(node, size_kib)}/free_hugepages") or 0) * size_kib
    return total // 1024


def _set(root: Root, node: int, size_kib: int, pages: int) -> int:
    """Asks for that many pages in total. Returns the number afterwards. Raises ProvisionError."""
    try:
        root.write(f"{_directory(node, size_kib)}/nr_hugepages", str(pages))
    except OSError as error:
        raise ProvisionError(
            f"huge pages of NUMA node {node} cannot be changed ({error.strerror}): run as root"
        ) from None
    return counts(root, node, size_kib)[0]


def check_room(session: HugePageHolder, node: int, claims_mib: Sequence[int]) -> int:
    """Checks that a node has the memory for several claims of ``reserve`` together; changes nothing.

    Returns how many MiB of ordinary memory would become huge pages. Raises NoRoom if the node has less, so that no
    claim succeeds where a later one of the same rig must fail.
    """
    root, size_kib = session.root, session.hugepage_size_kib
    pages = sum(_pages(mib, size_kib) for mib in claims_mib)
    if not pages:
        return 0
    pool = session.hugepages.pool(root, node, size_kib)
    missing = max(0, pool.target(pages) - counts(root, node, size_kib)[0])
    _check_memory(root, node, size_kib, pages=missing)
    return missing * size_kib // 1024


def reserve(session: HugePageHolder, node: int, mib: int) -> None:
    """Reserves ``mib`` MiB of huge pages for the caller, on top of earlier claims.

    Raises NoRoom, with everything as before, if the kernel cannot give them. A request for more than the
    available memory is not passed on: the kernel would drop every cache and swap before it refuses.
    """
    root, size_kib = session.root, session.hugepage_size_kib
    pages = _pages(mib, size_kib)
    if pages <= 0:
        return
    pool = session.hugepages.pool(root, node, size_kib)
    target = pool.target(pages)
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
        granted = _set(root, node, size_kib, target)
        if granted < target:
            give_back(str(root.base), node=node, size_kib=size_kib, before=total, taken=target - total)
            session.journal.done(entry)
            raise NoRoom(_refusal(node, size_kib, requested=target - total, granted=max(0, granted - total)))
        if pool.entry is not None:
            session.journal.done(pool.entry)
        pool.entry = entry
    pool.claimed += pages


def _pages(mib: int, size_kib: int) -> int:
    return -(-mib * 1024 // size_kib)


def _name(size_kib: int) -> str:
    """Returns a size in the notation of the kernel's parameters: 2M, 1G."""
    return f"{size_kib // 1024}M" if size_kib < 1048576 else f"{size_kib // 1048576}G"


def _check_memory(root: Root, node: int, size_kib: int, *, pages: int) -> None:
    """Raises NoRoom if a node has too little memory for this many more pages."""
    available = available_kib(root, node)
    if available is not None and pages * size_kib > available:
        raise NoRoom(
            f"{pages} more huge pages of {_name(size_kib)} are wanted on NUMA node {node}, which has only"
            f" {available // 1024} MiB of memory for them: run fewer pairs or shorter chains, or free memory"
        )


def _refusal(node: int, size_kib: int, *, requested: int, granted: int) -> str:
    """Returns the message about fewer pages than requested."""
    size = _name(size_kib)
    return (
        f"NUMA node {node} gave {granted} of {requested} more huge pages of {size}"
        " (too little memory, or too fragmented), and they were given back:"
        " free memory, or reserve them at boot with the kernel parameters"
        f" hugepagesz={size} hugepages={requested}"
    )


def release(session: HugePageHolder, node: int, mib: int) -> None:
    """Ends a claim of ``reserve``. The pages stay with the session for the next claim."""
    size_kib = session.hugepage_size_kib
    pool = session.hugepages.pool(session.root, node, size_kib)
    pool.claimed = max(0, pool.claimed - _pages(mib, size_kib))


def give_back(base: str, *, node: int, size_kib: int, before: int, taken: int) -> None:
    """Lowers a node's number of pages by ``taken``, but never below ``before``. Idempotent.

    It waits a little for the pages of processes that are ending. The kernel frees pages still in use later. ``base``:
    the root of /sys, as text.
    """
    root = Root(Path(base))
    if not root.exists(_directory(node, size_kib)):
        return
    total, _ = counts(root, node, size_kib)
    if total <= before:
        return
    target = max(before, total - taken)
    if root.live:
        wait_until(lambda: counts(root, node, size_kib)[1] >= total - target, _SETTLE_S, 0.02)
    _set(root, node, size_kib, target)


UNDO_KINDS = {"hugepages": UndoKind(give_back, checks={"base": entry_checks.base})}
