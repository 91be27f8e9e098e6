# SPDX-License-Identifier: BSD-3-Clause
"""The memory of the machine and of its NUMA nodes."""

from __future__ import annotations

from contextlib import suppress

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
    for line in (root.read(f"/sys/devices/system/node/node{node}/meminfo") or "").splitlines():
        words = line.split()  # Node 0 MemFree: 4431836 kB
        fields[words[2].rstrip(":")] = int(words[3])
    if "MemFree" not in fields:
        return None
    available = fields["MemFree"] + sum(
        fields.get(key, 0) for key in ("Active(file)", "Inactive(file)", "SReclaimable")
    )
    if len(root.glob("/sys/devices/system/node/node[0-9]*")) == 1:
        # A kernel that initialises memory as it is used counts only part of it in the node's figures.
        available = max(available, memory_kib(root).get("MemAvailable", 0))
    return available
