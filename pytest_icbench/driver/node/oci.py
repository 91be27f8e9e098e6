# SPDX-License-Identifier: BSD-3-Clause
"""Containers of an OCI runtime (runc, crun) as nodes, made from a bundle (OCI runtime specification 1.0).

The container's init is the workload's ``pause``. The runtime exits once it has made the container: there is no daemon.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from pytest_icbench.driver.node.cgroups import end_group
from pytest_icbench.driver.node.container import (
    DEVICES,
    ContainerNode,
    Device,
    HostAccess,
    Skeleton,
    check_host,
    container_environment,
    format_page_size,
    node_capabilities,
    probe_finding,
    reap_container,
)
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import entry_checks
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.cleanup import remove_tree
from pytest_icbench.host.findings import Finding
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.process import run
from pytest_icbench.host.root import Root, format_cpu_list

#: The runtimes in order of preference.
RUNTIMES = ("crun", "runc")
#: The time in seconds that a call of the runtime may take.
TIMEOUT_S = 10.0


def bundle_config(
    spec: NodeSpec,
    access: HostAccess,
    *,
    command: Sequence[str],
    env: Mapping[str, str],
    cgroup: str,
    bounds: Mapping[str, tuple[str, str]],
) -> dict[str, Any]:
    """Returns the data of ``config.json``.

    Args:
        command: the container's init.
        cgroup: the container's group, absolute below each hierarchy's mount point.
        bounds: its bounds (``SessionGroup.bounds``).
    """
    capabilities = [f"CAP_{name.upper()}" for name in node_capabilities(spec)]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(command),
            "env": [f"{name}={value}" for name, value in env.items()],
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
        },
        "root": {"path": str(access.skeleton.path), "readonly": True},
        "hostname": spec.hostname or spec.name,
        "mounts": _mounts(spec, access.skeleton),
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")],
            "cgroupsPath": cgroup,
            "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"],
            "devices": [_node(device) for device in access.devices],
            "resources": {
                "cpu": {"cpus": format_cpu_list(spec.cpus)},
                **{controller: {"limit": int(value)} for controller, (_, value) in bounds.items()},
                "devices": [
                    {"allow": False, "access": "rwm"},
                    *({"allow": True, **_identity(device), "access": "rw"} for device in (*DEVICES, *access.devices)),
                ],
                "hugepageLimits": [{"pageSize": format_page_size(kib), "limit": 0} for kib in access.barred_pages_kib],
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


def find_runtime(layout: Layout) -> str:
    """Returns the runtime's program. Raises Unsupported if none supports this host's cgroups."""
    known = [name for name in RUNTIMES if shutil.which(name)]
    if not known:
        raise Unsupported("OCI containers need runc or crun: apt install runc, or use --icbench-node lxc")
    if not layout.unified:
        if "runc" not in known:
            raise Unsupported("crun refuses cgroup v1 and v2 together, as they are here: apt install runc")
        return "runc"
    return known[0]


class OciNode(ContainerNode):
    """A node in a container of an OCI runtime, see ``node.protocol.Node``."""

    kind: ClassVar[str] = "oci"

    @staticmethod
    def probe(session: HostSession) -> None:
        layout = Layout.read(session.root)
        find_runtime(layout)
        check_host(layout, "OCI")

    @staticmethod
    def findings() -> Iterator[Finding]:
        yield probe_finding("OCI", lambda: read_version(find_runtime(Layout.read(Root()))), "apt install runc")

    @staticmethod
    def treatment() -> dict[str, Any]:
        return {"oci": read_version(find_runtime(Layout.read(Root())))}

    def record(self) -> int:
        return self.session.journal.record("oci", name=self.spec.name, group=self.group.name)

    @property
    def layout(self) -> Layout:
        """The control groups as the runtime joins them."""
        return self.group.layout.joined()

    def create(self, access: HostAccess, command: Sequence[str]) -> tuple[int, int]:
        """Raises ProvisionError with the runtime's words."""
        spec, layout = self.spec, self.layout
        self._runtime = find_runtime(layout)
        config = bundle_config(
            spec,
            access if layout.holding("hugetlb") else replace(access, barred_pages_kib=()),
            command=command,
            env=container_environment(self.session.id),
            cgroup=layout.absolute(self.group.member(spec.name)),
            bounds=self.group.bounds,
        )
        directory = self.path / spec.name
        directory.mkdir(exist_ok=True)
        (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
        pid_file = directory / "pid"
        self._call("create", "--bundle", str(directory), "--pid-file", str(pid_file), spec.name)
        init = int(pid_file.read_text(encoding="ascii"))
        prepared_ns = time.perf_counter_ns()
        self._call("start", spec.name)
        return init, prepared_ns

    @property
    def _out(self) -> Path:
        return self.session.logs / f"{self.spec.name}.out"

    def _call(self, *arguments: str) -> None:
        """Calls the runtime. Raises ProvisionError with the end of its log, or if it hangs and was killed."""
        self.log.unlink(missing_ok=True)
        command = [self._runtime, "--root", str(self.path / "state"), "--log", str(self.log), *arguments]
        # A container's init keeps the streams of its creator. If they were pipes, nobody could wait for their end. What
        # runs in the container can write there, too.
        process = self.session.spawner.start(command, log=self._out)
        try:
            code = process.wait(TIMEOUT_S)
        except ProvisionError:
            raise self._failed(arguments[0], f"has not ended within {TIMEOUT_S:g} s and was killed") from None
        finally:
            process.stop(term_s=0)
        if code != 0:
            raise self._failed(arguments[0], f"failed with exit code {code}")

    def _failed(self, command: str, how: str) -> ProvisionError:
        with suppress(OSError, IndexError):
            how += f": {self.log.read_text(encoding='utf-8', errors='replace').splitlines()[-1]}"
        return ProvisionError(f"container {self.spec.name}: {self._runtime} {command} {how}")

    def end(self) -> None:
        name = self.spec.name
        end_group(self.group.layout, self.session.root, self.group.member(name))
        for path in (self.path / name, self.path / "state" / name):
            remove_tree(path)
        for path in (self.log, self._out):
            path.unlink(missing_ok=True)


def read_version(program: str) -> str:
    """Returns name and version of a program: ``runc 1.1.5``. Raises ProvisionError."""
    with TemporaryDirectory() as root:  # crun makes the directory of its containers, to print it
        words = run([program, "--root", root, "--version"], timeout_s=TIMEOUT_S).stdout.split()
    return f"{program} {words[2]}" if len(words) > 2 else program


def undo_container(name: str, group: str) -> None:
    """Ends a container that its session has not ended."""
    reap_container(name)
    root = Root()
    end_group(Layout.read(root), root, f"{group}/{name}")


UNDO_KINDS = {"oci": UndoKind(undo_container, checks={"name": entry_checks.name, "group": entry_checks.group_name})}
