# SPDX-License-Identifier: BSD-3-Clause
"""The doctor on recorded trees, and on this machine without changing it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.node.lxc import LxcNode
from pytest_icbench.driver.switch import registry
from pytest_icbench.errors import Unsupported
from pytest_icbench.host import disturbances
from pytest_icbench.host.cpu_usage import ProcessTime, read_process_times
from pytest_icbench.host.findings import Finding, Level, exit_code, kernel_line, render
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.root import Root
from pytest_icbench.model.codec import encode
from pytest_icbench.model.placement import Placement
from pytest_icbench.testbed import host_examination, host_fitness
from tests.unit.recorded import NAMES, expand

Tree = Callable[[str], Root]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return lambda name: expand(name, tmp_path / name)


def levels(findings: list[Finding]) -> dict[str, Level]:
    return {finding.topic: finding.level for finding in findings}


def test_it_says_where_a_pair_would_be(tree: Tree, tmp_path: Path) -> None:
    def said(root: Root) -> str:
        return next(item.text for item in host_examination.examine(root, sample_s=0) if item.topic == "placement")

    assert said(tree("numa-smt")) == "a switch's worker on CPU 2, a pair on 1,3 (dedicated): node 0, L3 unknown"
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    assert said(Root(tmp_path)).startswith("cooperative placement needs 2 CPUs")


def test_a_desktop_is_disturbed_by_governor_and_turbo(tree: Tree) -> None:
    found = host_examination.examine(tree("intel_pstate"), sample_s=0)
    assert levels(found) == {
        "host": Level.NOTE,
        "placement": Level.NOTE,
        "cgroups": Level.GOOD,
        "huge pages": Level.GOOD,
        "governor": Level.DISTURBS,
        "turbo": Level.DISTURBS,
        "SMT": Level.DISTURBS,
        "isolation": Level.DISTURBS,
        "timer tick": Level.DISTURBS,
        "irqbalance": Level.DISTURBS,
        "watchdog": Level.DISTURBS,
        "THP": Level.DISTURBS,
        "swap": Level.DISTURBS,
    }
    assert kernel_line(found) == (
        "nosmt isolcpus=managed_irq,domain,1-3,5-7 nohz_full=1-3,5-7 rcu_nocbs=1-3,5-7 nmi_watchdog=0"
        " transparent_hugepage=madvise"
    )
    assert exit_code(found) == 0


def test_a_server_of_two_nodes(tree: Tree) -> None:
    found = host_examination.examine(tree("acpi-cpufreq"), sample_s=0)
    seen = levels(found)
    assert seen["NUMA balancing"] is Level.DISTURBS
    assert seen["IOMMU"] is Level.DISTURBS
    assert seen["clock"] is Level.DISTURBS
    assert "SMT" not in seen
    assert "intel_iommu=on iommu=pt" in kernel_line(found)
    assert "isolcpus=managed_irq,domain,1-7" in kernel_line(found)


def test_a_prepared_machine_is_good(tree: Tree) -> None:
    found = host_examination.examine(tree("numa-smt"), sample_s=0)
    seen = levels(found)
    assert seen["governor"] is seen["turbo"] is seen["isolation"] is Level.GOOD
    assert "IOMMU" not in seen
    assert "isolcpus" not in kernel_line(found)
    assert "nohz_full=2-3,10-11" in kernel_line(found)  # of the isolated ones


def test_a_missing_cpuset_is_reported(tree: Tree) -> None:
    found = host_examination.examine(tree("amd-pstate"), sample_s=0)
    seen = levels(found)
    assert seen["cgroups"] is Level.MISSING
    assert seen["huge pages"] is Level.MISSING  # 1056 MiB of pages and 976 MiB of memory
    assert seen["timer tick"] is Level.GOOD
    assert exit_code(found) == 1


def test_a_virtual_machine_of_two_cores(tree: Tree) -> None:
    found = host_examination.examine(tree("virtual"), sample_s=0)
    seen = levels(found)
    assert seen["virtual machine"] is Level.DISTURBS
    assert seen["cores"] is Level.DISTURBS
    assert seen["isolation"] is seen["governor"] is Level.NOTE
    assert kernel_line(found) == ""
    assert exit_code(found) == 0


@pytest.mark.parametrize("lacks", ["constant_tsc", "nonstop_tsc"])
def test_a_processor_that_promises_no_invariant_clock(tree: Tree, lacks: str) -> None:
    root = tree("virtual")
    root.write("/proc/cpuinfo", (root.read("/proc/cpuinfo") or "").replace(f" {lacks}", ""))
    reported = [finding for finding in host_examination.examine(root, sample_s=0) if finding.topic == "clock"]
    assert [finding.text for finding in reported] == [
        "the CPU reports no invariant time stamp counter: times may be wrong"
    ]
    assert "invtsc" in (reported[0].remedy or "")


def test_no_memory_for_huge_pages(tree: Tree) -> None:
    root = tree("virtual")
    root.write("/proc/meminfo", "MemTotal: 900000 kB\nMemAvailable: 500000 kB\n")
    found = [finding for finding in host_examination.examine(root, sample_s=0) if finding.topic == "huge pages"]
    assert [finding.level for finding in found] == [Level.MISSING]
    assert kernel_line(found) == "hugepagesz=2M hugepages=1024"


def test_a_machine_without_huge_pages_and_cgroups(tmp_path: Path) -> None:
    found = host_examination.examine(Root(tmp_path), sample_s=0)
    assert levels(found)["huge pages"] is levels(found)["cgroups"] is Level.MISSING


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_is_one_sentence(tree: Tree, name: str) -> None:
    for finding in host_examination.examine(tree(name), sample_s=0):
        assert "\n" not in finding.text
        assert not finding.text.endswith(".")
        assert finding.level is not Level.DISTURBS or finding.remedy
        json.dumps(encode(finding))


def test_few_cores_are_not_isolated(tree: Tree) -> None:
    assert disturbances.isolation_candidates(Topology.read(tree("virtual"))) == []
    assert disturbances.isolation_candidates(Topology.read(tree("acpi-cpufreq"))) == [1, 2, 3, 4, 5, 6, 7]


def test_busy_processes_are_found_with_their_shares() -> None:
    ticks = os.sysconf("SC_CLK_TCK")

    def processes(ticks_by_pid: dict[int, int]) -> dict[int, ProcessTime]:
        return {pid: ProcessTime("make", used, 1, 1, 0) for pid, used in ticks_by_pid.items()}

    before = processes({1: 100, 2: 0, os.getpid(): 0})
    after = processes({1: 100 + ticks // 2, 2: 1, 3: 1000, os.getpid(): 1000})
    assert disturbances.busy_processes(before, after, 1.0) == {1: 0.5}


def test_it_sees_a_busy_process() -> None:
    """Busier ones that keep it from its CPU are named in its place."""
    burner, began = subprocess.Popen([sys.executable, "-c", "while True: pass"]), time.monotonic()
    try:
        found = disturbances.find_disturbances(Root(), sample_s=1.0)
        used_s = read_process_times()[burner.pid].ticks / os.sysconf("SC_CLK_TCK")
        share = used_s / (time.monotonic() - began)
    finally:
        burner.kill()
        burner.wait()
    busy = [finding.text for finding in found if finding.topic == "busy"]
    assert len(busy) == 1
    assert f"pid {burner.pid}" in busy[0] or share < 2 * disturbances.BUSY_LIMIT


def test_findings_are_rendered_by_level() -> None:
    findings = [
        Finding(Level.GOOD, "a", "fine"),
        Finding(Level.MISSING, "bbb", "no such thing", "make one", ("x=1", "y=2")),
        Finding(Level.DISTURBS, "c", "noise", None, ("x=1",)),
    ]
    lines = render(findings).splitlines()
    assert lines[:6] == [
        "missing:",
        "  bbb  no such thing -> make one",
        "disturbs:",
        "  c    noise",
        "good:",
        "  a    fine",
    ]
    assert lines[-1] == "  x=1 y=2"
    assert render([]) == ""


@pytest.mark.parametrize(("asked", "level"), [((), Level.NOTE), (("absent",), Level.MISSING)])
def test_a_switch_that_cannot_run_has_its_remedy_and_is_missing_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], level: Level
) -> None:
    class Absent:
        def probe(self, session: Any, binary: Any) -> None:
            raise Unsupported("absent is not installed: apt install absent\ndetails")

    monkeypatch.setattr(registry, "builtin_switches", lambda: {"absent": Absent})
    found = [finding for finding in host_examination.examine(sample_s=0, asked=asked) if finding.topic == "absent"]
    assert found == [Finding(level, "absent", "absent is not installed: apt install absent")]
    assert exit_code(found) == int(bool(asked))


def test_lxc_reports_its_version_or_why_it_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxc", SimpleNamespace(version="5.0.2"))
    assert list(LxcNode.findings()) == [Finding(Level.GOOD, "LXC", "version 5.0.2")]
    monkeypatch.setitem(sys.modules, "lxc", None)
    (missing,) = LxcNode.findings()
    assert missing.level is Level.MISSING
    assert missing.text.startswith("python-lxc cannot be imported (")
    assert missing.remedy is not None


def test_a_missing_workload_is_reported_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ICBENCH_WORKLOAD", str(tmp_path / "none"))
    assert levels(list(host_examination._workload())) == {"workload": Level.MISSING}


@pytest.mark.parametrize(
    ("said", "level"),
    [("icbench-workload 0.1.0, DPDK 22.11.4", Level.GOOD), ("icbench-workload 0.1.0, without DPDK", Level.MISSING)],
)
def test_a_workload_without_dpdk_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, level: Level
) -> None:
    program = tmp_path / "icbench-workload"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("ICBENCH_WORKLOAD", str(program))
    found = list(host_examination._workload())
    assert [finding.level for finding in found] == [level]
    assert said in found[0].text


def test_every_built_in_switch_is_examined() -> None:
    topics = {finding.topic for finding in host_examination.examine(sample_s=0)}
    assert set(registry.builtin_switches()) <= topics


@pytest.mark.parametrize(
    ("answer", "level", "text"),
    [
        ('{"pairs":[{"ns":63.4,"work_ns":[1600,1600]}]}', Level.GOOD, "cache line 63 ns between CPUs 0-1"),
        ('{"pairs":[null]}', Level.NOTE, "launches will not have any: CPUs 0 and 1 cannot be measured"),
        ("", Level.NOTE, "launches will not have any: its answer: not valid JSON"),
    ],
)
def test_the_distance_of_the_cpus_of_a_pair(
    monkeypatch: pytest.MonkeyPatch, answer: str, level: Level, text: str
) -> None:
    monkeypatch.setattr(host_examination, "plan", lambda *_, **__: Placement("cooperative", (1,), (0, 0), (0,), 0, 128))
    monkeypatch.setattr(host_fitness, "run", lambda *_, **__: SimpleNamespace(stdout=answer))
    (finding,) = host_examination._distance()
    assert finding.level is level
    assert text in finding.text
    assert (finding.remedy is None) == (level is Level.GOOD)
