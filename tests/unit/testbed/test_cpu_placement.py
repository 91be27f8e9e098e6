# SPDX-License-Identifier: BSD-3-Clause
"""The CPU planner: examples on shapes of real machines, and what must hold on any."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.errors import Unsupported
from pytest_icbench.host.resource.cpu import Cpu, Topology
from pytest_icbench.model.placement import Placement
from pytest_icbench.testbed.cpu_placement import YIELD_EVERY_FRAMES, plan, resolve_auto


def machine(
    *,
    nodes: int = 1,
    cores: int = 2,
    threads: int = 1,
    isolated: Collection[int] = (),
    allowed: Collection[int] | None = None,
    cache: int | None = None,
) -> Topology:
    """CPUs numbered as Linux does it on Intel: first threads of all cores, node after node, then the second threads.

    Args:
        cache: cores of an L3 cache.
    """
    per_thread = nodes * cores
    cpus = []
    for number in range(per_thread * threads):
        core = number % per_thread
        cpus.append(
            Cpu(
                id=number,
                core=core % cores,
                socket=core // cores,
                node=core // cores,
                siblings=tuple(core + level * per_thread for level in range(threads)),
                isolated=number in isolated,
                nohz_full=False,
                online=True,
                allowed=allowed is None or number in allowed,
                l3=None if cache is None else core - core % cores % cache,
            )
        )
    return Topology(tuple(cpus))


def without(topology: Topology, offline: Collection[int]) -> Topology:
    """The same CPUs, some of them offline."""
    return Topology(tuple(replace(cpu, online=cpu.id not in offline) for cpu in topology.cpus))


def test_two_cores_have_room_for_two_applications_and_nothing_between() -> None:
    placement = plan(machine(cores=2), workers=0, endpoints=2, policy="dedicated")
    assert placement == Placement("dedicated", (), (0, 1), (0,), 0, 0)


def test_auto_is_not_dedicated_without_a_core_for_the_rest() -> None:
    placement = plan(machine(cores=2), workers=0, endpoints=2, policy="auto")
    assert (placement.policy, placement.shared, placement.yield_every) == ("cooperative", False, 0)
    assert plan(machine(cores=3), workers=0, endpoints=2, policy="auto").policy == "dedicated"
    # The core for the rest can be on the other node.
    assert resolve_auto(machine(nodes=2, cores=2), [(0, 2)]) == "dedicated"


def test_two_cores_share_one_among_the_endpoints_of_a_polling_switch() -> None:
    placement = plan(machine(cores=2), workers=1, endpoints=2, policy="auto")
    assert placement == Placement("cooperative", (1,), (0, 0), (0,), 0, YIELD_EVERY_FRAMES)


def test_three_cores_just_suffice_and_the_harness_shares_the_senders() -> None:
    placement = plan(machine(cores=3), workers=1, endpoints=2, policy="dedicated")
    assert placement.switch == (1,)
    assert placement.endpoints == (0, 2)
    assert placement.service == (0,)


def test_a_kernel_switch_has_no_worker() -> None:
    placement = plan(machine(cores=8), workers=0, endpoints=4, policy="dedicated")
    assert placement.switch == ()
    assert len(set(placement.endpoints)) == 4


def test_four_cores_leave_cpu_0_to_the_harness() -> None:
    assert plan(machine(cores=4), workers=1, endpoints=2, policy="dedicated").service == (0,)


def test_a_just_sufficient_smt_machine_gives_the_harness_an_idle_sibling() -> None:
    placement = plan(machine(cores=3, threads=2), workers=1, endpoints=2, policy="dedicated")
    assert placement.service == (placement.endpoints[0] + 3,)


def test_a_cloud_machine_whose_two_cpus_are_one_core_can_still_cooperate() -> None:
    placement = plan(machine(cores=1, threads=2), workers=1, endpoints=2, policy="cooperative")
    assert placement.switch == (0,)
    assert placement.endpoints == (1, 1)


def test_cooperative_endpoints_use_siblings_only_when_cores_run_out() -> None:
    topology = machine(cores=3, threads=2)
    assert set(plan(topology, workers=1, endpoints=2, policy="cooperative").endpoints) == {0, 2}
    assert set(plan(topology, workers=1, endpoints=4, policy="cooperative").endpoints) == {0, 2, 3, 5}


def test_cooperative_pairs_mix_senders_and_receivers() -> None:
    placement = plan(machine(cores=3), workers=1, endpoints=4, policy="cooperative")
    assert placement.endpoints == (0, 2, 2, 0)


def test_isolated_cores_come_first_and_the_harness_keeps_off_them() -> None:
    topology = machine(cores=8, isolated=(2, 3, 4))
    placement = plan(topology, workers=1, endpoints=2, policy="dedicated")
    assert {*placement.switch, *placement.endpoints} == {2, 3, 4}
    assert set(placement.service) == {0, 1, 5, 6, 7}


def test_the_node_with_the_isolated_cores_is_chosen() -> None:
    assert plan(machine(nodes=2, cores=4, isolated=(5, 6, 7)), workers=1, endpoints=2, policy="auto").numa_node == 1


def test_a_node_with_a_core_to_spare_is_preferred() -> None:
    topology = machine(nodes=2, cores=4, allowed=(1, 2, 3, 4, 5, 6, 7))
    assert plan(topology, workers=1, endpoints=2, policy="dedicated").numa_node == 1


def test_one_node_is_not_filled_up_from_another() -> None:
    with pytest.raises(Unsupported, match=r"needs 5 physical cores on one NUMA node .*node 0 has 4 and 1 is missing"):
        plan(machine(nodes=2, cores=4), workers=1, endpoints=4, policy="dedicated")


def test_only_allowed_and_online_cpus_are_used() -> None:
    topology = without(machine(cores=6, allowed=(1, 2, 3, 4)), (3,))
    placement = plan(topology, workers=1, endpoints=2, policy="dedicated")
    assert {*placement.switch, *placement.endpoints} == {1, 2, 4}


def test_the_refusal_names_the_sum_and_the_remedy() -> None:
    with pytest.raises(Unsupported) as refusal:
        plan(machine(cores=2), workers=1, endpoints=4, policy="dedicated")
    assert str(refusal.value) == (
        "dedicated placement needs 5 physical cores on one NUMA node (1 switch worker + 4 endpoints), this process"
        " may use 2 and 3 are missing:"
        " use --icbench-placement cooperative, fewer pairs or switch cores, or a larger machine"
    )


def test_cooperation_has_a_least_size_too() -> None:
    with pytest.raises(Unsupported, match=r"needs 2 CPUs .*\(1 switch worker \+ 1 for the endpoints to share\).*use 1"):
        plan(machine(cores=4, allowed=(2,)), workers=1, endpoints=2, policy="cooperative")


def test_a_session_gets_what_every_case_can_have() -> None:
    topology = machine(cores=4)
    assert resolve_auto(topology, [(1, 2), (0, 2)]) == "dedicated"
    assert resolve_auto(topology, [(1, 2), (0, 4)]) == "cooperative"
    assert resolve_auto(topology, [(1, 2), (1, 4)]) == "cooperative"
    assert resolve_auto(topology, []) == "dedicated"


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    nodes, cores, threads = draw(st.integers(1, 3)), draw(st.integers(1, 6)), draw(st.integers(1, 2))
    every = list(range(nodes * cores * threads))
    some = st.sets(st.sampled_from(every))
    found = machine(
        nodes=nodes,
        cores=cores,
        threads=threads,
        isolated=draw(some),
        allowed=draw(st.one_of(st.just(every), some)),
        cache=draw(st.none() | st.integers(1, 4)),
    )
    return without(found, draw(st.one_of(st.just(set[int]()), some)))


needs = st.tuples(st.integers(0, 4), st.integers(1, 4).map(lambda pairs: 2 * pairs))


def attempt(topology: Topology, workers: int, endpoints: int, policy: str) -> Placement | None:
    try:
        return plan(topology, workers=workers, endpoints=endpoints, policy=policy)  # type: ignore[arg-type]
    except Unsupported:
        return None


def core_of(topology: Topology, cpu: int) -> tuple[int, ...]:
    return topology[cpu].siblings


def free_cores(topology: Topology) -> int:
    """Most physical cores with a usable CPU on one node, counted independently of the planner."""
    found: dict[int, set[tuple[int, ...]]] = {}
    for cpu in topology.cpus:
        if cpu.online and cpu.allowed:
            found.setdefault(cpu.node, set()).add(cpu.siblings)
    return max(map(len, found.values()), default=0)


def free_cpus(topology: Topology) -> int:
    counts = [sum(cpu.usable and cpu.node == node for cpu in topology.cpus) for node in {c.node for c in topology.cpus}]
    return max(counts)


@given(topologies(), needs)
def test_dedicated_never_shares_a_core(topology: Topology, need: tuple[int, int]) -> None:
    placement = attempt(topology, *need, "dedicated")
    if placement is not None:
        pollers = [*placement.switch, *placement.endpoints]
        assert len({core_of(topology, cpu) for cpu in pollers}) == len(pollers) == sum(need)
        assert placement.yield_every == 0


@given(topologies(), needs, st.sampled_from(["dedicated", "cooperative"]))
def test_every_cpu_can_be_used_and_pollers_are_on_one_node(
    topology: Topology, need: tuple[int, int], policy: str
) -> None:
    placement = attempt(topology, *need, policy)
    if placement is not None:
        pollers = {*placement.switch, *placement.endpoints}
        assert all(topology[cpu].usable for cpu in {*pollers, *placement.service})
        assert {topology[cpu].node for cpu in pollers} == {placement.numa_node}
        assert (len(placement.switch), len(placement.endpoints)) == need
        assert placement.service


@given(topologies(), needs)
def test_cooperative_workers_keep_their_cpu_and_their_core_if_there_are_enough(
    topology: Topology, need: tuple[int, int]
) -> None:
    placement = attempt(topology, *need, "cooperative")
    if placement is not None:
        assert len(set(placement.switch)) == need[0]
        assert not set(placement.switch) & {*placement.endpoints, *placement.service}
        if free_cores(topology) >= need[0] + 1:
            workers = {core_of(topology, cpu) for cpu in placement.switch}
            assert len(workers) == need[0]
            assert not workers & {core_of(topology, cpu) for cpu in placement.endpoints}
        assert placement.yield_every == (YIELD_EVERY_FRAMES if len(set(placement.endpoints)) < need[1] else 0)


@given(topologies(), needs)
def test_cooperative_endpoints_are_spread_evenly_and_pairs_apart(topology: Topology, need: tuple[int, int]) -> None:
    placement = attempt(topology, *need, "cooperative")
    if placement is not None:
        used = set(placement.endpoints)
        loads = [placement.endpoints.count(cpu) for cpu in used]
        assert max(loads) - min(loads) <= 1
        if len(used) > 1:
            assert all(a != b for a, b in zip(placement.endpoints[::2], placement.endpoints[1::2], strict=True))


@given(topologies(), needs)
def test_refused_exactly_when_the_sum_does_not_suffice(topology: Topology, need: tuple[int, int]) -> None:
    workers, endpoints = need
    assert (attempt(topology, workers, endpoints, "dedicated") is None) == (free_cores(topology) < workers + endpoints)
    assert (attempt(topology, workers, endpoints, "cooperative") is None) == (free_cpus(topology) < workers + 1)


@given(topologies(), needs)
def test_more_cpus_never_turn_a_plan_into_a_refusal(topology: Topology, need: tuple[int, int]) -> None:
    larger = Topology(tuple(replace(cpu, allowed=True, online=True) for cpu in topology.cpus))
    for policy in ("dedicated", "cooperative"):
        if attempt(topology, *need, policy) is not None:
            assert attempt(larger, *need, policy) is not None


@given(topologies(), needs)
def test_fewer_demands_are_never_refused(topology: Topology, need: tuple[int, int]) -> None:
    workers, endpoints = need
    for policy in ("dedicated", "cooperative"):
        if attempt(topology, workers, endpoints, policy) is not None:
            for fewer, less in product(range(workers + 1), range(2, endpoints + 1, 2)):
                assert attempt(topology, fewer, less, policy) is not None


@given(topologies(), needs)
def test_auto_is_dedicated_exactly_when_that_leaves_a_core(topology: Topology, need: tuple[int, int]) -> None:
    placement = attempt(topology, *need, "auto")
    dedicated = attempt(topology, *need, "dedicated")
    if sum(len(topology.cores(node)) for node in topology.nodes) <= sum(need):
        dedicated = None
    assert placement == (dedicated or attempt(topology, *need, "cooperative"))
    assert resolve_auto(topology, [need]) == ("cooperative" if dedicated is None else "dedicated")


@given(topologies(), needs)
def test_isolated_cores_of_the_node_are_all_used_before_others(topology: Topology, need: tuple[int, int]) -> None:
    placement = attempt(topology, *need, "dedicated")
    if placement is not None:
        cores = topology.cores(placement.numa_node)
        isolated = {core[0].siblings for core in cores if all(cpu.isolated for cpu in core)}
        taken = {core_of(topology, cpu) for cpu in (*placement.switch, *placement.endpoints)}
        assert isolated <= taken or taken <= isolated


@given(topologies(), needs)
def test_the_harness_stays_off_the_pollers_cores_when_it_can(topology: Topology, need: tuple[int, int]) -> None:
    for policy in ("dedicated", "cooperative"):
        placement = attempt(topology, *need, policy)
        if placement is not None:
            taken = {core_of(topology, cpu) for cpu in (*placement.switch, *placement.endpoints)}
            if any(cpu.siblings not in taken for cpu in topology.usable):
                assert not taken & {core_of(topology, cpu) for cpu in placement.service}


@given(topologies(), needs, st.sampled_from(["dedicated", "cooperative"]))
def test_pollers_share_an_l3_where_one_has_room(topology: Topology, need: tuple[int, int], policy: str) -> None:
    placement = attempt(topology, *need, policy)
    if placement is not None:
        caches: dict[int | None, list[bool]] = {}
        for core in topology.cores(placement.numa_node):
            caches.setdefault(core[0].l3, []).append(all(cpu.isolated for cpu in core))
        isolated = sum(map(sum, caches.values()))
        least = min(sum(need), isolated)
        if any(len(cores) >= sum(need) and sum(cores) >= least for cores in caches.values()):
            assert len({topology[cpu].l3 for cpu in (*placement.switch, *placement.endpoints)}) == 1
            assert placement.where.startswith(("one L3", f"node {placement.numa_node}, L3 unknown"))
