# SPDX-License-Identifier: BSD-3-Clause
"""The host's CPUs: cores, siblings, NUMA nodes, and which of them this process may use."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.root import Root, format_cpu_list, parse_cpu_list

_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"


@dataclass(frozen=True, slots=True)
class Cpu:
    """A logical CPU.

    Attributes:
        core: physical core within its socket; CPUs with the same socket and core are siblings (SMT).
        socket: physical package.
        siblings: logical CPUs of its physical core, itself included.
        isolated: whether it was taken from the scheduler's balancing at boot (isolcpus).
        nohz_full: whether it has no timer tick while one task runs.
        allowed: whether this process may use it (affinity and cpuset).
        l3: the first CPU that shares its L3 cache; None if unknown.
        kind: 0 for the fastest kind of cores of the host, 1 for the next.
    """

    id: int
    core: int
    socket: int
    node: int
    siblings: tuple[int, ...]
    isolated: bool
    nohz_full: bool
    online: bool
    allowed: bool
    l3: int | None = None
    kind: int = 0

    @property
    def usable(self) -> bool:
        """Whether it is online and allowed."""
        return self.online and self.allowed


@dataclass(frozen=True, slots=True)
class Topology:
    """The CPUs of a host, by number."""

    cpus: tuple[Cpu, ...]

    @classmethod
    def read(cls, root: Root | None = None) -> Topology:
        """Reads sysfs. The allowed CPUs are this process' affinity or, in a recorded tree, ``Cpus_allowed_list``.

        Raises ProvisionError if sysfs has none of these, as where something numbers the CPUs of a container anew.
        """
        root = root or Root()
        present = parse_cpu_list(root.read(f"{_CPU}/present") or root.read(f"{_CPU}/online") or "0")
        online_text = root.read(f"{_CPU}/online")
        online = frozenset(parse_cpu_list(online_text) if online_text else present)
        isolated = frozenset(parse_cpu_list(root.read(f"{_CPU}/isolated")))
        tickless = _tickless(root)
        allowed = _with_isolated(allowed_cpus(root, present), isolated, _granted(root))
        if not allowed & online & {*present}:
            raise ProvisionError(
                f"this process may use CPUs {format_cpu_list(allowed)}, and {_CPU} has {format_cpu_list(online)}"
                " online: lxcfs or a sandbox numbers them anew; start pytest where /sys is the host's"
            )
        nodes, kinds = _nodes(root), _kinds(root, present)
        cpus = []
        for cpu in present:
            topology = f"{_CPU}/cpu{cpu}/topology"
            siblings = root.read(f"{topology}/core_cpus_list") or root.read(f"{topology}/thread_siblings_list")
            core, socket = root.read_int(f"{topology}/core_id"), root.read_int(f"{topology}/physical_package_id")
            cpus.append(
                Cpu(
                    id=cpu,
                    core=cpu if core is None else core,
                    socket=0 if socket is None else max(0, socket),
                    node=nodes.get(cpu, 0),
                    # Some sandboxes show the siblings of a CPU that they do not show.
                    siblings=tuple(sibling for sibling in parse_cpu_list(siblings) if sibling in present) or (cpu,),
                    isolated=cpu in isolated,
                    nohz_full=cpu in tickless,
                    online=cpu in online,
                    allowed=cpu in allowed,
                    l3=_l3(root, cpu),
                    kind=kinds.get(cpu, 0),
                )
            )
        return cls(tuple(cpus))

    def __getitem__(self, cpu: int) -> Cpu:
        """Returns the CPU of that number. Raises KeyError."""
        for candidate in self.cpus:
            if candidate.id == cpu:
                return candidate
        raise KeyError(cpu)

    @property
    def usable(self) -> tuple[Cpu, ...]:
        """The CPUs that are online and allowed."""
        return tuple(cpu for cpu in self.cpus if cpu.usable)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The NUMA nodes with a usable CPU."""
        return tuple(sorted({cpu.node for cpu in self.usable}))

    @property
    def smt(self) -> bool:
        """Whether a usable CPU shares its core with another CPU that is online."""
        return any(
            len([sibling for sibling in cpu.siblings if sibling != cpu.id and self[sibling].online]) > 0
            for cpu in self.usable
        )

    def cores(self, node: int | None = None) -> tuple[tuple[Cpu, ...], ...]:
        """Returns the physical cores, of a NUMA node or of all, each as its usable CPUs; ordered by first CPU."""
        groups: dict[tuple[int, ...], list[Cpu]] = {}
        for cpu in self.usable:
            if node is None or cpu.node == node:
                groups.setdefault(cpu.siblings, []).append(cpu)
        return tuple(tuple(group) for group in groups.values())


def _nodes(root: Root) -> dict[int, int]:
    """Returns the NUMA node of each CPU."""
    nodes = {}
    for name in root.list(_NODE):
        if name.startswith("node") and name[4:].isdigit():
            for cpu in parse_cpu_list(root.read(f"{_NODE}/{name}/cpulist")):
                nodes[cpu] = int(name[4:])
    return nodes


def _l3(root: Root, cpu: int) -> int | None:
    """Returns the first CPU that shares a CPU's L3 cache; None without one."""
    for cache in root.glob(f"{_CPU}/cpu{cpu}/cache/index*"):
        if root.read(f"{cache}/level") == "3":
            return min(parse_cpu_list(root.read(f"{cache}/shared_cpu_list")), default=None)
    return None


def _kinds(root: Root, present: tuple[int, ...]) -> dict[int, int]:
    """Returns the kind of each CPU of a hybrid processor, 0 for the fastest, as kernels for Intel and Arm report it."""
    kinds = {}
    for kind, name in enumerate(("cpu_core", "cpu_atom", "cpu_lowpower")):
        kinds.update(dict.fromkeys(parse_cpu_list(root.read(f"/sys/devices/{name}/cpus")), kind))
    if kinds:
        return kinds
    capacities = {cpu: root.read_int(f"{_CPU}/cpu{cpu}/cpu_capacity") or 0 for cpu in present}
    fastest_first = sorted(set(capacities.values()), reverse=True)
    return {cpu: fastest_first.index(capacity) for cpu, capacity in capacities.items()}


def _tickless(root: Root) -> frozenset[int]:
    """Returns the CPUs without the timer tick while one task runs."""
    text = root.read(f"{_CPU}/nohz_full")
    try:
        return frozenset(parse_cpu_list(text))
    except ValueError:  # "(null)" where the kernel has the option and no parameter was given
        return frozenset()


def _granted(root: Root) -> frozenset[int]:
    """Returns the CPUs that this process' cpuset grants, regardless of its affinity; empty if unknown."""
    for line in (root.read("/proc/self/cgroup") or "").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "cpuset":
            return frozenset(parse_cpu_list(root.read(f"/sys/fs/cgroup/cpuset{group}/cpuset.effective_cpus")))
        if controllers == "":  # cgroup v2; a group without the controller has its parent's CPUs
            parts = group.strip("/").split("/")
            for depth in range(len(parts), -1, -1):
                path = "/".join(["/sys/fs/cgroup", *parts[:depth]])
                if text := root.read(f"{path}/cpuset.cpus.effective"):
                    return frozenset(parse_cpu_list(text))
    return frozenset()


def _with_isolated(affinity: frozenset[int], isolated: frozenset[int], granted: frozenset[int]) -> frozenset[int]:
    """Adds the isolated CPUs to an affinity: processes start without them, but may use them.

    An affinity that lacks further CPUs was chosen by the user and is not changed.
    """
    return affinity | (isolated & granted) if affinity >= granted - isolated else affinity


def allowed_cpus(root: Root, present: tuple[int, ...]) -> frozenset[int]:
    """Returns the CPUs that this process may use."""
    if root.live:
        return frozenset(os.sched_getaffinity(0))
    for line in (root.read("/proc/self/status") or "").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return frozenset(parse_cpu_list(line.partition(":")[2]))
    return frozenset(present)
