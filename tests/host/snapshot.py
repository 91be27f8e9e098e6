# SPDX-License-Identifier: BSD-3-Clause
"""Takes what a session may change on a host as data, so that two snapshots show what was left."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

Snapshot = dict[str, dict[str, str]]

#: Programs that only a session starts on a machine under test.
_PROGRAMS = re.compile(
    r"icbench-workload|dpdk-testpmd|basicfwd|ovs-vswitchd|ovsdb-server|lxc monitor|lxc-start|/vpp\b|\bsnabb\b"
)
_DIRECTORIES = (
    *(
        "/run/icbench",
        "/run/netns",
        "/run/lxc",
        "/run/lock/lxc",
        "/run/openvswitch",
        "/var/run/openvswitch",
        "/run/vpp",
    ),
    *("/run/dpdk", "/var/run/dpdk", "/var/lib/lxc", "/var/log/lxc", "/dev/shm", "/dev/hugepages", "/dev/vfio"),
    *("/run/runc", "/run/crun", "/run/libpod", "/run/containers", "/var/lib/containers", "/run/docker"),
    *("/etc/openvswitch", "/var/lib/openvswitch", "/var/log/openvswitch", "/var/run/snabb"),
)
_PASSING_ON = re.compile(r"vfio|iommufd|irqbypass|uio|vf$")
_TEMPORARY = re.compile(r"^(icb|vhost_features|rte_|dpdk|ovs|lxc|snabb|vpp)")
#: The control groups of hosts that scripts/own_host.sh made on this machine.
_OWN_HOST = re.compile(r"/(own-host\.\d+)(?:/|$)", re.MULTILINE)


def take() -> Snapshot:
    """Returns everything that a session may leave: kind -> name -> state."""
    return {
        "process": _processes(),
        "link": _links(),
        "PCI function": _pci_functions(),
        "module": _modules(),
        "mount": _mounts(),
        "cgroup": dict.fromkeys(_cgroups(), ""),
        "huge pages": _huge_pages(),
        "file": dict.fromkeys(_files(), ""),
        "container socket": _container_sockets(),
        "cpu setting": _cpu_settings(),
    }


def difference(a: Snapshot, b: Snapshot) -> list[str]:
    """Returns what ``b`` has and ``a`` has not, what it lacks, and what has another state; one line each."""
    said = []
    for kind in a:
        for name in sorted(a[kind].keys() | b[kind].keys()):
            before, after = a[kind].get(name), b[kind].get(name)
            if before is None:
                said.append(f"{kind} {name} is new ({after})" if after else f"{kind} {name} is new")
            elif after is None:
                said.append(f"{kind} {name} is gone")
            elif before != after:
                said.append(f"{kind} {name}: {before} became {after}")
    return said


def left_since(before: Snapshot, timeout_s: float = 5.0, *, but: str = "\n") -> list[str]:
    """Returns the ``difference`` to now, after up to ``timeout_s`` seconds for the kernel's work in the background.

    Lines that contain ``but`` may be left.
    """
    deadline = time.monotonic() + timeout_s
    while (left := [line for line in difference(before, take()) if but not in line]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def elsewhere(pid: int) -> bool:
    """Whether a process is of another host on this machine. Raises OSError if it has ended."""
    return own_host(pid) != own_host(os.getpid())


def own_host(pid: int) -> str | None:
    """Returns the name of the separate host on which a process is; None for this machine itself."""
    return _named_in(Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"))


def _named_in(text: str) -> str | None:
    match = _OWN_HOST.search(text)
    return None if match is None else match[1]


def _processes() -> dict[str, str]:
    """Returns processes of sessions and of the host, without those that another run of pytest has started."""
    found = {}
    own = {pid for pid, words in _ancestry(os.getpid()) if _is_pytest(words)}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if not command:  # a kernel thread or a zombie
                continue
            program = " ".join(command.split()[:2])
            marked = b"ICBENCH_SESSION=" in (entry / "environ").read_bytes()
            looks_so = _PROGRAMS.search(program) and not program.startswith(("/bin/sh", "bash", "vi"))
            if (marked or looks_so) and not elsewhere(int(entry.name)) and not is_of_another_run(int(entry.name), own):
                found[entry.name] = command[:100]
    return found


def is_of_another_run(pid: int, own: set[int]) -> bool:
    """Whether a running pytest that is not in ``own`` has started a process; False if its parents have ended.

    An inner run counts for the test that started it, even where that cannot be seen any more.
    """
    ancestry = list(_ancestry(pid))
    if own.intersection(ancestor for ancestor, _ in ancestry):
        return False
    return any(
        _is_pytest(words) and b"PYTEST_CURRENT_TEST=" not in Path(f"/proc/{ancestor}/environ").read_bytes()
        for ancestor, words in ancestry
    )


def _ancestry(pid: int) -> Iterator[tuple[int, list[str]]]:
    """Returns a process and its ancestors, each with its command line."""
    with suppress(OSError):
        while pid > 1:
            directory = Path(f"/proc/{pid}")
            yield pid, (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
            pid = int((directory / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])


def _is_pytest(words: list[str]) -> bool:
    return any(Path(word).name in ("pytest", "-mpytest") for word in words[:4])


def _links() -> dict[str, str]:
    """Returns links with their flags, addresses and MTUs, without the state of their carrier."""
    found = {}
    for path in Path("/sys/class/net").iterdir():
        with suppress(OSError):
            mac, mtu = ((path / name).read_text(encoding="ascii").strip() for name in ("address", "mtu"))
            up = int((path / "flags").read_text(encoding="ascii"), 16) & 1
            found[path.name] = f"{'up' if up else 'down'} {mac} MTU {mtu}"
    return found


def _pci_functions() -> dict[str, str]:
    """Returns drivers and numbers of virtual functions."""
    found = {}
    for path in Path("/sys/bus/pci/devices").glob("*"):
        driver = path / "driver"
        words = [driver.readlink().name if driver.is_symlink() else "no driver"]
        for name in ("driver_override", "sriov_numvfs", "sriov_drivers_autoprobe"):
            with suppress(OSError):
                words.append(f"{name} {(path / name).read_text(encoding='ascii').strip()}")
        found[path.name] = ", ".join(words)
    return found


def _modules() -> dict[str, str]:
    """Returns modules that give functions to others, and drivers of virtual functions."""
    try:
        lines = Path("/proc/modules").read_text(encoding="ascii").splitlines()
    except FileNotFoundError:  # a kernel without modules
        return {}
    return {name: "" for line in lines if _PASSING_ON.search(name := line.split()[0])}


#: Each command of a user's Podman binds this on itself and unbinds it at its end. Of two at once one may leave it.
_PODMANS_OWN = "/var/lib/containers/storage/overlay"


def _mounts() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        point, kind = line.split()[4], line.partition(" - ")[2].split()[0]
        if point == _PODMANS_OWN:
            continue
        found[point] = f"{found[point]} {kind}" if point in found else kind
    return found


def _cgroups() -> Iterable[str]:
    """Returns groups of sessions on this host, which may be one of several on this machine."""
    here = own_host(os.getpid())
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            path = f"{directory}/{name}"
            if ("icb" in path or "lxc." in path) and _named_in(path) == here:
                yield path


def _huge_pages() -> dict[str, str]:
    found = {}
    for directory in Path("/sys/devices/system/node").glob("node*/hugepages/hugepages-*"):
        for name in ("nr_hugepages", "free_hugepages", "surplus_hugepages"):
            found[f"{directory.parts[-3]} {directory.name} {name}"] = (directory / name).read_text().strip()
    return found


def _files() -> Iterable[str]:
    for top in _DIRECTORIES:
        for directory, names, files in os.walk(top):
            yield from (f"{directory}/{name}" for name in [*names, *files])
    yield from (f"/tmp/{path.name}" for path in Path("/tmp").iterdir() if _TEMPORARY.match(path.name))
    if Path("/run/icbench").exists():
        yield "/run/icbench"


def _container_sockets() -> dict[str, str]:
    """Returns the abstract sockets by which liblxc commands a running container."""
    found = {}
    for line in Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split()
        if len(fields) >= 8 and "lxc" in fields[7] and "icb" in fields[7]:
            found[fields[7]] = ""
    return found


def _cpu_settings() -> dict[str, str]:
    found = {}
    for pattern in ("cpu*/cpufreq/scaling_governor", "intel_pstate/no_turbo", "cpufreq/boost"):
        for path in Path("/sys/devices/system/cpu").glob(pattern):
            found[str(path)] = path.read_text().strip()
    return found
