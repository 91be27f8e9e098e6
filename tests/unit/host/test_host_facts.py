# SPDX-License-Identifier: BSD-3-Clause
"""Facts about hosts, on recorded trees; and that the running machine has them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_icbench.host import host_facts
from pytest_icbench.host.root import Root
from tests.unit.recorded import NAMES, expand

Tree = Callable[[str], Root]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return lambda name: expand(name, tmp_path / name)


def test_the_identity_of_recorded_hosts_is_read(tree: Tree) -> None:
    root = tree("intel_pstate")
    found = host_facts.identity(root)
    assert found == {
        "machine": host_facts.machine(root),
        "cpu_model": "Intel(R) Core(TM) i7-6700 CPU @ 3.40GHz",
        "sockets": 1,
        "cores": 4,
        "cpus": 8,
        "numa_nodes": 1,
        "smt": True,
        "memory_gib": 31,
        "hypervisor": None,
    }
    assert len(found["machine"]) == 16
    assert found["machine"] not in "0123456789abcdef0123456789abcdef"


def test_identity_counts_what_is_online(tree: Tree) -> None:
    found = host_facts.identity(tree("amd-pstate"))
    assert (found["cpus"], found["cores"], found["machine"]) == (7, 7, None)
    found = host_facts.identity(tree("numa-smt"))
    assert (found["sockets"], found["cores"], found["cpus"], found["numa_nodes"]) == (2, 8, 16, 2)


def test_the_treatment_of_recorded_hosts_is_read(tree: Tree) -> None:
    found = host_facts.treatment(tree("intel_pstate"))
    assert found == {
        "kernel": "6.1.0-18-amd64",
        "kernel_parameters": {},
        "distribution": "Debian GNU/Linux 12 (bookworm)",
        "microcode": "0xf0",
        "mitigations": {"meltdown": "Mitigation: PTI"},
        "transparent_hugepages": "always",
        "clock_source": "tsc",
    }
    parameters = host_facts.treatment(tree("amd-pstate"))["kernel_parameters"]
    assert parameters["isolcpus"] == "managed_irq,domain,4-7"
    assert parameters["hugepagesz"] == "2M 1G"
    assert parameters["hugepages"] == "16 1"
    assert "ro" not in parameters


@pytest.mark.parametrize(
    ("name", "expected"), [("intel_pstate", None), ("virtual", "unknown"), ("numa-smt", None), ("acpi-cpufreq", None)]
)
def test_a_hypervisor_is_named(tree: Tree, name: str, expected: str | None) -> None:
    assert host_facts.hypervisor(tree(name)) == expected


def test_a_hypervisor_that_reports_its_name(tree: Tree) -> None:
    root = tree("virtual")
    (root.base / "sys/class/dmi/id").mkdir(parents=True)
    root.write("/sys/class/dmi/id/sys_vendor", "QEMU")
    assert host_facts.hypervisor(root) == "QEMU"
    (root.base / "sys/hypervisor").mkdir()
    root.write("/sys/hypervisor/type", "xen")
    assert host_facts.hypervisor(root) == "xen"


def test_the_conditions_of_recorded_hosts_are_read(tree: Tree) -> None:
    found = host_facts.conditions(tree("intel_pstate"))
    assert found == {
        "load_1min": 0.42,
        "frequency_mhz": dict.fromkeys(range(8), 800.0),
        "frequency_driver": "intel_pstate",
        "governors": ["powersave"],
        "turbo": True,
        "temperature_celsius": 51.0,  # of the package, not of the disk
        "steal_ticks": 0,
        "swap_used_kib": 102400,
    }


def test_conditions_of_a_virtual_machine(tree: Tree) -> None:
    found = host_facts.conditions(tree("virtual"), [1])
    assert found["frequency_mhz"] == {1: 2000.0}
    assert found["steal_ticks"] == 73
    assert found["temperature_celsius"] is None
    assert found["turbo"] is None
    assert host_facts.conditions(tree("virtual"))["steal_ticks"] == 158
    assert host_facts.conditions(tree("amd-pstate"))["temperature_celsius"] == 38.5


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_plain_json(tree: Tree, name: str) -> None:
    root = tree(name)
    json.dumps([host_facts.identity(root), host_facts.treatment(root), host_facts.conditions(root)])


def test_an_empty_tree_has_no_facts_and_no_error(tmp_path: Path) -> None:
    root = Root(tmp_path)
    assert host_facts.identity(root)["cpu_model"] is None
    assert host_facts.treatment(root)["kernel"] is None
    assert host_facts.conditions(root)["load_1min"] is None


def test_stolen_time_is_a_share_since_the_last_reading(tree: Tree) -> None:
    root = tree("virtual")
    meter = host_facts.StealMeter(root)
    assert meter.read() == {0: 0.0, 1: 0.0}
    stat = root.read("/proc/stat")
    assert stat is not None
    # 90 more ticks at work and 10 stolen on CPU 1; guest time, the last two, is in user time already.
    root.write(
        "/proc/stat", stat.replace("58072 9442 14171 174191 477 0 808 73 0", "58162 9442 14171 174191 477 0 808 83 9")
    )
    assert meter.read() == {0: 0.0, 1: pytest.approx(0.1)}
    assert meter.read() == {0: 0.0, 1: 0.0}


def test_the_running_machine_has_every_fact() -> None:
    found = host_facts.identity()
    assert found["cpus"] >= 1
    assert found["memory_gib"] >= 1
    assert host_facts.treatment()["kernel"] == os.uname().release
    assert host_facts.conditions()["load_1min"] >= 0
    assert set(host_facts.StealMeter().read()) >= os.sched_getaffinity(0)


@pytest.mark.parametrize("text", ["", "uninitialized", "0123", "0123456789abcdef0123456789abcdeg"])
def test_what_is_no_machine_id_names_no_machine(tmp_path: Path, text: str) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "machine-id").write_text(f"{text}\n")
    assert host_facts.machine(Root(tmp_path)) is None
