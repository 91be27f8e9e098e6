# SPDX-License-Identifier: BSD-3-Clause
"""The control groups of a host: v1, v2, or both. Read-only, so that a recorded tree can stand for a host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_icbench.host.root import Root, parse_cpu_list

_MOUNT = "/sys/fs/cgroup"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted hierarchy.

    Attributes:
        base: the path below the mount point under which groups are made; "" for the top.
        controllers: its controllers; empty for systemd's hierarchy and for v2 where v1 is mounted too.
        unified: whether it is cgroup v2.
        root: the group that is mounted, as ``/proc/PID/cgroup`` names it; "" for all of them. In a container of Docker
            (v1) it is that of the container.
    """

    mount: str
    base: str
    controllers: frozenset[str]
    unified: bool
    root: str = ""

    def path(self, group: str) -> str:
        """Returns a group's directory."""
        return f"{self.mount}{self.base}/{group}"

    @property
    def top(self) -> str:
        """The directory in which a session's group is made."""
        return f"{self.mount}{self.base}"

    def is_at_host_top(self, root: Root) -> bool:
        """Whether that is the top of the host's groups, not a container's. It has v1's ``release_agent``, or lacks
        v2's ``cgroup.type``.
        """
        name = "cgroup.type" if self.unified else "release_agent"
        return root.exists(f"{self.top}/{name}") is not self.unified


@dataclass(frozen=True, slots=True)
class Layout:
    """The hierarchies of a host."""

    hierarchies: tuple[Hierarchy, ...]

    @classmethod
    def read(cls, root: Root) -> Layout:
        """Reads /proc/self/mounts, mountinfo and /proc/1/cgroup. Hierarchies outside /sys/fs/cgroup are ignored."""
        bases = dict(_bases(root.read("/proc/1/cgroup") or ""))
        roots = dict(_roots(root.read("/proc/self/mountinfo") or ""))
        hierarchies = []
        for line in (root.read("/proc/self/mounts") or "").splitlines():
            _, mount, kind, options = line.split()[:4]
            if mount != _MOUNT and not mount.startswith(_MOUNT + "/"):
                continue
            above = roots.get(mount, "")
            if kind == "cgroup2":
                base = _below(above, bases.get("", "")) or ""
                controllers = (root.read(f"{mount}{base}/cgroup.controllers") or "").split()
                hierarchies.append(Hierarchy(mount, base, frozenset(controllers), True, above))
            elif kind == "cgroup":
                words = set(options.split(","))
                for names, base in bases.items():
                    if names and set(names.split(",")) <= words:
                        base = _below(above, base) or ""
                        hierarchies.append(Hierarchy(mount, base, _controllers(names), False, above))
        if not all(hierarchy.unified for hierarchy in hierarchies):
            # Where v1 is mounted too, liblxc enables no controller of v2 for its containers.
            hierarchies = [
                replace(hierarchy, controllers=frozenset()) if hierarchy.unified else hierarchy
                for hierarchy in hierarchies
            ]
        return cls(tuple(hierarchies))

    def below(self, base: str) -> Layout:
        """Returns the same hierarchies with one path below which groups are made."""
        return Layout(tuple(replace(hierarchy, base=base) for hierarchy in self.hierarchies))

    def joined(self) -> Layout:
        """Returns the groups as runtimes join them: at one path in every hierarchy, even if pid 1 has several."""
        hierarchy = self.freezing() or self.holding("cpuset")
        return self.below("" if hierarchy is None else hierarchy.base)

    def absolute(self, group: str) -> str:
        """Returns a group of a joined layout as runtimes name it: from the top of every hierarchy."""
        return f"{self.hierarchies[0].base if self.hierarchies else ''}/{group}"

    def groups_of(self, root: Root, pid: int | str) -> tuple[tuple[Hierarchy, str], ...]:
        """Returns the groups of a process, below their mount points; none once it has been reaped.

        A group that is not mounted here is left out.
        """
        lines = [line.split(":", 2) for line in (root.read(f"/proc/{pid}/cgroup") or "").splitlines()]
        return tuple(
            (hierarchy, place or "/")
            for hierarchy in self.hierarchies
            for _, names, path in lines
            if (not names if hierarchy.unified else names and hierarchy.controllers == _controllers(names))
            and (place := _below(hierarchy.root, path)) is not None
        )

    @property
    def unified(self) -> bool:
        """Whether the host has cgroup v2 alone."""
        return bool(self.hierarchies) and all(hierarchy.unified for hierarchy in self.hierarchies)

    def holding(self, controller: str) -> Hierarchy | None:
        """Returns the hierarchy with this controller; None if there is none."""
        return next((hierarchy for hierarchy in self.hierarchies if controller in hierarchy.controllers), None)

    def freezing(self) -> Hierarchy | None:
        """Returns the hierarchy whose groups can be frozen: v1's freezer, else v2 (in its core since Linux 5.2)."""
        return self.holding("freezer") or next((hierarchy for hierarchy in self.hierarchies if hierarchy.unified), None)

    def lxc_key(self, controller: str, item: str) -> str | None:
        """Returns liblxc's name of a setting, None without the controller.

        The name is ``lxc.cgroup.…`` for v1, ``lxc.cgroup2.…`` for v2. v2 does not list a devices controller: there
        liblxc attaches a BPF program.
        """
        if controller == "devices" and self.unified:
            return f"lxc.cgroup2.devices.{item}"
        hierarchy = self.holding(controller)
        if hierarchy is None:
            return None
        return f"lxc.cgroup{'2' if hierarchy.unified else ''}.{controller}.{item}"

    def effective_cpus(self, root: Root, group: str) -> tuple[int, ...] | None:
        """Returns the CPUs that the kernel grants a group; None without a cpuset controller."""
        hierarchy = self.holding("cpuset")
        if hierarchy is None:
            return None
        name = "cpuset.cpus.effective" if hierarchy.unified else "cpuset.effective_cpus"
        return parse_cpu_list(root.read(f"{hierarchy.path(group)}/{name}"))


def _controllers(names: str) -> frozenset[str]:
    """Returns the controllers of a hierarchy of v1; none for one that has a name instead, such as systemd's."""
    return frozenset(() if names.startswith("name=") else names.split(","))


def _below(root: str, path: str) -> str | None:
    """Returns a path relative to a mounted group, "" for that group; None for a path elsewhere."""
    return path.removeprefix(root) if path == root or path.startswith(f"{root}/") or not root else None


def _roots(text: str) -> Iterator[tuple[str, str]]:
    """Yields the mount points of /proc/self/mountinfo, with what of its file system is mounted, "" for all."""
    for line in text.splitlines():
        _, _, _, root, mount, *_ = line.split()
        yield mount, root.rstrip("/")


def _bases(text: str) -> Iterator[tuple[str, str]]:
    """Yields the lines of /proc/1/cgroup as (controllers, path): the path without ``init.scope``, "" for the top."""
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        path = path.rstrip("/")
        if path.endswith("/init.scope"):
            path = path.removesuffix("/init.scope")
        yield controllers, path
