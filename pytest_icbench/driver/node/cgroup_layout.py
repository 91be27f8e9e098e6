# SPDX-License-Identifier: BSD-3-Clause
"""Which control groups a host has: v1, v2, or both side by side. Reads only, so a recorded tree can be a host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_icbench.host.root import Root, parse_cpu_list

_MOUNT = "/sys/fs/cgroup"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted hierarchy.

    Attributes:
        mount: mount point.
        base: path below it under which groups are made, "" for the top.
        controllers: what it controls; empty for systemd's own and for a v2 hierarchy beside v1.
        unified: whether it is cgroup v2.
    """

    mount: str
    base: str
    controllers: frozenset[str]
    unified: bool

    def path(self, group: str) -> str:
        """A group's directory."""
        return f"{self.mount}{self.base}/{group}"

    @property
    def top(self) -> str:
        """The directory in which a session's group is made."""
        return f"{self.mount}{self.base}"


@dataclass(frozen=True, slots=True)
class Layout:
    """The hierarchies of a host."""

    hierarchies: tuple[Hierarchy, ...]

    @classmethod
    def read(cls, root: Root) -> Layout:
        """From /proc/self/mounts and /proc/1/cgroup; no hierarchies where none is mounted below /sys/fs/cgroup."""
        bases = dict(_bases(root.read("/proc/1/cgroup") or ""))
        found = []
        for line in (root.read("/proc/self/mounts") or "").splitlines():
            _, mount, kind, options = line.split()[:4]
            if mount != _MOUNT and not mount.startswith(_MOUNT + "/"):
                continue
            if kind == "cgroup2":
                base = bases.get("", "")
                controllers = (root.read(f"{mount}{base}/cgroup.controllers") or "").split()
                found.append(Hierarchy(mount, base, frozenset(controllers), True))
            elif kind == "cgroup":
                words = set(options.split(","))
                for names, base in bases.items():
                    if names and set(names.split(",")) <= words:
                        named = names.startswith("name=")
                        found.append(Hierarchy(mount, base, frozenset(() if named else names.split(",")), False))
        if not all(hierarchy.unified for hierarchy in found):
            # Beside v1, liblxc enables nothing of v2 for its containers.
            found = [replace(h, controllers=frozenset()) if h.unified else h for h in found]
        return cls(tuple(found))

    @property
    def unified(self) -> bool:
        """Whether there is cgroup v2 alone."""
        return bool(self.hierarchies) and all(hierarchy.unified for hierarchy in self.hierarchies)

    def holding(self, controller: str) -> Hierarchy | None:
        """The hierarchy with this controller; None if there is none."""
        return next((h for h in self.hierarchies if controller in h.controllers), None)

    def freezing(self) -> Hierarchy | None:
        """The hierarchy whose groups can be frozen: v1's freezer, else v2 (part of its core since Linux 5.2)."""
        return self.holding("freezer") or next((h for h in self.hierarchies if h.unified), None)

    def lxc_key(self, controller: str, item: str) -> str | None:
        """liblxc's name of a setting: ``lxc.cgroup.…`` for v1, ``lxc.cgroup2.…`` for v2; None without the controller.

        v2 has no devices controller to be found in a list: there liblxc attaches a BPF program.
        """
        if controller == "devices" and self.unified:
            return f"lxc.cgroup2.devices.{item}"
        hierarchy = self.holding(controller)
        if hierarchy is None:
            return None
        return f"lxc.cgroup{'2' if hierarchy.unified else ''}.{controller}.{item}"

    def effective_cpus(self, root: Root, group: str) -> tuple[int, ...] | None:
        """CPUs the kernel grants a group; None without a cpuset controller."""
        hierarchy = self.holding("cpuset")
        if hierarchy is None:
            return None
        name = "cpuset.cpus.effective" if hierarchy.unified else "cpuset.effective_cpus"
        return parse_cpu_list(root.read(f"{hierarchy.path(group)}/{name}"))


def _bases(text: str) -> Iterator[tuple[str, str]]:
    """Lines of /proc/1/cgroup as (controllers, path), the path without ``init.scope`` and "" for the top."""
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        path = path.rstrip("/")
        if path.endswith("/init.scope"):
            path = path.removesuffix("/init.scope")
        yield controllers, path
