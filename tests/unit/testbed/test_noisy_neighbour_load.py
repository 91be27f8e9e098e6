# SPDX-License-Identifier: BSD-3-Clause
"""Where a noisy neighbour runs, and which part of the cache belongs to whom."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_icbench.errors import Invalid
from pytest_icbench.host.resource.cpu import Cpu, Topology
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.model.placement import Placement
from pytest_icbench.testbed.cpu_placement import add_noisy_neighbour
from pytest_icbench.testbed.noisy_neighbour_load import (
    COMMANDS,
    RunningNoisyNeighbour,
    cache_parts,
    explain_no_isolation,
)
from tests.unit.recorded import expand
from tests.unit.recording_host import FakeProcess

#: Two cores that share an L3 cache, then two that share another.
TWO_CACHES = Topology(
    tuple(
        Cpu(number, number, 0, 0, (number,), isolated=False, nohz_full=False, online=True, allowed=True, l3=l3)
        for number, l3 in enumerate((0, 0, 0, 3, 3))
    )
)
PATH = Placement("dedicated", (), (1, 2), (0, 3, 4), 0, 0)
CASE = Case("ovs", noisy_neighbour="cpu", isolation="cat:11.1")


def test_a_noisy_neighbour_has_a_core_of_the_paths_cache_or_one_of_another() -> None:
    near = add_noisy_neighbour(TWO_CACHES, PATH, 1, apart=False)
    far = add_noisy_neighbour(TWO_CACHES, PATH, 2, apart=True)
    assert near is not None
    assert far is not None
    assert (near.noisy_neighbour, near.service) == ((0,), (3, 4))
    assert (far.noisy_neighbour, far.service) == ((3, 4), (0,))
    assert add_noisy_neighbour(TWO_CACHES, PATH, 3, apart=True) is None
    assert add_noisy_neighbour(TWO_CACHES, PATH, 4, apart=False) is None


def test_a_recorded_tree_reports_the_l3_caches(tmp_path: Path) -> None:
    expand("numa-smt", tmp_path)
    cache = tmp_path / "sys/devices/system/cpu/cpu5/cache/index3"
    cache.mkdir(parents=True)
    (cache / "level").write_text("3\n")
    (cache / "shared_cpu_list").write_text("4-7\n")
    topology = Topology.read(Root(tmp_path))
    assert (topology[5].l3, topology[0].l3) == (4, None)


@pytest.mark.parametrize(("code", "how"), [(-9, "was killed by signal 9 (Killed)"), (2, "ended with exit code 2")])
def test_a_noisy_neighbour_that_ended_is_reported_with_its_program(tmp_path: Path, code: int, how: str) -> None:
    running = RunningNoisyNeighbour(cast(Any, None), replace(CASE, noisy_neighbour="noisy"), PATH, "netns")
    argv = [word.format(cpu=1, dir=tmp_path) for word in COMMANDS["noisy"]]
    running._processes = [cast(Any, FakeProcess(argv, tmp_path / "log", code=code))]
    with pytest.raises(Invalid, match=rf"noisy neighbour noisy ended early: dpdk-testpmd {re.escape(how)}; the end of"):
        running._check_alive()


def test_parts_of_the_cache_follow_the_number_of_ways() -> None:
    placement = replace(PATH, switch=(0,), noisy_neighbour=(3,))
    assert cache_parts(CASE, placement) == {"path": (0, 1, 2), "noisy_neighbour": (3,)}
    three = replace(CASE, isolation="cat:7.4.1")
    assert cache_parts(three, placement) == {"switch": (0,), "rest": (1, 2), "noisy_neighbour": (3,)}
    with_function = replace(placement, functions=(4,))
    assert cache_parts(three, with_function) == {"functions": (4,), "rest": (0, 1, 2), "noisy_neighbour": (3,)}
    four = replace(CASE, isolation="cat:3.3.3.3")
    assert list(cache_parts(four, with_function)) == ["functions", "switch", "endpoints", "noisy_neighbour"]


def test_ways_for_parts_without_cpus_of_their_own_are_reported(tmp_path: Path) -> None:
    root = expand("resctrl/intel", tmp_path)
    placement = replace(PATH, noisy_neighbour=(3,))
    assert explain_no_isolation(CASE, placement, root) is None
    assert explain_no_isolation(replace(CASE, isolation="l3"), placement, Root(tmp_path / "none")) is None
    three = replace(CASE, isolation="cat:7.4.1")
    assert explain_no_isolation(three, placement, root) == (
        "cat:7.4.1 splits the cache by CPUs, and some parts share CPUs or have none (CPUs: switch none, rest 1-2,"
        " noisy neighbour 3): take fewer parts, or a host with more CPUs"
    )
    shared = replace(placement, functions=(1,))
    assert "functions 1, rest 1-2" in (explain_no_isolation(three, shared, root) or "")
    assert "missing: the CPU's flag cat_l3" in (explain_no_isolation(CASE, placement, Root(tmp_path / "none")) or "")
