# SPDX-License-Identifier: BSD-3-Clause
"""Facts about the host that stand beside each claim. Nothing that names the machine or a place on it."""

from __future__ import annotations

from typing import Any

from pytest_icbench.driver.workload.workload_version import workload_version
from pytest_icbench.host import host_facts as facts
from pytest_icbench.version import package_version


def host_facts() -> dict[str, Any]:
    """Names as they are shown, with text or numbers."""
    identity, treatment, version = facts.identity(), facts.treatment(), workload_version()
    parameters = [f"{key}={value}" if value else key for key, value in treatment["kernel_parameters"].items()]
    return {
        "processor": identity["cpu_model"],
        "CPUs": identity["cpus"],
        "physical cores": identity["cores"],
        "NUMA nodes": identity["numa_nodes"],
        "memory, GiB": identity["memory_gib"],
        "hypervisor": identity["hypervisor"] or "none",
        "distribution": treatment["distribution"],
        "kernel": treatment["kernel"],
        "kernel parameters": " ".join(parameters) or "none that matter",
        "pytest-icbench": package_version(),
        "DPDK": version.dpdk or "none",
    }
