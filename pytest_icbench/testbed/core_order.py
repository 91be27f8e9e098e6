# SPDX-License-Identifier: BSD-3-Clause
"""Which physical cores pollers take first, and words for where they are. Pure.

Isolated cores come before all others. Among equally many, pollers are on cores of one kind, then in one L3 cache: a
cache line takes several times as long between two. Only then count whether cores are tickless, whether others use
their siblings, and whether the kernel does its housekeeping there (CPU 0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pytest_icbench.host.resource.cpu import Cpu, Topology
from pytest_icbench.host.root import format_cpu_list

Core = tuple[Cpu, ...]
#: What makes a core worse apart from its place, the weightiest first.
Rank = tuple[bool, bool, bool]
#: What pollers are to have in common: the kind of core and the L3 cache.
Domain = tuple[int, int | None]


def domain(core: Core) -> Domain:
    """Returns the kind of a core, and the first CPU of its L3 cache (None where that is not known)."""
    return (core[0].kind, core[0].l3)


def cores_by_node(topology: Topology, count: int, near: Domain | None = None) -> dict[int, list[Core]]:
    """Returns the cores of each NUMA node, the best for so many pollers first.

    Args:
        near: where the first of them are to be, as far as isolation allows; None for wherever it is best.
    """

    ranks = {core[0].id: _rank(topology, core) for core in topology.cores()}

    def order(cores: Sequence[Core]) -> list[Core]:
        homes = [near] if near is not None else dict.fromkeys(map(domain, cores))
        orders = (_from_home(cores, ranks, home) for home in homes)
        return max(orders, key=lambda order: _fit(order, ranks, max(count, 1)))

    return {node: order(topology.cores(node)) for node in topology.nodes}


def best_node(nodes: dict[int, list[Core]], count: int) -> int:
    """Returns the node with most of so many cores.

    Among equal ones, more isolated cores come first, then fewer and faster kinds, fewer L3 caches, a core to spare,
    and the lower number.

    Args:
        nodes: as of ``cores_by_node``.
    """
    return max(sorted(nodes), key=lambda node: (*_together(nodes[node], count), min(len(nodes[node]), count + 1)))


def where(topology: Topology, pollers: Sequence[int], count: int, *, given: bool = False) -> str:
    """Returns in words which L3 caches and NUMA nodes the CPUs of pollers are of, and why they share none.

    Args:
        count: of the cores that the pollers would take, each its own.
        given: whether the user chose the endpoints' CPUs.
    """
    cpus = [topology[cpu] for cpu in pollers]
    nodes, caches = {cpu.node for cpu in cpus}, {cpu.l3 for cpu in cpus}
    if not cpus:
        return ""
    if len(nodes) > 1:
        return f"{len(nodes)} NUMA nodes"
    node = cpus[0].node
    if caches == {None}:
        text = f"node {node}, L3 unknown"
    elif len(caches) == 1:
        text = f"one L3 ({format_cpu_list([cpu.id for cpu in topology.cpus if cpu.l3 in caches])})"
    else:
        text = f"{len(caches)} L3s of node {node}: {_why_apart(topology, cpus, count, given)}"
    return text + _kinds(topology, cpus)


def _rank(topology: Topology, core: Core) -> Rank:
    return (
        not all(cpu.nohz_full for cpu in core),
        # A sibling that this process may not use may be busy with something else.
        any(topology[sibling].online and not topology[sibling].allowed for sibling in core[0].siblings),
        0 in core[0].siblings,
    )


def _isolated(core: Core) -> bool:
    return all(cpu.isolated for cpu in core)


def _from_home(cores: Sequence[Core], ranks: Mapping[int, Rank], home: Domain) -> list[Core]:
    """Returns cores with those of a domain first, then those of the largest others; isolated ones before all."""
    isolated, every = Counter(domain(core) for core in cores if _isolated(core)), Counter(map(domain, cores))

    def key(core: Core) -> tuple[object, ...]:
        place = domain(core)
        far = (place != home, place[0] != home[0], -isolated[place], -every[place], place[0], place[1] or 0)
        return (not _isolated(core), *far, *ranks[core[0].id], core[0].id)

    return sorted(cores, key=key)


def _together(cores: Sequence[Core], count: int) -> tuple[int, ...]:
    """Returns how well the first of so many cores go together: the greatest is best."""
    taken = cores[:count]
    kinds, caches = {core[0].kind for core in taken}, {core[0].l3 for core in taken}
    slow = sum(core[0].kind for core in taken)
    return (len(taken), sum(map(_isolated, taken)), -len(kinds), -len(caches), -slow)


def _fit(cores: Sequence[Core], ranks: Mapping[int, Rank], count: int) -> tuple[int, ...]:
    """Returns how good the first of so many cores of a node are: the greatest is best."""
    taken = cores[:count]
    at_home = sum(domain(core) == domain(taken[0]) for core in taken)
    worse = [ranks[core[0].id] for core in taken]
    each = [-sum(rank[index] for rank in worse) for index in range(3)]
    # The first of them is a worker of the switch.
    return (*_together(cores, count), at_home, *each, *(-bad for bad in worse[0]))


def _why_apart(topology: Topology, cpus: Sequence[Cpu], count: int, given: bool) -> str:
    """Returns why pollers of one node have several L3 caches."""
    rooms = Counter(core[0].l3 for core in topology.cores(cpus[0].node))
    if max(rooms.values()) < count:
        return f"none has room for {count} cores"
    if given:
        return "the topology gives the endpoints' CPUs"
    return f"{'isolated cores' if any(cpu.isolated for cpu in cpus) else 'cores of one kind'} come first"


def _kinds(topology: Topology, cpus: Sequence[Cpu]) -> str:
    """Returns the kinds of cores that CPUs are of, where a host has several; empty otherwise."""
    kinds = {cpu.kind for cpu in cpus}
    if len({cpu.kind for cpu in topology.cpus}) == 1:
        return ""
    return ", fast and slow cores" if len(kinds) > 1 else ", slow cores" if max(kinds) else ", fast cores"
