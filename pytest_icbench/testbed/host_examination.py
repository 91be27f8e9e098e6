# SPDX-License-Identifier: BSD-3-Clause
"""``icbench doctor``: whether everything can run here, and what would disturb it. Without root, without changes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping

from pytest_icbench.driver.function.registry import components
from pytest_icbench.driver.guard import make_function, make_switch, node_findings
from pytest_icbench.driver.node import precedence
from pytest_icbench.driver.node.registry import node_kinds
from pytest_icbench.driver.switch import registry
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.workload.executable import REBUILD, workload_path
from pytest_icbench.errors import IcbenchError, ProvisionError, Unsupported
from pytest_icbench.host import cpu_usage, disturbances, host_facts, rights
from pytest_icbench.host.findings import Finding, Level, disturbance, lack, note, success
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.host.process import run
from pytest_icbench.host.resource import hugepages, perf
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.resource.hugepages import memory_kib
from pytest_icbench.host.root import Root, format_cpu_list
from pytest_icbench.model.placement import CpuState
from pytest_icbench.testbed.cpu_placement import plan
from pytest_icbench.testbed.host_fitness import read_cpu_state
from pytest_icbench.testbed.noisy_neighbour_load import noisy_neighbour_findings
from pytest_icbench.testbed.probe import application_findings

#: Huge pages that a switch and two endpoints take at most, in MiB.
PLENTY_MIB = 2048


def examine(
    root: Root | None = None,
    sample_s: float = 0.3,
    pf: str | None = None,
    switches: Mapping[str, type[Switch]] | None = None,
    asked: Collection[str] = (),
) -> list[Finding]:
    """Returns findings about this host. Switches, LXC and the workload are examined on the running machine only.

    Args:
        root: of the files of the host; None for this machine's.
        sample_s: how long disturbances are watched, in seconds.
        pf: the card that ``sriov`` is to use.
        switches: the drivers by name; None for this package's.
        asked: the switches to examine: one that cannot run is missing. Empty: every switch, and one that cannot run is
            a note, since only its cases are skipped.
    """
    root = root or Root()
    findings = [*_hardware(root), *_placement(root), *_cgroups(root), *_huge_pages(root)]
    if root.live:
        known = registry.builtin_switches() if switches is None else switches
        findings += [*_root(), *_counters(root), *_nodes(), *_workload(), *_distance(), *_switches(known, asked, pf)]
        findings += _programs()
    return findings + disturbances.find_disturbances(root, sample_s)


def _hardware(root: Root) -> Iterator[Finding]:
    known, kernel = host_facts.identity(root), host_facts.treatment(root)
    yield note(
        "host",
        f"{known['cpu_model']}, {known['sockets']} sockets, {known['cores']} cores, {known['cpus']} CPUs,"
        f" {known['numa_nodes']} NUMA nodes, {known['memory_gib']} GiB;"
        f" {kernel['distribution']}, Linux {kernel['kernel']}",
    )
    cards = [name for name in root.glob("/sys/bus/pci/devices/*/sriov_totalvfs") if root.read_int(name)]
    if cards and not root.list("/sys/kernel/iommu_groups"):
        yield disturbance(
            "IOMMU",
            f"{len(cards)} devices have SR-IOV, but without an IOMMU their functions cannot be given to a container",
            "switch it on in the firmware and the kernel",
            host_facts.iommu_parameters(root),
        )


def _placement(root: Root) -> Iterator[Finding]:
    """Yields the placement of one pair and a switch with one worker."""
    topology = Topology.read(root)
    try:
        placement = plan(topology, workers=1, endpoints=2, policy="auto")
    except Unsupported as error:
        yield note("placement", str(error))
        return
    switch, endpoints = (format_cpu_list(sorted({*cpus})) for cpus in (placement.switch, placement.endpoints))
    text = f"a switch's worker on CPU {switch}, a pair on {endpoints} ({placement.policy}): {placement.where}"
    yield note("placement", text)


def _root() -> Iterator[Finding]:
    missing = rights.explain_missing_rights(Root())
    if os.geteuid() == 0 and missing is not None:
        sentence, _, remedy = missing.partition(": ")
        yield lack("root", sentence, remedy)
    elif os.geteuid() == 0:
        yield success("root", "this is root: sessions can change the host")
    else:
        yield note("root", "not root: this examination works, but a session needs root", "run pytest as root")


def _counters(root: Root) -> Iterator[Finding]:
    energy = perf.explain_missing_energy(root)
    if energy is None:
        yield success("energy", "the CPU packages report their energy (RAPL): results have it per frame")
    else:
        yield note("energy", f"{energy}: results have no energy per frame", "measure on physical hardware, as root")
    reason = perf.unsupported_reason()
    if reason is None:
        yield success("hardware events", "the kernel counts cycles, instructions and cache misses")
        return
    kind, paranoid = host_facts.hypervisor(root), root.read("/proc/sys/kernel/perf_event_paranoid")
    if kind is not None:
        remedy = "let the hypervisor pass the processor's counters (vPMU) to this machine"
    elif os.geteuid() != 0:
        remedy = "look again as root"
    else:
        remedy = "boot a kernel with CONFIG_PERF_EVENTS and switch the counters on in the firmware"
    yield note(
        "hardware events",
        f"the kernel counts no hardware events ({reason}; perf_event_paranoid is {paranoid}): {perf.LACKED}",
        remedy,
    )


def _cgroups(root: Root) -> Iterator[Finding]:
    controllers = root.read("/sys/fs/cgroup/cgroup.controllers")
    if controllers is not None:
        if "cpuset" in controllers.split():
            yield success("cgroups", "version 2, with cpuset")
        else:
            yield lack(
                "cgroups",
                "version 2 without the cpuset controller: containers cannot be pinned",
                "delegate it (cgroup.subtree_control), or use --icbench-node netns",
            )
    elif root.exists("/sys/fs/cgroup/cpuset/cpuset.cpus"):
        yield success("cgroups", "version 1, with cpuset")
    else:
        yield lack("cgroups", "no cpuset is mounted: containers cannot be pinned", "mount cgroup2 on /sys/fs/cgroup")
    yield from precedence.findings(root)
    yield from cpu_usage.quota_findings(root, os.getpid())


def _huge_pages(root: Root) -> Iterator[Finding]:
    nodes = sorted({cpu.node for cpu in Topology.read(root).cpus})
    memory = memory_kib(root)
    spare_mib = memory.get("MemAvailable", 0) // 1024
    for node in nodes:
        sizes = hugepages.sizes_kib(root, node)
        if not sizes:
            yield lack(
                "huge pages", f"NUMA node {node} has none: DPDK cannot run", "boot a kernel with CONFIG_HUGETLBFS"
            )
            continue
        states, free_mib = [], 0
        for size in sizes:
            total, free = hugepages.counts(root, node, size)
            free_mib += free * size // 1024
            states.append(f"{total} pages of {size // 1024} MiB ({free} free)")
        level = Level.GOOD if free_mib + spare_mib >= PLENTY_MIB else Level.MISSING
        yield Finding(
            level,
            "huge pages",
            f"NUMA node {node}: {', '.join(states)}; more are taken from {spare_mib} MiB of free memory",
            None if level is Level.GOOD else f"free {PLENTY_MIB} MiB of memory, or reserve pages at boot",
            () if level is Level.GOOD else ("hugepagesz=2M", f"hugepages={PLENTY_MIB // 2}"),
        )


def _nodes() -> Iterator[Finding]:
    for cls in node_kinds():
        try:
            yield from node_findings(cls)
        except IcbenchError as error:
            yield lack(cls.kind, str(error).splitlines()[0])


def _workload() -> Iterator[Finding]:
    try:
        program = workload_path()
        version = run([program, "--version"], timeout_s=10).stdout.strip()
    except IcbenchError as error:
        yield lack("workload", str(error).splitlines()[0])
        return
    try:
        dpdk = json.loads(version).get("dpdk")
    except (ValueError, AttributeError):
        dpdk = version if "dpdk" in version.lower() else None
    if dpdk and "without" not in str(dpdk).lower():
        yield success("workload", f"{program}: {version}")
    else:
        yield lack(
            "workload",
            f"{program} was built without DPDK ({version}): it has only the socket applications",
            f"apt install libdpdk-dev, and {REBUILD}",
        )


def _programs() -> Iterator[Finding]:
    """Yields the programs of applications, network functions, noisy neighbours and scenarios.

    Functions of the kernel and of a switch come with these.
    """
    yield from application_findings()
    session = HostSession.probing(SessionOptions())
    for cls in (component for component in components() if component.takes_binary):
        try:
            version = make_function(cls).probe(session, "").version
        except (Unsupported, ProvisionError) as error:
            yield note(f"function {cls.name}", str(error).splitlines()[0])
        else:
            yield success(f"function {cls.name}", version or "can run")
    yield from noisy_neighbour_findings()
    if shutil.which("criu") is None:
        yield note("criu", "is not installed: test_checkpoint.py is skipped", "apt install criu")
    else:
        yield success("criu", "is installed")


def _distance() -> Iterator[Finding]:
    """Yields the distance of the CPUs of one pair and a switch with one worker."""
    try:
        pairs = plan(Topology.read(), workers=1, endpoints=2, policy="auto").hand_overs
        state, fault = read_cpu_state(pairs)
    except IcbenchError as error:
        state, fault = CpuState(), str(error).splitlines()[0]
    if fault is not None or state.distance_ns is None or state.work_ns is None:
        remedy = "give this process every CPU (cpuset), and end what keeps them busy in real time"
        yield note("distance", f"launches will not have any: {fault}", remedy)
        return
    between = " and ".join(f"{first}-{second}" for first, second in pairs)
    text = f"cache line {state.distance_ns:.0f} ns between CPUs {between}, a piece of work {state.work_ns:.0f} ns"
    yield success("distance", text)


def _switches(known: Mapping[str, type[Switch]], asked: Collection[str], pf: str | None) -> Iterator[Finding]:
    session, absent = HostSession.probing(SessionOptions(pf=pf)), Level.MISSING if asked else Level.NOTE
    for name in asked or known:
        if name not in known:
            text = "comes from another package, and such a switch runs on one host only"
            yield lack(name, text)
            continue
        driver = known[name]
        try:
            version = make_switch(driver).probe(session, None).version
            make_switch(driver).probe_api(session, driver.default_apis[0])
        except Unsupported as error:
            yield Finding(absent, name, str(error).splitlines()[0])
        except IcbenchError as error:
            yield lack(name, f"its probe failed: {str(error).splitlines()[0]}")
        else:
            yield success(name, version or "can run")
