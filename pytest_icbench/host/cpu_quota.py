# SPDX-License-Identifier: BSD-3-Clause
"""CPU quotas of control groups. The processes of a group that has used its quota stand still for the rest of a period.

Read-only. The groups of sessions are left out: what quotas they have are the contracts of functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.host.root import Root
from pytest_icbench.model.interference import Throttled

_SESSION = re.compile(r"icb[a-z0-9]{6}")


@dataclass(frozen=True, slots=True)
class Quota:
    """A group's quota, in CPUs. ``group`` is its path below the mount point, ``directory`` where its files are."""

    group: str
    cpus: float
    directory: str

    def periods(self, root: Root) -> tuple[int, int]:
        """Returns the number of periods so far, and of those in which the group was throttled."""
        words = (root.read(f"{self.directory}/cpu.stat") or "").split()
        counts = dict(zip(words[::2], words[1::2], strict=False))
        return int(counts.get("nr_periods", 0)), int(counts.get("nr_throttled", 0))


def quotas_above(root: Root, pids: Iterable[int]) -> list[Quota]:
    """Returns the quotas that hold for any of these processes, those of the outer groups first."""
    layout = Layout.read(root)
    hierarchy = layout.holding("cpu")
    if hierarchy is None:
        return []
    groups = {"": None}
    for pid in pids:
        path = dict(layout.groups_of(root, pid)).get(hierarchy, "/")
        names = [f"/{name}" for name in path.split("/") if name]
        ours = next((place for place, name in enumerate(names) if _SESSION.match(name, 1)), len(names))
        groups |= dict.fromkeys(accumulate(names[:ours]))
    return list(_quotas(root, hierarchy.mount, groups))


def _quotas(root: Root, mount: str, groups: Iterable[str]) -> Iterator[Quota]:
    for group in groups:
        directory = mount + group
        words = (root.read(f"{directory}/cpu.max") or "").split()
        if len(words) != 2:
            words = [root.read(f"{directory}/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
        if all(word.isdigit() for word in words) and int(words[1]):  # else "max", or -1 in v1
            yield Quota(group or "/", int(words[0]) / int(words[1]), directory)


def throttled(
    quotas: Sequence[Quota], before: Sequence[tuple[int, int]], after: Sequence[tuple[int, int]]
) -> tuple[Throttled, ...]:
    """Returns the groups that were throttled between two readings of their periods."""
    return tuple(
        Throttled(quota.group, round(quota.cpus, 3), last[1] - first[1], last[0] - first[0])
        for quota, first, last in zip(quotas, before, after, strict=True)
        if last[1] > first[1]
    )


def findings(root: Root, pid: int) -> Iterator[Finding]:
    """Yields what the doctor says of the quotas above a process."""
    for quota in quotas_above(root, [pid]):
        yield Finding(
            Level.DISTURBS,
            "CPU quota",
            f"group {quota.group} may use {quota.cpus:g} CPUs: a poller in it stands still once they are used",
            "start pytest outside of it, or raise its quota",
        )
