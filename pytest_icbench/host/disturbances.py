# SPDX-License-Identifier: BSD-3-Clause
"""Finds what disturbs measurements on a host. It reads /sys and /proc, needs no root and changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

from pytest_icbench.host import host_facts
from pytest_icbench.host.cpu_usage import ProcessTime, read_process_times
from pytest_icbench.host.findings import Finding, disturbance, note, success
from pytest_icbench.host.resource import frequency
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.resource.hugepages import memory_kib
from pytest_icbench.host.root import Root, format_cpu_list

#: Stolen share of a CPU's time from which it is reported.
STEAL_LIMIT = 0.005
#: Share of one CPU from which another process is called busy.
BUSY_LIMIT = 0.2


def find_disturbances(root: Root, sample_s: float = 0.3) -> list[Finding]:
    """Returns findings about the host's state.

    ``sample_s``: seconds during which busy processes and stolen time are watched; 0 skips this.
    """
    topology = Topology.read(root)
    findings = [*_frequency(root, topology), *_cores(topology), *_ticks(topology), *_background(root, topology)]
    findings += [*_memory(root), *_virtual(root), *_clock(root)]
    if sample_s > 0:
        findings += _watched(root, sample_s)
    return findings


def _frequency(root: Root, topology: Topology) -> Iterator[Finding]:
    state = frequency.read_frequency(root, [cpu.id for cpu in topology.usable])
    if state.driver is None:
        yield note("governor", "no cpufreq here: the hypervisor or the firmware controls the frequency")
        return
    others = sorted({governor for governor in state.governors.values() if governor != frequency.GOVERNOR})
    if others:
        yield disturbance(
            "governor",
            f"the governor is {', '.join(others)} ({state.driver}), the frequency follows the load",
            "as root, a session sets performance and restores it; to keep it: cpupower frequency-set -g performance",
        )
    else:
        yield success("governor", f"performance ({state.driver})")
    if state.turbo:
        yield disturbance(
            "turbo",
            "turbo is on: the frequency depends on temperature and on what other cores do",
            "as root, a session switches it off and on again",
        )
    elif state.turbo is False:
        yield success("turbo", "off")


def _cores(topology: Topology) -> Iterator[Finding]:
    cores = topology.cores()
    if len(cores) < 3:
        yield disturbance(
            "cores",
            f"{len(cores)} physical cores can be used: a polling switch and two endpoints have to share them",
            "dedicated placement needs one for each worker of the switch and each endpoint, and one for the rest",
        )
    if topology.smt:
        yield disturbance(
            "SMT",
            "cores have siblings: work on one slows the other down",
            "placement avoids siblings; nosmt keeps other processes off them, too",
            ("nosmt",),
        )
    isolated = [cpu.id for cpu in topology.usable if cpu.isolated]
    candidates = isolation_candidates(topology)
    if isolated:
        yield success("isolation", f"CPUs {format_cpu_list(isolated)} are isolated")
    elif candidates:
        cpus = format_cpu_list(candidates)
        yield disturbance(
            "isolation",
            "no CPU is isolated: the scheduler puts other work on pollers' CPUs",
            f"isolate CPUs {cpus}",
            (f"isolcpus=managed_irq,domain,{cpus}",),
        )
    else:
        yield note("isolation", "too few cores to isolate any")


def isolation_candidates(topology: Topology) -> list[int]:
    """Returns the CPUs worth isolating: all but the first core's, if there are four cores or more."""
    cores = topology.cores()
    if len(cores) < 4:
        return []
    return sorted(cpu.id for core in cores[1:] for cpu in core)


def _ticks(topology: Topology) -> Iterator[Finding]:
    candidates = [cpu.id for cpu in topology.usable if cpu.isolated] or isolation_candidates(topology)
    if not candidates:
        return
    ticking = [cpu for cpu in candidates if not topology[cpu].nohz_full]
    if ticking:
        cpus = format_cpu_list(candidates)
        yield disturbance(
            "timer tick",
            f"CPUs {format_cpu_list(ticking)} are interrupted by the timer 100 to 1000 times a second",
            "run them tickless, with RCU's work elsewhere",
            (f"nohz_full={cpus}", f"rcu_nocbs={cpus}"),
        )
    else:
        yield success("timer tick", f"CPUs {format_cpu_list(candidates)} are tickless")


def _background(root: Root, topology: Topology) -> Iterator[Finding]:
    if "irqbalance" in _names(root).values():
        yield disturbance(
            "irqbalance",
            "irqbalance moves interrupts onto any CPU",
            "systemctl stop irqbalance, or ban the measuring CPUs in it",
        )
    if len({cpu.node for cpu in topology.cpus}) > 1 and root.read_int("/proc/sys/kernel/numa_balancing"):
        yield disturbance(
            "NUMA balancing",
            "the kernel unmaps pages to find out who uses them, and moves them",
            "sysctl kernel.numa_balancing=0",
            ("numa_balancing=disable",),
        )
    if root.read_int("/proc/sys/kernel/nmi_watchdog"):
        yield disturbance(
            "watchdog",
            "the NMI watchdog interrupts each CPU regularly and occupies a performance counter",
            "sysctl kernel.nmi_watchdog=0",
            ("nmi_watchdog=0",),
        )


def _memory(root: Root) -> Iterator[Finding]:
    if host_facts.transparent_hugepages(root) == "always":
        yield disturbance(
            "THP",
            "transparent huge pages are always on: khugepaged compacts memory in the background",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            ("transparent_hugepage=madvise",),
        )
    memory = memory_kib(root)
    used = memory.get("SwapTotal", 0) - memory.get("SwapFree", 0)
    if used > 0:
        yield disturbance("swap", f"{used // 1024} MiB are swapped out", "free memory, then swapoff -a; swapon -a")


def _virtual(root: Root) -> Iterator[Finding]:
    kind = host_facts.hypervisor(root)
    if kind is not None:
        yield disturbance(
            "virtual machine",
            f"this is a virtual machine (hypervisor: {kind}): other guests share its cores, caches and memory",
            "compare only interleaved measurements; watch the stolen time in the results",
        )


def _clock(root: Root) -> Iterator[Finding]:
    flags = host_facts.cpu_info(root).get("flags", "").split()
    if flags and not {"constant_tsc", "nonstop_tsc"} <= set(flags):
        yield disturbance(
            "clock",
            "the CPU reports no invariant time stamp counter: times may be wrong",
            "measure on another machine, or let the hypervisor pass invtsc",
        )
    source = host_facts.clock_source(root)
    if source not in (None, "tsc", "kvm-clock"):
        yield disturbance(
            "clock",
            f"the kernel found the time stamp counter unstable, so its clock is {source}, which is slow to read",
            "look for the reason in dmesg",
        )


def _names(root: Root) -> dict[int, str]:
    """Returns the names of processes by pid."""
    return {int(pid): root.read(f"/proc/{pid}/comm") or "" for pid in root.list("/proc") if pid.isdigit()}


def busy_processes(
    before: Mapping[int, ProcessTime], after: Mapping[int, ProcessTime], seconds: float
) -> dict[int, float]:
    """Returns the processes that were busy between two readings, without this one.

    Args:
        before: processes by pid at the first reading.
        after: the same at the second reading.
        seconds: time between the readings.

    Returns the share of one CPU by pid, from ``BUSY_LIMIT`` on.
    """
    rate = os.sysconf("SC_CLK_TCK") * seconds
    shares = {
        pid: (process.ticks - before[pid].ticks) / rate
        for pid, process in after.items()
        if pid in before and pid != os.getpid()
    }
    return {pid: share for pid, share in shares.items() if share >= BUSY_LIMIT}


def _watched(root: Root, sample_s: float) -> Iterator[Finding]:
    meter = host_facts.StealMeter(root)
    before, begin = read_process_times(root.base), time.monotonic()
    time.sleep(sample_s)
    after, seconds = read_process_times(root.base), time.monotonic() - begin
    busy = sorted(busy_processes(before, after, seconds).items(), key=lambda item: -item[1])
    if busy:
        processes = ", ".join(f"{after[pid].name} (pid {pid}, {share:.0%})" for pid, share in busy[:5])
        yield disturbance("busy", f"other processes use the CPUs: {processes}", "wait for them, or stop them")
    stolen = {cpu: share for cpu, share in meter.read().items() if share > STEAL_LIMIT}
    if stolen:
        shares = ", ".join(f"CPU {cpu} {share:.1%}" for cpu, share in sorted(stolen.items()))
        yield disturbance(
            "steal",
            f"the hypervisor takes time away: {shares} just now",
            "pin the guest's CPUs on the host, or measure when it is quiet",
        )
