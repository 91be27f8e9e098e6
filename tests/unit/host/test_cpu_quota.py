# SPDX-License-Identifier: BSD-3-Clause
"""Quotas above processes, on recorded hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_icbench.host.cpu_usage import find_quotas, find_throttled, quota_findings
from pytest_icbench.host.root import Root
from pytest_icbench.model.interference import Throttled
from tests.unit.driver.node.test_cgroups import HYBRID, V2, host

CPU = "sys/fs/cgroup/cpu,cpuacct"
V1_QUOTA = {
    **HYBRID,
    "proc/7/cgroup": "4:cpu,cpuacct:/ci/job\n",
    "proc/8/cgroup": "4:cpu,cpuacct:/ci/icbabc123/function\n",
    f"{CPU}/cpu.cfs_quota_us": "-1",
    f"{CPU}/cpu.cfs_period_us": "100000",
    f"{CPU}/ci/cpu.cfs_quota_us": "-1",
    f"{CPU}/ci/cpu.cfs_period_us": "100000",
    f"{CPU}/ci/job/cpu.cfs_quota_us": "15000",
    f"{CPU}/ci/job/cpu.cfs_period_us": "100000",
    f"{CPU}/ci/job/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 77\n",
    f"{CPU}/ci/icbabc123/function/cpu.cfs_quota_us": "5000",
    f"{CPU}/ci/icbabc123/function/cpu.cfs_period_us": "10000",
}
V2_QUOTA = {
    **V2,
    "proc/7/cgroup": "0::/ci/job\n",
    "proc/8/cgroup": "0::/icbabc123-harness\n",
    "sys/fs/cgroup/ci/cpu.max": "150000 100000",
    "sys/fs/cgroup/ci/cpu.stat": "usage_usec 5\nnr_periods 20\nnr_throttled 5\n",
    "sys/fs/cgroup/ci/job/cpu.max": "max 100000",
}


@pytest.mark.parametrize(
    ("files", "group", "cpus", "periods"),
    [(V1_QUOTA, "/ci/job", 0.15, (10, 4)), (V2_QUOTA, "/ci", 1.5, (20, 5))],
    ids=["v1", "v2"],
)
def test_a_quota_is_found_above_a_process_but_no_cpu_allocation(
    tmp_path: Path, files: Mapping[str, str], group: str, cpus: float, periods: tuple[int, int]
) -> None:
    root = host(tmp_path, files)
    (quota,) = find_quotas(root, [8, 7, 9])
    assert (quota.group, quota.cpus, quota.periods(root)) == (group, cpus, periods)
    assert find_quotas(root, [8]) == []
    (finding,) = quota_findings(root, 7)
    assert f"group {group} may use {cpus} CPUs" in finding.text
    assert find_throttled([quota], [(1, 1)], [(1, 1)]) == ()
    assert find_throttled([quota], [(1, 1)], [periods]) == (Throttled(group, cpus, periods[1] - 1, periods[0] - 1),)


def test_a_quota_of_what_is_mounted_is_found(tmp_path: Path) -> None:
    """A container's hierarchy begins at its group."""
    root = host(tmp_path, {**V2, "sys/fs/cgroup/cpu.max": "50000 100000"})
    assert [(quota.group, quota.cpus) for quota in find_quotas(root, [7])] == [("/", 0.5)]
    assert quota_of_nothing(root) == (0, 0)


def quota_of_nothing(root: Root) -> tuple[int, int]:
    """Without statistics nothing was throttled."""
    return find_quotas(root, [7])[0].periods(root)


def test_without_a_controller_there_is_none(tmp_path: Path) -> None:
    assert find_quotas(Root(tmp_path), [7]) == []
