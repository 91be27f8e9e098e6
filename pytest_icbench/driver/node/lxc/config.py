# SPDX-License-Identifier: BSD-3-Clause
"""A container's configuration as liblxc's keys and values. Pure, so that tests cover cgroup v1 and v2 anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_icbench.driver.node.confinement import CAPABILITIES, DEVICES, Device, page_size
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.driver.node.rootfs import Skeleton
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.root import format_cpu_list


def config(
    spec: NodeSpec,
    *,
    layout: Layout,
    group: str,
    skeleton: Skeleton,
    devices: Sequence[Device],
    session: str,
    log: Path,
    hugepage_sizes_kib: Sequence[int] = (),
) -> list[tuple[str, str]]:
    """Returns keys and values in the order in which they are to be set.

    Args:
        group: the session's cgroup.
        session: the session's id, for the environment of the container's init.
        log: liblxc's log.
        hugepage_sizes_kib: the sizes of this host, barred for a node whose spec has no huge pages.
    """
    return [
        ("lxc.uts.name", spec.hostname or spec.name),
        ("lxc.rootfs.path", str(skeleton.path)),
        ("lxc.rootfs.options", "ro"),
        # The container shares nothing of the host's network, not even the loopback.
        ("lxc.net.0.type", "empty"),
        ("lxc.console.path", "none"),
        ("lxc.tty.max", "0"),
        ("lxc.autodev", "1"),
        # Capabilities and devices confine the container. A profile that is not loaded would prevent its start.
        ("lxc.apparmor.profile", "unconfined"),
        ("lxc.mount.auto", "proc:mixed sys:ro"),
        *(("lxc.mount.entry", entry) for entry in _mounts(spec, skeleton, devices)),
        *(("lxc.cap.keep", name) for name in (*CAPABILITIES, *spec.capabilities)),
        ("lxc.environment", f"ICBENCH_SESSION={session}"),
        ("lxc.log.file", str(log)),
        ("lxc.log.level", "WARN"),
        *_cgroups(spec, layout, group, devices),
        *_huge_pages(layout, () if spec.hugepages else hugepage_sizes_kib),
    ]


def _huge_pages(layout: Layout, barred_kib: Iterable[int]) -> list[tuple[str, str]]:
    """Returns limits of 0 for huge pages of these sizes, if the kernel has the controller."""
    items = []
    for kib in barred_kib:
        key = layout.lxc_key("hugetlb", f"{page_size(kib)}.{'max' if layout.unified else 'limit_in_bytes'}")
        if key is not None:
            items.append((key, "0"))
    return items


def _mounts(spec: NodeSpec, skeleton: Skeleton, devices: Iterable[Device]) -> list[str]:
    """Returns the mount entries in the format of fstab."""
    entries = [
        "tmpfs run tmpfs rw,nosuid,nodev,size=16m,mode=755 0 0",
        "tmpfs tmp tmpfs rw,nosuid,nodev,size=64m,mode=1777 0 0",
    ]
    bound = {**skeleton.binds, **{path: path for path in spec.directories}}
    entries += [_bind(source, path, "bind,ro,create=dir") for path, source in bound.items()]
    entries += [_bind(path, path, "bind,rw,create=dir") for path in spec.sockets]
    entries += [_bind(device.path, device.path, "bind,rw,create=file") for device in devices]
    return entries


def _bind(source: Path, path: Path, options: str) -> str:
    """Returns the entry that mounts a directory of the host at a path, with fstab's escapes for blanks."""
    there, here = (
        str(each).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011") for each in (source, path)
    )
    return f"{there} {here.lstrip('/')} none {options} 0 0"


def _cgroups(spec: NodeSpec, layout: Layout, group: str, devices: Iterable[Device]) -> list[tuple[str, str]]:
    items = [
        # All three are below the session's group: liblxc leaves its pivot behind, which is removed with that group.
        ("lxc.cgroup.dir.container", f"{group}/{spec.name}"),
        ("lxc.cgroup.dir.monitor", f"{group}/{spec.name}.monitor"),
        ("lxc.cgroup.dir.monitor.pivot", group),
    ]
    settings = [("cpuset", "cpus", format_cpu_list(spec.cpus)), ("devices", "deny", "a")]
    allowed = [*DEVICES, *devices]
    settings += [("devices", "allow", f"{device.kind} {device.major}:{device.minor} rw") for device in allowed]
    for controller, item, value in settings:
        key = layout.lxc_key(controller, item)
        if key is not None:
            items.append((key, value))
    return items
