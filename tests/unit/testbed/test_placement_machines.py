# SPDX-License-Identifier: BSD-3-Clause
"""Where a case runs on the shapes of real machines: the L3 caches, NUMA nodes and kinds of cores that it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_icbench.host.resource.cpu import Cpu, Topology
from pytest_icbench.host.root import Root, parse_cpu_list
from pytest_icbench.testbed.cpu_placement import add_noisy_neighbour, plan, plan_given


def host(
    *caches: str,
    threads: tuple[str, str] = ("", ""),
    slow: str = "",
    isolated: str = "",
    allowed: str = "0-999",
    offline: str = "",
    tickless: str = "",
) -> Topology:
    """A machine of which each argument names a node's L3 caches by their CPUs, with ``/`` between; ``?`` is unknown.

    Args:
        threads: CPUs that are the first and the second threads of cores, in the same order.
        slow: CPUs of the second kind.
    """  # fmt: skip
    siblings = {cpu: pair for pair in zip(*map(parse_cpu_list, threads), strict=True) for cpu in pair}
    cpus = []
    for node, text in enumerate(caches):
        for cache in text.split("/"):
            numbers = parse_cpu_list(cache.removeprefix("?"))
            for number in numbers:
                cpu = Cpu(
                    id=number,
                    core=number,
                    socket=node,
                    node=node,
                    siblings=siblings.get(number, (number,)),
                    isolated=number in parse_cpu_list(isolated),
                    nohz_full=number in parse_cpu_list(tickless),
                    online=number not in parse_cpu_list(offline),
                    allowed=number in parse_cpu_list(allowed),
                    l3=None if cache.startswith("?") else numbers[0],
                    kind=int(number in parse_cpu_list(slow)),
                )
                cpus.append(cpu if cpu.online else replace(cpu, l3=None))
    return Topology(tuple(sorted(cpus, key=lambda cpu: cpu.id)))


class Machine(NamedTuple):
    name: str
    topology: Topology
    need: tuple[int, int]
    switch: Sequence[int]
    endpoints: Sequence[int]
    where: str
    policy: str = "dedicated"


CCX3, CCX4, CCX8 = "0-2/3-5/6-8/9-11", "0-3/4-7/8-11/12-15", "0-7/8-15"
HYBRID = host("0-19", threads=("0,2,4,6,8,10", "1,3,5,7,9,11"), slow="12-19")
LOW_POWER = host("0-7/?8-9", slow="4-9")
COMPACT = host("0-3/4-11", slow="4-11")
MACHINES = [
    Machine("desktop", host("0-3"), (1, 2), [1], [3, 2], "one L3 (0-3)"),
    Machine("desktop, SMT", host("0-7", threads=("0-3", "4-7")), (1, 2), [1], [3, 2], "one L3 (0-7)"),
    Machine("2 sockets", host("0-7", "8-15"), (1, 2), [1], [3, 2], "one L3 (0-7)"),
    Machine("2 sockets, isolcpus=9-15", host("0-7", "8-15", isolated="9-15"), (1, 2), [9], [11, 10], "one L3 (8-15)"),
    Machine("CCX of 3", host(CCX3), (1, 2), [3], [5, 4], "one L3 (3-5)"),
    Machine("CCX of 3, 2 pairs", host(CCX3), (1, 4), [3], [2, 1, 5, 4], "2 L3s of node 0: none has room for 5 cores"),
    Machine("CCX of 4", host(CCX4), (1, 2), [1], [3, 2], "one L3 (0-3)"),
    Machine("CCX of 4, 2 workers", host(CCX4), (2, 2), [4, 5], [7, 6], "one L3 (4-7)"),
    Machine("CCX of 4, cpuset 2-9", host(CCX4, allowed="2-9"), (1, 2), [4], [6, 5], "one L3 (4-7)"),
    Machine("CCX of 4, CPU 1 offline", host(CCX4, offline="1"), (1, 2), [4], [6, 5], "one L3 (4-7)"),
    Machine("CCX of 4, SMT, isolcpus=3-7,19-23", host("0-3,16-19/4-7,20-23/8-11,24-27/12-15,28-31",
            threads=("0-15", "16-31"), isolated="3-7,19-23"), (1, 2), [4], [6, 5], "one L3 (4-7,20-23)"),
    Machine("CCX of 8, isolcpus=6-15", host(CCX8, isolated="6-15"), (1, 2), [8], [10, 9], "one L3 (8-15)"),
    Machine("CCX of 8, isolcpus=6-15, 4 pairs", host(CCX8, isolated="6-15"), (1, 8), [8],
            [6, 15, 14, 13, 12, 11, 10, 9], "2 L3s of node 0: none has room for 9 cores"),
    Machine("CCX of 8, isolcpus=7-8", host(CCX8, isolated="7-8"), (1, 2), [7], [1, 8],
            "2 L3s of node 0: isolated cores come first"),
    Machine("CCX of 8, nohz_full=6-15", host(CCX8, tickless="6-15"), (1, 2), [8], [10, 9], "one L3 (8-15)"),
    Machine("2 sockets, CCX of 4, isolcpus=10-15", host("0-3/4-7", "8-11/12-15", isolated="10-15"), (1, 2), [12],
            [14, 13], "one L3 (12-15)"),
    Machine("P and E cores", HYBRID, (1, 2), [2], [6, 4], "one L3 (0-19), fast cores"),
    Machine("P and E cores, 3 pairs", HYBRID, (1, 6), [12], [18, 17, 16, 15, 14, 13], "one L3 (0-19), slow cores"),
    Machine("P and E cores, isolcpus=12-19", host("0-19", slow="12-19", isolated="12-19"), (1, 2), [12], [14, 13],
            "one L3 (0-19), slow cores"),
    Machine("low-power cores without L3, all of one pair", LOW_POWER, (6, 2), [1, 2, 3, 0, 4, 5], [7, 6],
            "one L3 (0-7), fast and slow cores"),
    Machine("compact cores with their own L3", COMPACT, (1, 2), [1], [3, 2], "one L3 (0-3), fast cores"),
    Machine("compact cores, 2 pairs", COMPACT, (1, 4), [4], [8, 7, 6, 5], "one L3 (4-11), slow cores"),
    Machine("8 cores, L3 unknown", host("?0-7"), (1, 2), [1], [3, 2], "node 0, L3 unknown"),
    Machine("2 vCPUs", host("0-1"), (1, 2), [1], [0, 0], "one L3 (0-1)", "cooperative"),
    Machine("2 vCPUs, each with an L3", host("0/1"), (1, 2), [1], [0, 0],
            "2 L3s of node 0: none has room for 3 cores", "cooperative"),
    Machine("2 vCPUs of one core", host("0-1", threads=("0", "1")), (1, 2), [0], [1, 1], "one L3 (0-1)",
            "cooperative"),
    Machine("CCX of 4, 3 CPUs allowed, 2 pairs", host(CCX4, allowed="3-5"), (1, 4), [4], [3, 5, 5, 3],
            "2 L3s of node 0: none has room for 5 cores", "cooperative"),
    Machine("CCX of 8, isolcpus=6-15, cooperative", host(CCX8, isolated="6-15"), (1, 2), [8], [10, 9],
            "one L3 (8-15)", "cooperative"),
]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES, ids=[machine.name for machine in MACHINES])
def test_pollers_get_the_best_cores_of_each_machine(machine: Machine) -> None:
    workers, endpoints = machine.need
    found = plan(machine.topology, workers=workers, endpoints=endpoints, policy=machine.policy)  # type: ignore[arg-type]
    assert (found.switch, found.endpoints) == (tuple(machine.switch), tuple(machine.endpoints))
    assert found.where == machine.where


def test_nothing_to_place_needs_no_words() -> None:
    assert plan(host("0-3"), workers=0, endpoints=0, policy="dedicated").where == ""


def test_a_noisy_neighbour_of_the_path_s_cache_and_one_apart() -> None:
    topology = host(CCX8, isolated="6-15")
    path = plan(topology, workers=1, endpoints=2, policy="dedicated")
    near, far = (add_noisy_neighbour(topology, path, 2, apart=apart) for apart in (False, True))
    assert near is not None
    assert far is not None
    assert (near.noisy_neighbour, far.noisy_neighbour) == ((11, 12), (0, 1))
    assert near.where == path.where == "one L3 (8-15)"


@pytest.mark.parametrize(
    ("endpoints", "switch", "where"),
    [
        ((9, 10), (8,), "one L3 (8-11)"),
        ((3, 4), (1,), "2 L3s of node 0: the topology gives the endpoints' CPUs"),
    ],
)
def test_a_switch_is_in_the_cache_of_given_endpoints(
    endpoints: tuple[int, ...], switch: tuple[int, ...], where: str
) -> None:
    found = plan_given(host(CCX4), workers=1, endpoints=endpoints, policy="dedicated")
    assert (found.switch, found.where) == (switch, where)
    two = plan_given(host("0-3", "4-7"), workers=3, endpoints=(0, 1), policy="dedicated")
    assert (two.switch, two.where) == ((2, 3, 4), "2 NUMA nodes")


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        ({"cpu_core/cpus": "0-1", "cpu_atom/cpus": "2"}, [0, 0, 1, 0]),  # CPU 3 is offline
        ({f"system/cpu/cpu{cpu}/cpu_capacity": str(400 + 624 * (cpu < 2)) for cpu in range(4)}, [0, 0, 1, 1]),
        ({}, [0, 0, 0, 0]),
    ],
    ids=["Intel", "Arm", "one kind"],
)
def test_the_kinds_of_hybrid_cores_are_read(tmp_path: Path, files: dict[str, str], kinds: list[int]) -> None:
    for name, text in {"system/cpu/present": "0-3", **files}.items():
        path = tmp_path / "sys/devices" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert [cpu.kind for cpu in Topology.read(Root(tmp_path)).cpus] == kinds
