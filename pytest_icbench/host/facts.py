# SPDX-License-Identifier: BSD-3-Clause
"""Facts about a host around its results.

Identity must match for a comparison, treatment is expected to differ and shown, conditions warn.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_icbench.host.resource import frequency
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.resource.memory import memory_kib
from pytest_icbench.host.root import Root

#: Kernel parameters that change what a packet path costs.
_PARAMETERS = (
    *("isolcpus", "nohz", "nohz_full", "rcu_nocbs", "rcu_nocb_poll", "preempt", "skew_tick", "nosmt"),
    *("hugepages", "hugepagesz", "default_hugepagesz", "transparent_hugepage", "numa_balancing"),
    *("intel_iommu", "amd_iommu", "iommu", "mitigations", "tsc", "nmi_watchdog", "audit"),
    *("idle", "processor.max_cstate", "intel_idle.max_cstate", "intel_pstate", "amd_pstate"),
)
_STEAL_FIELD = 8


def cpu_info(root: Root) -> dict[str, str]:
    """The first processor of /proc/cpuinfo: its fields by name."""
    found: dict[str, str] = {}
    for line in (root.read("/proc/cpuinfo") or "").splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            break
        found[key.strip()] = value.strip()
    return found


def iommu_parameters(root: Root) -> tuple[str, ...]:
    """Kernel parameters that switch the IOMMU on."""
    amd = "AMD" in cpu_info(root).get("vendor_id", "")
    return ("amd_iommu=on" if amd else "intel_iommu=on", "iommu=pt")


def hypervisor(root: Root) -> str | None:
    """Name of the hypervisor beneath, ``unknown`` if it does not tell, None on a bare machine."""
    product = " ".join(filter(None, (root.read(f"/sys/class/dmi/id/{key}") for key in ("sys_vendor", "product_name"))))
    if kind := root.read("/sys/hypervisor/type"):
        return kind
    if "hypervisor" not in cpu_info(root).get("flags", "").split():
        return None
    return product or "unknown"


def machine(root: Root) -> str | None:
    """A stable name for this installation: 16 hexadecimal digits made of the machine id, which is confidential."""
    text = root.read("/etc/machine-id")
    return hmac.new(text.encode(), b"pytest-icbench", hashlib.sha256).hexdigest()[:16] if text else None


def distribution(root: Root) -> str | None:
    """``PRETTY_NAME`` of os-release."""
    for line in (root.read("/etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return None


def identity(root: Root | None = None) -> dict[str, Any]:
    """What must be the same on both sides of a comparison: the hardware as the kernel sees it."""
    root = root or Root()
    topology, info = Topology.read(root), cpu_info(root)
    online = [cpu for cpu in topology.cpus if cpu.online]
    return {
        "machine": machine(root),
        "cpu_model": info.get("model name"),
        "sockets": len({cpu.socket for cpu in online}),
        "cores": len({cpu.siblings for cpu in online}),
        "cpus": len(online),
        "numa_nodes": len({cpu.node for cpu in online}),
        "smt": topology.smt,
        "memory_gib": round(memory_kib(root).get("MemTotal", 0) / 1048576),
        "hypervisor": hypervisor(root),
    }


def treatment(root: Root | None = None) -> dict[str, Any]:
    """What an upgrade changes, and what a comparison therefore shows: kernel, parameters, distribution, mitigations."""
    root = root or Root()
    kernel = root.read("/proc/sys/kernel/osrelease") or (platform.release() if root.live else None)
    return {
        "kernel": kernel,
        "kernel_parameters": kernel_parameters(root),
        "distribution": distribution(root),
        "microcode": cpu_info(root).get("microcode"),
        "mitigations": mitigations(root),
        "transparent_hugepages": _chosen(root.read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "clock_source": root.read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }


def _chosen(text: str | None) -> str | None:
    """The word in brackets of a file that lists its choices: ``always [madvise] never``."""
    return next((word.strip("[]") for word in (text or "").split() if word.startswith("[")), None)


def kernel_parameters(root: Root) -> dict[str, str]:
    """Parameters the kernel was booted with, of those that matter here; the empty text for one without a value."""
    found: dict[str, str] = {}
    for word in (root.read("/proc/cmdline") or "").split():
        key, _, value = word.partition("=")
        if key in _PARAMETERS:
            found[key] = f"{found[key]} {value}" if key in found else value
    return found


def mitigations(root: Root) -> dict[str, str]:
    """State of each CPU vulnerability that affects this machine."""
    directory = "/sys/devices/system/cpu/vulnerabilities"
    states = {name: root.read(f"{directory}/{name}") or "" for name in root.list(directory)}
    return {name: state for name, state in states.items() if state and state != "Not affected"}


def temperature_celsius(root: Root) -> float | None:
    """The hottest sensor of the CPU packages (else of any thermal zone); None where nothing is readable."""
    sensors = []
    for name in root.glob("/sys/class/hwmon/hwmon*/name"):
        if root.read(name) in ("coretemp", "k10temp", "zenpower"):
            sensors += root.glob(name.removesuffix("name") + "temp*_input")
    values = [root.read_int(sensor) for sensor in sensors or root.glob("/sys/class/thermal/thermal_zone*/temp")]
    known = [value / 1000 for value in values if value is not None]
    return max(known) if known else None


def frequency_mhz(root: Root, cpus: Iterable[int]) -> dict[int, float]:
    """Current frequency by CPU, in MHz: cpufreq's, else what /proc/cpuinfo says."""
    found: dict[int, float] = {}
    for cpu in cpus:
        khz = root.read_int(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
        if khz is not None:
            found[cpu] = khz / 1000
    if found:
        return found
    current = -1
    wanted = set(cpus)
    for line in (root.read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "processor":
            current = int(value)
        elif key.strip() == "cpu MHz" and current in wanted:
            found[current] = float(value)
    return found


def conditions(root: Root | None = None, cpus: Iterable[int] | None = None) -> dict[str, Any]:
    """The weather: load, frequency, temperature, stolen time, swap. They warn and decide nothing."""
    root = root or Root()
    chosen = sorted(cpus) if cpus is not None else [cpu.id for cpu in Topology.read(root).cpus if cpu.online]
    ruled = frequency.read(root, chosen)
    load = (root.read("/proc/loadavg") or "").split()
    memory = memory_kib(root)
    return {
        "load_1min": float(load[0]) if load else None,
        "frequency_mhz": frequency_mhz(root, chosen),
        "frequency_driver": ruled.driver,
        "governors": sorted(set(ruled.governors.values())),
        "turbo": ruled.turbo,
        "temperature_celsius": temperature_celsius(root),
        "steal_ticks": steal_ticks(root, chosen),
        "swap_used_kib": memory.get("SwapTotal", 0) - memory.get("SwapFree", 0),
    }


def cpu_ticks(root: Root) -> dict[int, tuple[int, int]]:
    """Ticks of each CPU since boot: all of them, and the stolen ones (proc(5), /proc/stat)."""
    found = {}
    for line in (root.read("/proc/stat") or "").splitlines():
        fields = line.split()
        if fields and fields[0].startswith("cpu") and fields[0] != "cpu" and len(fields) > _STEAL_FIELD:
            values = [int(field) for field in fields[1 : _STEAL_FIELD + 1]]  # guest time is in user time already
            found[int(fields[0][3:])] = (sum(values), values[-1])
    return found


def steal_ticks(root: Root, cpus: Iterable[int]) -> int:
    """Ticks (100 a second) that the hypervisor took from these CPUs since boot."""
    ticks = cpu_ticks(root)
    return sum(ticks[cpu][1] for cpu in cpus if cpu in ticks)


class StealMeter:
    """Share of each CPU's time that the hypervisor took since the meter was made or last read. Resolution: 10 ms."""

    def __init__(self, root: Root | None = None) -> None:
        self._root = root or Root()
        self._last = cpu_ticks(self._root)

    def read(self) -> Mapping[int, float]:
        """Share by CPU, 0 to 1, and starts anew; 0 for a CPU of which no tick has passed."""
        now = cpu_ticks(self._root)
        shares = {}
        for cpu, (total, stolen) in now.items():
            before_total, before_stolen = self._last.get(cpu, (total, stolen))
            passed = total - before_total
            shares[cpu] = max(0.0, (stolen - before_stolen) / passed) if passed > 0 else 0.0
        self._last = now
        return shares


def involuntary_switches(pid: int, root: Root | None = None) -> int | None:
    """How often the threads of a process were preempted since they started; None if it has ended."""
    root = root or Root()
    total, seen = 0, False
    for thread in root.list(f"/proc/{pid}/task"):
        for line in (root.read(f"/proc/{pid}/task/{thread}/status") or "").splitlines():
            if line.startswith("nonvoluntary_ctxt_switches:"):
                total, seen = total + int(line.partition(":")[2]), True
    return total if seen else None


def ticks_per_second() -> int:
    """Unit of /proc/stat."""
    return os.sysconf("SC_CLK_TCK")
