# SPDX-License-Identifier: BSD-3-Clause
"""CPUs isolated at boot are in nobody's affinity, and may be used all the same, as far as the cpuset goes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.root import Root
from pytest_icbench.testbed.cpu_placement import plan

V1 = {
    "proc/self/cgroup": "5:cpu,cpuacct:/\n4:cpuset:/lab\n0::/\n",
    "sys/fs/cgroup/cpuset/lab/cpuset.effective_cpus": "0-6\n",
}
V2 = {
    "proc/self/cgroup": "0::/user.slice/session-1.scope\n",
    "sys/fs/cgroup/user.slice/cpuset.cpus.effective": "0-6\n",
    "sys/fs/cgroup/cpuset.cpus.effective": "0-7\n",
}


def host(tmp_path: Path, affinity: str, files: Mapping[str, str]) -> Root:
    cpu = "sys/devices/system/cpu"
    machine = {
        f"{cpu}/present": "0-7\n",
        f"{cpu}/online": "0-7\n",
        f"{cpu}/isolated": "4-7\n",
        "proc/self/status": f"Name:\tpytest\nCpus_allowed_list:\t{affinity}\n",
    }
    for number in range(8):
        machine[f"{cpu}/cpu{number}/topology/core_id"] = f"{number}\n"
    for name, text in {**machine, **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Root(tmp_path)


@pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
def test_isolated_cpus_can_be_used_where_the_cpuset_grants_them(tmp_path: Path, files: Mapping[str, str]) -> None:
    topology = Topology.read(host(tmp_path, "0-3", files))
    assert [cpu.id for cpu in topology.usable] == [0, 1, 2, 3, 4, 5, 6]
    placement = plan(topology, workers=1, endpoints=2, policy="dedicated")
    assert {*placement.switch, *placement.endpoints} == {4, 5, 6}


@pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
def test_an_affinity_that_somebody_chose_is_kept(tmp_path: Path, files: Mapping[str, str]) -> None:
    topology = Topology.read(host(tmp_path, "0-1", files))
    assert [cpu.id for cpu in topology.usable] == [0, 1]


def test_without_a_cpuset_to_read_the_affinity_counts(tmp_path: Path) -> None:
    assert [cpu.id for cpu in Topology.read(host(tmp_path, "0-3", {})).usable] == [0, 1, 2, 3]
