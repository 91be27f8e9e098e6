# SPDX-License-Identifier: BSD-3-Clause
"""Ways of the L3 cache for groups of CPUs, through the kernel's resctrl file system (Documentation/arch/x86/resctrl).

A group has the CPUs of one part, so that the kernel's own work there counts, too. Everything that is not in a group
keeps the ways that it has. Removing a group gives its CPUs back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import entry_checks
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.journaled_changes import Holder
from pytest_icbench.host.root import Root, format_cpu_list, parse_cpu_list

BASE = "/sys/fs/resctrl"
_INFO = f"{BASE}/info/L3"


def explain_missing_resctrl(root: Root) -> str | None:
    """Returns what this host lacks to split the L3 cache, each with its remedy; None if it lacks nothing."""
    flags = next((line for line in (root.read("/proc/cpuinfo") or "").splitlines() if line.startswith("flags")), "")
    kernel = "resctrl" in (root.read("/proc/filesystems") or "").split()
    lacks = [] if "cat_l3" in flags.split() else ["the CPU's flag cat_l3 (a hypervisor may hide it)"]
    lacks += [] if kernel else ["the kernel's option CONFIG_X86_CPU_RESCTRL"]
    if kernel and not root.exists(_INFO):
        cdp = root.exists(f"{_INFO}CODE")
        mount = f"mount -t resctrl resctrl {BASE}"
        lacks += [f"resctrl without its option cdp (umount {BASE}; {mount})" if cdp else f"the mount ({mount})"]
    return f"ways of the L3 cache cannot be given here; missing: {', '.join(lacks)}" if lacks else None


def explain_refused_ways(root: Root, ways: Sequence[int]) -> str | None:
    """Returns why the L3 cache cannot be split; None if it can. ``ways`` has the number of each part."""
    mask = int(root.read(f"{_INFO}/cbm_mask") or "0", 16)
    most, least = mask.bit_count(), root.read_int(f"{_INFO}/min_cbm_bits") or 1
    shown = "-".join(map(str, ways))
    if sum(ways) > most:
        return (
            f"cat:{shown} is {sum(ways)} ways of the L3 cache, and this CPU has {most}: they would overlap, so take"
            f" {most} or fewer together"
        )
    if min(ways) < least:
        return f"cat:{shown} has a part of {min(ways)} ways: give each {least} at least, as this CPU's L3 cache demands"
    used = sum(1 for name in root.list(BASE) if root.exists(f"{BASE}/{name}/schemata"))
    groups = (root.read_int(f"{_INFO}/num_closids") or len(ways) + 1) - 1 - used
    if len(ways) > groups:
        return f"cat:{shown} takes {len(ways)} groups of resctrl, and {groups} are free: remove others below {BASE}"
    return None


def make_masks(ways: Sequence[int]) -> list[int]:
    """Returns the ways of each part as bits next to each other, the first part's the lowest."""
    return [((1 << count) - 1) << sum(ways[:place]) for place, count in enumerate(ways)]


class CacheParts:
    """Parts of the L3 cache, each for some CPUs, until ``remove``.

    Args:
        parts: name and CPUs of each part.
        ways: number of each part's ways.

    Raises ProvisionError: the kernel refuses (with its reason), or another group has one of the CPUs. Nothing is left.
    """

    def __init__(self, session: Holder, parts: Mapping[str, Sequence[int]], ways: Sequence[int]) -> None:
        self._session, self._root = session, session.root
        self._groups: dict[str, str] = {}
        for name in self._root.list(BASE):
            group = set(parse_cpu_list(self._root.read(f"{BASE}/{name}/cpus_list")))
            if taken := group & {cpu for cpus in parts.values() for cpu in cpus}:
                raise ProvisionError(
                    f"the resctrl group {name} has CPU {format_cpu_list(sorted(taken))} already: remove {BASE}/{name}"
                )
        try:
            for (part, cpus), mask in zip(parts.items(), make_masks(ways), strict=True):
                self._make(part, cpus, mask)
        except BaseException:
            self.remove()
            raise

    def _make(self, part: str, cpus: Sequence[int], mask: int) -> None:
        group = self._session.name(part)
        self._session.note("resctrl", group, name=group, base=str(self._root.base))
        self._groups[part] = group
        line = next(line for line in (self._root.read(f"{BASE}/schemata") or "").splitlines() if "L3:" in line)
        caches = [part.partition("=")[0].strip() for part in line.partition(":")[2].split(";")]
        schemata = f"L3:{';'.join(f'{cache}={mask:x}' for cache in caches)}\n"
        try:
            self._root.path(f"{BASE}/{group}").mkdir()
            self._root.write(f"{BASE}/{group}/schemata", schemata)
            self._root.write(f"{BASE}/{group}/cpus_list", f"{format_cpu_list(sorted(set(cpus)))}\n")
        except OSError as error:
            status = self._root.read(f"{BASE}/info/last_cmd_status")
            raise ProvisionError(
                f"the ways {mask:x} of the L3 cache cannot be given to {part}: {status or error}"
            ) from None

    def occupancy(self) -> dict[str, float] | None:
        """Returns the bytes of the L3 caches that hold data of each part; None where the CPU does not monitor it."""
        held: dict[str, float] = {}
        for part, group in self._groups.items():
            files = self._root.glob(f"{BASE}/{group}/mon_data/mon_L3_*/llc_occupancy")
            values = [self._root.read_int(name) for name in files]
            if not values or None in values:
                return None
            held[part] = float(sum(value for value in values if value is not None))
        return held or None

    def remove(self) -> None:
        """Removes the groups. Idempotent. Raises ProvisionError."""
        for part, group in list(self._groups.items())[::-1]:
            undo_resctrl(group, str(self._root.base))
            self._session.forget("resctrl", group)
            del self._groups[part]


def undo_resctrl(name: str, base: str) -> None:
    """Removes a group, whose CPUs get the ways of the default group again. Raises ProvisionError."""
    path = Root(Path(base)).path(f"{BASE}/{name}")
    try:
        path.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ProvisionError(f"the resctrl group {path} cannot be removed: {error.strerror}") from None


UNDO_KINDS = {"resctrl": UndoKind(undo_resctrl, checks={"name": entry_checks.name, "base": entry_checks.base})}
