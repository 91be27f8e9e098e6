# SPDX-License-Identifier: BSD-3-Clause
"""Facts about a host and its programs that accompany results.

The identity must match for a comparison. The treatment may differ and is shown. The conditions only cause warnings.
"""

from __future__ import annotations

import hashlib
import hmac
import platform
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.cpu_usage import read_cpu_ticks
from pytest_icbench.host.process import run
from pytest_icbench.host.resource import frequency
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.resource.hugepages import memory_kib
from pytest_icbench.host.root import Root
from pytest_icbench.model.candidate import Program

#: Kernel parameters that change what a packet path costs.
_PARAMETERS = (
    *("isolcpus", "nohz", "nohz_full", "rcu_nocbs", "rcu_nocb_poll", "preempt", "skew_tick", "nosmt"),
    *("hugepages", "hugepagesz", "default_hugepagesz", "transparent_hugepage", "numa_balancing"),
    *("intel_iommu", "amd_iommu", "iommu", "mitigations", "tsc", "nmi_watchdog", "audit"),
    *("idle", "processor.max_cstate", "intel_idle.max_cstate", "intel_pstate", "amd_pstate"),
)


def cpu_info(root: Root) -> dict[str, str]:
    """Returns the fields of the first processor in /proc/cpuinfo by name."""
    fields: dict[str, str] = {}
    for line in (root.read("/proc/cpuinfo") or "").splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            break
        fields[key.strip()] = value.strip()
    return fields


def iommu_parameters(root: Root) -> tuple[str, ...]:
    """Returns the kernel parameters that switch the IOMMU on."""
    amd = "AMD" in cpu_info(root).get("vendor_id", "")
    return ("amd_iommu=on" if amd else "intel_iommu=on", "iommu=pt")


def hypervisor(root: Root) -> str | None:
    """Returns the hypervisor's name, ``unknown`` if it gives none, None on a bare machine."""
    product = " ".join(filter(None, (root.read(f"/sys/class/dmi/id/{key}") for key in ("sys_vendor", "product_name"))))
    if kind := root.read("/sys/hypervisor/type"):
        return kind
    if "hypervisor" not in cpu_info(root).get("flags", "").split():
        return None
    return product or "unknown"


def machine(root: Root) -> str | None:
    """Returns a stable name for this installation: 16 hexadecimal digits.

    They are a hash of the machine id, which is confidential itself. None without one: an image has the text
    ``uninitialized`` until its first boot, on every host.
    """
    text = root.read("/etc/machine-id") or ""
    if not re.fullmatch(r"[0-9a-f]{32}", text):
        return None
    return hmac.new(text.encode(), b"pytest-icbench", hashlib.sha256).hexdigest()[:16]


def sha256(path: Path) -> str | None:
    """Returns the hash of a program or another file, in hexadecimal digits; None if it cannot be read."""
    try:
        found = path.stat()
        return _sha256(path, found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None
    except OSError:
        return None


@lru_cache
def _sha256(path: Path, _mtime_ns: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def distribution(root: Root) -> str | None:
    """Returns ``PRETTY_NAME`` of os-release."""
    for line in (root.read("/etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return None


def identity(root: Root | None = None) -> dict[str, Any]:
    """Returns the facts that both sides of a comparison share: the hardware as the kernel sees it."""
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
    """Returns the facts that an upgrade changes: kernel, parameters, distribution, mitigations."""
    root = root or Root()
    kernel = root.read("/proc/sys/kernel/osrelease") or (platform.release() if root.live else None)
    return {
        "kernel": kernel,
        "kernel_parameters": kernel_parameters(root),
        "distribution": distribution(root),
        "microcode": cpu_info(root).get("microcode"),
        "mitigations": mitigations(root),
        "transparent_hugepages": transparent_hugepages(root),
        "clock_source": clock_source(root),
    }


def transparent_hugepages(root: Root) -> str | None:
    """Returns the mode of transparent huge pages: ``always``, ``madvise`` or ``never``."""
    choices = (root.read("/sys/kernel/mm/transparent_hugepage/enabled") or "").split()
    return next((word.strip("[]") for word in choices if word.startswith("[")), None)


def clock_source(root: Root) -> str | None:
    """Returns the name of the kernel's clock."""
    return root.read("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def kernel_parameters(root: Root) -> dict[str, str]:
    """Returns the relevant boot parameters of the kernel by name; the text is empty for one without a value."""
    parameters: dict[str, str] = {}
    for word in (root.read("/proc/cmdline") or "").split():
        key, _, value = word.partition("=")
        if key in _PARAMETERS:
            parameters[key] = f"{parameters[key]} {value}" if key in parameters else value
    return parameters


def mitigations(root: Root) -> dict[str, str]:
    """Returns the state of each CPU vulnerability that affects this machine."""
    directory = "/sys/devices/system/cpu/vulnerabilities"
    states = {name: root.read(f"{directory}/{name}") or "" for name in root.list(directory)}
    return {name: state for name, state in states.items() if state and state != "Not affected"}


def temperature_celsius(root: Root) -> float | None:
    """Returns the temperature of the hottest CPU package (else thermal zone); None if no sensor is readable."""
    sensors = []
    for name in root.glob("/sys/class/hwmon/hwmon*/name"):
        if root.read(name) in ("coretemp", "k10temp", "zenpower"):
            sensors += root.glob(name.removesuffix("name") + "temp*_input")
    values = [root.read_int(sensor) for sensor in sensors or root.glob("/sys/class/thermal/thermal_zone*/temp")]
    known = [value / 1000 for value in values if value is not None]
    return max(known) if known else None


def frequency_mhz(root: Root, cpus: Iterable[int]) -> dict[int, float]:
    """Returns the current frequency by CPU, in MHz, from cpufreq or else from /proc/cpuinfo."""
    frequencies: dict[int, float] = {}
    for cpu in cpus:
        khz = root.read_int(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
        if khz is not None:
            frequencies[cpu] = khz / 1000
    if frequencies:
        return frequencies
    current = -1
    selected = set(cpus)
    for line in (root.read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "processor":
            current = int(value)
        elif key.strip() == "cpu MHz" and current in selected:
            frequencies[current] = float(value)
    return frequencies


def conditions(root: Root | None = None, cpus: Iterable[int] | None = None) -> dict[str, Any]:
    """Returns the momentary state: load, frequency, temperature, stolen time, swap."""
    root = root or Root()
    selected = sorted(cpus) if cpus is not None else [cpu.id for cpu in Topology.read(root).cpus if cpu.online]
    state = frequency.read_frequency(root, selected)
    load = (root.read("/proc/loadavg") or "").split()
    memory = memory_kib(root)
    return {
        "load_1min": float(load[0]) if load else None,
        "frequency_mhz": frequency_mhz(root, selected),
        "frequency_driver": state.driver,
        "governors": sorted(set(state.governors.values())),
        "turbo": state.turbo,
        "temperature_celsius": temperature_celsius(root),
        "steal_ticks": steal_ticks(root, selected),
        "swap_used_kib": memory.get("SwapTotal", 0) - memory.get("SwapFree", 0),
    }


def steal_ticks(root: Root, cpus: Iterable[int]) -> int:
    """Returns the ticks (100 a second) that the hypervisor took from these CPUs since boot."""
    ticks = read_cpu_ticks(root.base)
    return sum(ticks[cpu].stolen for cpu in cpus if cpu in ticks)


class StealMeter:
    """Measures the share of each CPU's time that the hypervisor takes. The resolution is 10 ms."""

    def __init__(self, root: Root | None = None) -> None:
        self._root = root or Root()
        self._last = read_cpu_ticks(self._root.base)

    def read(self) -> Mapping[int, float]:
        """Returns the share by CPU, 0 to 1, since the last call or the constructor; 0 if no tick has passed."""
        now = read_cpu_ticks(self._root.base)
        shares = {}
        for cpu, ticks in now.items():
            before = self._last.get(cpu, ticks)
            passed = ticks.total - before.total
            shares[cpu] = max(0.0, (ticks.stolen - before.stolen) / passed) if passed > 0 else 0.0
        self._last = now
        return shares


_TOOL_S = 10.0
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")
#: DPDK loads its drivers from a directory next to its libraries; programs do not link them.
_DPDK, _DPDK_DRIVERS = "librte_eal.so", "dpdk/pmds-*/*.so*"


def read_program(path: Path | None, version: str | None = None, *, own_libraries: bool = True) -> Program | None:
    """Returns a program as it is now; None without a path.

    Args:
        version: as the program reports it.
        own_libraries: whether its libraries are a part of what is tested.
    """
    if path is None:
        return None
    return Program(
        str(path), sha256(path), digest_libraries(path) if own_libraries else None, find_package(path), version
    )


def digest_libraries(path: Path) -> str | None:
    """Returns a digest of a program's shared libraries; None for a script, or a program that has none.

    It is computed once for each file: a session that outlives an upgrade has still mapped the old libraries.
    """
    try:
        return _digest_libraries(path, path.stat().st_mtime_ns)
    except OSError:  # it is gone
        return None


@lru_cache
def _digest_libraries(path: Path, _mtime_ns: int) -> str | None:
    digests = sorted({digest for file in _libraries(path) if (digest := sha256(file)) is not None})
    return hashlib.sha256("".join(digests).encode()).hexdigest() if digests else None


def _libraries(path: Path) -> Iterator[Path]:
    try:
        shown = run(["ldd", path], timeout_s=_TOOL_S, check=False).stdout
    except ProvisionError:
        return
    for name in _LIBRARY.findall(shown):
        file = Path(name)
        yield file
        if file.name.startswith(_DPDK):
            yield from file.parent.glob(_DPDK_DRIVERS)


@lru_cache
def find_package(path: Path) -> str | None:
    """Returns the Debian package that installed a file, with its version; None for a file of no package."""
    if shutil.which("dpkg-query") is None:
        return None
    # With /usr merged, a package may list its file under the old path.
    real = path.resolve()
    for name in dict.fromkeys((real, path, Path("/", *real.parts[2:]))):
        try:
            found = run(["dpkg-query", "--search", name], timeout_s=_TOOL_S, check=False).stdout
            owner = found.partition(": ")[0].partition(",")[0]
            if owner and not owner.startswith("diversion"):
                command = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}", owner]
                return run(command, timeout_s=_TOOL_S, check=False).stdout.strip() or None
        except ProvisionError:
            return None
    return None
