# SPDX-License-Identifier: BSD-3-Clause
"""Placement where a topology gives the endpoints' CPUs: they have them, and the switch gets what is left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.errors import Unsupported
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.model.placement import Placement
from pytest_icbench.testbed.cpu_placement import YIELD_EVERY_FRAMES, plan_given
from tests.unit.testbed.test_cpu_placement import machine, topologies


def test_endpoints_have_their_cpus_and_the_worker_another_core() -> None:
    found = plan_given(machine(cores=4), workers=1, endpoints=(3, 2), policy="auto")
    assert found == Placement("dedicated", (1,), (3, 2), (0,), 0, 0)


def test_shared_cpus_are_cooperative() -> None:
    found = plan_given(machine(cores=2), workers=1, endpoints=(0, 0), policy="auto")
    assert found == Placement("cooperative", (1,), (0, 0), (0,), 0, YIELD_EVERY_FRAMES)


def test_auto_leaves_a_cpu_for_the_rest() -> None:
    assert plan_given(machine(cores=2), workers=0, endpoints=(0, 1), policy="auto").policy == "cooperative"
    assert plan_given(machine(cores=3), workers=0, endpoints=(0, 1), policy="auto").policy == "dedicated"


def test_workers_come_from_the_endpoints_node_first() -> None:
    # Cores 0 to 3 are of node 0, 4 to 7 of node 1.
    found = plan_given(machine(nodes=2, cores=4), workers=3, endpoints=(4, 5), policy="dedicated")
    assert (found.switch[:2], found.numa_node) == ((6, 7), 1)
    assert found.switch[2] < 4


def test_siblings_are_left_to_the_endpoints_as_long_as_there_are_cores() -> None:
    # CPU 0 and 2 are one core, 1 and 3 the other.
    two = machine(cores=2, threads=2)
    assert plan_given(two, workers=1, endpoints=(0, 2), policy="cooperative").switch == (1,)
    assert plan_given(two, workers=1, endpoints=(0, 1), policy="auto").switch == (3,)


@pytest.mark.parametrize(
    ("endpoints", "workers", "policy", "sentence"),
    [
        ((0, 9), 0, "auto", "gives an endpoint CPU 9, which is not online or not allowed .*: name one of 0-3"),
        ((0, 0), 0, "dedicated", "the topology lets two share one: change its cpus, or use --icbench-placement"),
        ((0, 1), 3, "dedicated", r"the switch's 3 workers need CPUs besides the endpoints' \(0-1\), and 2 can be used"),
        ((0, 1, 2, 3), 1, "cooperative", r"the switch's 1 worker needs a CPU besides .* \(0-3\), and none can be used"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_one_sentence(endpoints: Sequence[int], workers: int, policy: str, sentence: str) -> None:
    with pytest.raises(Unsupported, match=sentence):
        plan_given(machine(cores=4), workers=workers, endpoints=endpoints, policy=policy)  # type: ignore[arg-type]


@given(topologies(), st.data())
def test_on_any_machine(topology: Topology, data: st.DataObject) -> None:
    usable = [cpu.id for cpu in topology.usable]
    if not usable:
        return
    endpoints = data.draw(st.lists(st.sampled_from(usable), min_size=2, max_size=6))
    workers = data.draw(st.integers(0, 3))
    try:
        found = plan_given(topology, workers=workers, endpoints=endpoints, policy="auto")
    except Unsupported:
        assert len(usable) - len(set(endpoints)) < workers
        return
    assert found.endpoints == tuple(endpoints)
    assert len(set(found.switch)) == workers
    assert not set(found.switch) & set(endpoints)
    assert set(found.switch) <= set(usable)
    assert found.service
    cores = [topology[cpu].siblings for cpu in (*found.switch, *endpoints)]
    if found.policy == "dedicated":
        assert len(set(cores)) == len(cores)
