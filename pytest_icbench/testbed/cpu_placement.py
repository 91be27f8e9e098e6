# SPDX-License-Identifier: BSD-3-Clause
"""The CPU of each polling thread. Pure: the topology is an argument.

``dedicated`` gives every poller (switch workers, then endpoints) a separate physical core, all on one NUMA node, and
leaves their siblings idle. ``cooperative`` is for machines with fewer cores: every worker keeps a separate core, and
the endpoints share the rest of the node and yield. Placements are never compared with each other.

In both, isolated cores come first, then the cores of one L3 cache (``core_order``). The remaining CPUs are ``service``:
for control threads and the harness, which sleep most of the time.
If the cores only just suffice nothing is left over: ``service`` is then an idle sibling of the first sender, or its
very CPU. A sender that loses a time slice offers a little less; a receiver or a worker would lose packets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from pytest_icbench.errors import Unsupported
from pytest_icbench.host.resource.cpu import Cpu, Topology
from pytest_icbench.host.root import format_cpu_list
from pytest_icbench.model.placement import Placement, Policy

Core = tuple[Cpu, ...]
#: Defects of a core, other than its place, the weightiest first.
Rank = tuple[bool, bool, bool]
#: What pollers should share: the kind of core and the L3 cache.
Domain = tuple[int, int | None]


def find_domain(core: Core) -> Domain:
    """Returns the kind of a core, and the first CPU of its L3 cache (None where that is not known)."""
    return (core[0].kind, core[0].l3)


def cores_by_node(topology: Topology, count: int, near: Domain | None = None) -> dict[int, list[Core]]:
    """Returns the cores of each NUMA node, the best for ``count`` pollers first.

    ``near``: domain of the first cores, as far as isolation allows; None for the best one.
    """

    ranks = {core[0].id: _rank(topology, core) for core in topology.cores()}

    def order(cores: Sequence[Core]) -> list[Core]:
        homes = [near] if near is not None else dict.fromkeys(map(find_domain, cores))
        orders = (_from_home(cores, ranks, home) for home in homes)
        return max(orders, key=lambda order: _fit(order, ranks, max(count, 1)))

    return {node: order(topology.cores(node)) for node in topology.nodes}


def best_node(nodes: dict[int, list[Core]], count: int) -> int:
    """Returns the node with most of ``count`` cores.

    Among equal ones, more isolated cores come first, then fewer and faster kinds, fewer L3 caches, a core to spare, and
    the lower number. ``nodes``: as of ``cores_by_node``.
    """
    return max(sorted(nodes), key=lambda node: (*_together(nodes[node], count), min(len(nodes[node]), count + 1)))


def describe_place(topology: Topology, pollers: Sequence[int], count: int, *, given: bool = False) -> str:
    """Describes the L3 caches and NUMA nodes of pollers' CPUs, and the reason if they are several.

    Args:
        count: number of cores that the pollers would take, one each.
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
        text = f"{len(caches)} L3s of node {node}: {_explain_split(topology, cpus, count, given)}"
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
    """Returns cores in order: isolated ones first, then those in ``home``, then those in the largest other domains."""
    isolated, every = Counter(find_domain(core) for core in cores if _isolated(core)), Counter(map(find_domain, cores))

    def key(core: Core) -> tuple[object, ...]:
        place = find_domain(core)
        far = (place != home, place[0] != home[0], -isolated[place], -every[place], place[0], place[1] or 0)
        return (not _isolated(core), *far, *ranks[core[0].id], core[0].id)

    return sorted(cores, key=key)


def _together(cores: Sequence[Core], count: int) -> tuple[int, ...]:
    """Rates how well the first ``count`` cores go together: the largest is best."""
    taken = cores[:count]
    kinds, caches = {core[0].kind for core in taken}, {core[0].l3 for core in taken}
    slow = sum(core[0].kind for core in taken)
    return (len(taken), sum(map(_isolated, taken)), -len(kinds), -len(caches), -slow)


def _fit(cores: Sequence[Core], ranks: Mapping[int, Rank], count: int) -> tuple[int, ...]:
    """Rates the first ``count`` cores of a node: the largest is best."""
    taken = cores[:count]
    at_home = sum(find_domain(core) == find_domain(taken[0]) for core in taken)
    worse = [ranks[core[0].id] for core in taken]
    each = [-sum(rank[index] for rank in worse) for index in range(3)]
    # The first of them is a worker of the switch.
    return (*_together(cores, count), at_home, *each, *(-bad for bad in worse[0]))


def _explain_split(topology: Topology, cpus: Sequence[Cpu], count: int, given: bool) -> str:
    """Returns why pollers of one node have several L3 caches."""
    rooms = Counter(core[0].l3 for core in topology.cores(cpus[0].node))
    if max(rooms.values()) < count:
        return f"none has room for {count} cores"
    if given:
        return "the topology gives the endpoints' CPUs"
    return f"{'isolated cores' if any(cpu.isolated for cpu in cpus) else 'cores of one kind'} come first"


def _kinds(topology: Topology, cpus: Sequence[Cpu]) -> str:
    """Returns the kinds of cores of CPUs, where a host has several; empty otherwise."""
    kinds = {cpu.kind for cpu in cpus}
    if len({cpu.kind for cpu in topology.cpus}) == 1:
        return ""
    return ", fast and slow cores" if len(kinds) > 1 else ", slow cores" if max(kinds) else ", fast cores"


#: Frames after which a sender yields where endpoints share a CPU: half the default ring of 256, which a sleeping
#: receiver's ring can hold. On a switch quick enough never to let the ring fill, a sender that yields on a full
#: ring only loses 40 to 80 %. Alternating runs on 2 cores, 64-byte frames, all in one cpu group (see node/cgroups.py):
#: through testpmd 6.5 Mpps at 128 against 5.0 at 64, through OVS 5.3 against 4.2, below 0.1 % lost at either.
YIELD_EVERY_FRAMES = 128


def join_placements(here: Placement, there: Placement, away: Sequence[int]) -> Placement:
    """Returns the placement of a case on two hosts: endpoints of both by index, everything else of this host.

    ``away``: indexes of the endpoints on the second host, in the order of ``there.endpoints``.
    """
    local, remote = iter(here.endpoints), iter(there.endpoints)
    count = len(here.endpoints) + len(there.endpoints)
    endpoints = tuple(next(remote) if index in away else next(local) for index in range(count))
    policy: Policy = "dedicated" if here.policy == there.policy == "dedicated" else "cooperative"
    yield_every = max(here.yield_every, there.yield_every)
    there = replace(there, endpoints=endpoints)
    return replace(here, policy=policy, endpoints=endpoints, yield_every=yield_every, away=tuple(away), there=there)


def plan(
    topology: Topology, *, workers: int, endpoints: int, policy: Literal["auto", "dedicated", "cooperative"]
) -> Placement:
    """Places one case.

    Args:
        workers: polling threads of the switch, 0 for a kernel switch.
        endpoints: twice the number of pairs.
        policy: ``auto`` is ``dedicated`` where that leaves a core for the rest. For a whole session ask
            ``resolve_auto`` once.

    Raises Unsupported: there are too few cores. The message says how many are needed and missing, and the remedy.
    """
    if policy == "auto":
        policy = resolve_auto(topology, [(workers, endpoints)])
    if policy == "dedicated":
        return _dedicated(topology, workers, endpoints)
    return _cooperative(topology, workers, endpoints)


def plan_given(
    topology: Topology, *, workers: int, endpoints: Sequence[int], policy: Literal["auto", "dedicated", "cooperative"]
) -> Placement:
    """Places one case whose endpoints' CPUs are given: the switch and its service get the rest.

    Args:
        workers: polling threads of the switch, 0 for a kernel switch.
        endpoints: CPU of each endpoint, by index.

    Raises Unsupported: a CPU cannot be used, is shared in spite of ``dedicated``, or no CPU is left for a worker.
    """
    usable = {cpu.id for cpu in topology.usable}
    if (unusable := next((cpu for cpu in endpoints if cpu not in usable), None)) is not None:
        raise Unsupported(
            f"the topology gives an endpoint CPU {unusable}, which is not online or not allowed to this process:"
            f" name one of {format_cpu_list(sorted(usable))}"
        )
    if policy != "auto":
        return _place_given(topology, workers, endpoints, policy)
    with suppress(Unsupported):
        placement = _place_given(topology, workers, endpoints, "dedicated")
        if not set(placement.service) & {*placement.switch, *placement.endpoints}:
            return placement
    return _place_given(topology, workers, endpoints, "cooperative")


def _place_given(topology: Topology, workers: int, endpoints: Sequence[int], policy: Policy) -> Placement:
    node = topology[endpoints[0]].node
    if policy == "dedicated" and len({topology[cpu].siblings for cpu in endpoints}) < len(endpoints):
        raise Unsupported(
            "dedicated placement gives each endpoint a physical core, and the topology lets two share one: change its"
            " cpus, or use --icbench-placement cooperative"
        )
    left = _free_cpus(topology, workers, endpoints, policy)
    if len(left) < workers:
        raise Unsupported(
            f"the switch's {_count(workers, 'worker')} {'needs a CPU' if workers == 1 else 'need CPUs'} besides the"
            f" endpoints' ({format_cpu_list(sorted(set(endpoints)))}), and {len(left) or 'none'} can be used: change"
            " the topology's cpus, or use fewer switch cores"
        )
    switch = tuple(left[:workers])
    service = _service(topology, node, [*switch, *endpoints], endpoints[0])
    yields = YIELD_EVERY_FRAMES if len(set(endpoints)) < len(endpoints) else 0
    words = describe_place(topology, [*switch, *endpoints], workers + len(endpoints), given=True)
    return Placement(policy, switch, tuple(endpoints), service, node, yields, where=words)


def _free_cpus(topology: Topology, workers: int, endpoints: Sequence[int], policy: Policy) -> list[int]:
    """Returns the CPUs without an endpoint, best first: one of each unused core, then the rest if ``cooperative``."""
    node = topology[endpoints[0]].node
    taken = {sibling for cpu in endpoints for sibling in topology[cpu].siblings}
    # The endpoints' node first, for the memory that they share.
    near, count = find_domain((topology[endpoints[0]],)), workers + len(endpoints)
    order = sorted(cores_by_node(topology, count, near).items(), key=lambda item: item[0] != node)
    cores = [core for _, node_cores in order for core in node_cores]
    left = [core[0].id for core in cores if not taken & {cpu.id for cpu in core}]
    if policy == "cooperative":
        left += [cpu for cpu in _threads(cores) if cpu not in (*left, *endpoints)]
    return left


def add_noisy_neighbour(topology: Topology, placement: Placement, count: int, *, apart: bool) -> Placement | None:
    """Returns a placement with CPUs for a noisy neighbour, each of an unused core; None if there are too few.

    Args:
        count: of these CPUs.
        apart: they share no L3 cache with the path; otherwise they share it if they can.
    """
    path = {*placement.switch, *placement.local, *placement.functions}
    taken = {sibling for cpu in path for sibling in topology[cpu].siblings}
    caches = {topology[cpu].l3 for cpu in path} | {None}
    free = [core[0] for core in topology.cores() if not taken & {cpu.id for cpu in core}]
    ranked = sorted(free, key=lambda cpu: (cpu.l3 not in caches, cpu.node != placement.numa_node, cpu.id))
    cpus = [cpu.id for cpu in ranked if not apart or cpu.l3 not in caches][:count]
    if len(cpus) < count:
        return None
    service = _service(topology, placement.numa_node, [*path, *cpus], placement.endpoints[0])
    return replace(placement, noisy_neighbour=tuple(cpus), service=service)


def resolve_auto(topology: Topology, needs: Iterable[tuple[int, int]]) -> Policy:
    """Returns the placement that every case can have: ``dedicated`` if all can, else ``cooperative``.

    ``dedicated`` is chosen only if a core is left for the rest. Without it the harness and the control threads would
    take time from an endpoint in every launch. ``needs``: (workers, endpoints) of each selected case.
    """
    by_node = [len(topology.cores(node)) for node in topology.nodes]
    most, total = max(by_node, default=0), sum(by_node)
    roomy = all(workers + endpoints <= min(most, total - 1) for workers, endpoints in needs)
    return "dedicated" if roomy else "cooperative"


def _share(slots: Sequence[int], endpoints: int) -> tuple[int, ...]:
    """Gives endpoints the CPUs of ``slots`` in turn, the two of a pair different ones if there are several.

    Each round begins one CPU further, so that senders and receivers mix. A core with both costs every pair the same,
    while one core of senders and one of receivers would together be as slow as the slower kind.
    The first sender gets the last slot, which is the worst, and may have to share it with ``service``.
    """
    used = list(slots[:endpoints])[::-1]
    return tuple(used[(index + index // len(used)) % len(used)] for index in range(endpoints))


def _service(topology: Topology, node: int, pollers: Sequence[int], sender: int | None) -> tuple[int, ...]:
    """Returns CPUs for threads that sleep most of the time: of unused cores if there are any, on this node if possible.

    Args:
        pollers: CPUs that are taken.
        sender: CPU of the first sender, None without endpoints.
    """
    taken = {sibling for cpu in pollers for sibling in topology[cpu].siblings}
    free = [cpu for cpu in topology.usable if cpu.id not in taken]
    for here in (True, False):
        cpus = tuple(cpu.id for cpu in free if (cpu.node == node) is here and not cpu.isolated)
        if cpus:
            return cpus
    if free:  # isolated ones only: the kernel does not balance there, so it is one
        return (min(free, key=lambda cpu: (cpu.node != node, cpu.id)).id,)
    shared = pollers[-1] if sender is None else sender
    idle = tuple(cpu for cpu in topology[shared].siblings if cpu not in pollers and topology[cpu].usable)
    return idle or (shared,)


def _dedicated(topology: Topology, workers: int, endpoints: int) -> Placement:
    count = workers + endpoints
    nodes = cores_by_node(topology, count)
    node = best_node(nodes, count) if nodes else 0
    cores = nodes.get(node, [])
    if len(cores) < count:
        raise Unsupported(
            f"dedicated placement needs {_count(count, 'physical core')} on one NUMA node"
            f" ({_count(workers, 'switch worker')} + {_count(endpoints, 'endpoint')}),"
            f" {_there(len(cores), nodes, node)} and {_missing(count - len(cores))}:"
            " use --icbench-placement cooperative, fewer pairs or switch cores, or a larger machine"
        )
    chosen = [core[0].id for core in cores[:count]]
    switch, slots = tuple(chosen[:workers]), chosen[workers:]
    places = _share(slots, endpoints) if endpoints else ()
    service = _service(topology, node, chosen, places[0] if places else None)
    return Placement("dedicated", switch, places, service, node, 0, where=describe_place(topology, chosen, count))


def _cooperative(topology: Topology, workers: int, endpoints: int) -> Placement:
    least, count = workers + (1 if endpoints else 0), workers + endpoints
    nodes = cores_by_node(topology, count)
    node = best_node(nodes, count) if nodes else 0
    if nodes and len(nodes[node]) < least:
        # No node has the cores, so siblings have to suffice (two CPUs of a cloud are often one core).
        node = max(sorted(nodes), key=lambda number: sum(len(core) for core in nodes[number]))
    cores = nodes.get(node, [])
    threads = _threads(cores)
    if len(threads) < least:
        raise Unsupported(
            f"cooperative placement needs {_count(least, 'CPU')} on one NUMA node"
            f" ({_count(workers, 'switch worker')} + 1 for the endpoints to share),"
            f" {_there(len(threads), nodes, node)} and"
            f" {_missing(least - len(threads))}: use fewer switch cores, or a larger machine"
        )
    switch = tuple(threads[:workers])
    rest = _threads(cores[workers:]) if len(cores) >= least else threads[workers:]
    places = _share(rest, endpoints) if endpoints else ()
    service = _service(topology, node, [*switch, *places], places[0] if places else None)
    yields = YIELD_EVERY_FRAMES if len(set(places)) < len(places) else 0
    words = describe_place(topology, [*switch, *places], count)
    return Placement("cooperative", switch, places, service, node, yields, where=words)


def _threads(cores: Sequence[Core]) -> list[int]:
    """Returns the CPUs of cores: the first of each, then the second of each, and so on."""
    depth = max((len(core) for core in cores), default=0)
    return [core[level].id for level in range(depth) for core in cores if level < len(core)]


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _there(number: int, nodes: dict[int, list[Core]], node: int) -> str:
    where = f"node {node} has" if len(nodes) > 1 else "this process may use"
    return f"{where} {number if number else 'none'}"


def _missing(number: int) -> str:
    return f"{number} {'is' if number == 1 else 'are'} missing"
