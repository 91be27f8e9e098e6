# SPDX-License-Identifier: BSD-3-Clause
"""The ``config.json`` of a bundle (OCI runtime specification 1.0). Pure, so that tests cover it anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_icbench.driver.node.confinement import DEVICES, Device, kept, page_size
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.driver.node.rootfs import Skeleton
from pytest_icbench.host.root import format_cpu_list


def bundle(
    spec: NodeSpec,
    *,
    command: Sequence[str],
    env: Mapping[str, str],
    cgroup: str,
    skeleton: Skeleton,
    devices: Sequence[Device],
    hugepage_sizes_kib: Sequence[int] = (),
) -> dict[str, Any]:
    """Returns the data of ``config.json``.

    Args:
        command: the container's init.
        cgroup: the container's group, absolute below each hierarchy's mount point.
        devices: the device nodes of ``spec``.
        hugepage_sizes_kib: the sizes of this host, barred for a node whose spec has no huge pages.
    """
    capabilities = [f"CAP_{name.upper()}" for name in kept(spec)]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(command),
            "env": [f"{name}={value}" for name, value in env.items()],
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
        },
        "root": {"path": str(skeleton.path), "readonly": True},
        "hostname": spec.hostname or spec.name,
        "mounts": _mounts(spec, skeleton),
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")],
            "cgroupsPath": cgroup,
            "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"],
            "devices": [_node(device) for device in devices],
            "resources": {
                "cpu": {"cpus": format_cpu_list(spec.cpus)},
                "devices": [
                    {"allow": False, "access": "rwm"},
                    *({"allow": True, **_identity(device), "access": "rw"} for device in (*DEVICES, *devices)),
                ],
                "hugepageLimits": [
                    {"pageSize": page_size(kib), "limit": 0} for kib in (() if spec.hugepages else hugepage_sizes_kib)
                ],
            },
        },
    }


def _mounts(spec: NodeSpec, skeleton: Skeleton) -> list[dict[str, Any]]:
    return [
        {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
        _tmpfs("/dev", "mode=755", "size=64k", "strictatime", nodev=False),
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
        _tmpfs("/run", "mode=755", "size=16m"),
        _tmpfs("/tmp", "mode=1777", "size=64m"),
        *(_bind(source, path, "ro") for path, source in skeleton.binds.items()),
        *(_bind(path, path, "ro") for path in spec.directories),
        *(_bind(path, path, "rw") for path in spec.sockets),
    ]


def _tmpfs(path: str, *options: str, nodev: bool = True) -> dict[str, Any]:
    flags = ["nosuid", *(["nodev"] if nodev else [])]
    return {"destination": path, "type": "tmpfs", "source": "tmpfs", "options": [*flags, *options]}


def _bind(source: Path, path: Path, access: str) -> dict[str, Any]:
    return {"destination": str(path), "type": "bind", "source": str(source), "options": ["bind", access]}


def _identity(device: Device) -> dict[str, Any]:
    return {"type": device.kind, "major": device.major, "minor": device.minor}


def _node(device: Device) -> dict[str, Any]:
    return {"path": str(device.path), **_identity(device), "fileMode": 0o600, "uid": 0, "gid": 0}
