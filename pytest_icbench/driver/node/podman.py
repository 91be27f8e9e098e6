# SPDX-License-Identifier: BSD-3-Clause
"""Containers of Podman as nodes.

Podman's storage, database and runtime state are in the session's directory, so names cannot clash with the user's
containers, and nothing is left after the directory is removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pytest_icbench.driver.node.container import Skeleton, check_host, probe_finding, reap_container
from pytest_icbench.driver.node.engine_node import Engine, EngineNode
from pytest_icbench.driver.node.oci import find_runtime, read_version
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import entry_checks
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.cleanup import remove_tree
from pytest_icbench.host.findings import Finding
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.root import Root

_PROGRAM = "podman"
_INSTALL = "apt install podman"
#: Replaces the user's settings. Locks are files, because the default would leave one in /dev/shm.
_SETTINGS = '[engine]\nlock_type = "file"\nevents_logger = "none"\n'


class PodmanNode(EngineNode):
    """A node in a container of Podman, see ``node.protocol.Node``."""

    kind: ClassVar[str] = "podman"

    @staticmethod
    def probe(session: HostSession) -> None:
        if not shutil.which(_PROGRAM):
            raise Unsupported(f"Podman is not installed: {_INSTALL}, or use --icbench-node oci or lxc")
        layout = Layout.read(session.root)
        find_runtime(layout)
        check_host(layout, "Podman's")

    @staticmethod
    def findings() -> Iterator[Finding]:

        def describe() -> str:
            PodmanNode.probe(HostSession.probing())
            return read_version(_PROGRAM)

        yield probe_finding("Podman", describe, _INSTALL)

    @staticmethod
    def treatment() -> dict[str, Any]:
        return {"podman": read_version(_PROGRAM), "oci": read_version(find_runtime(Layout.read(Root())))}

    def record(self) -> int:
        return self.session.journal.record("podman", name=self.spec.name)

    def engine(self) -> Engine:
        settings = self.path / "containers.conf"
        settings.write_text(_SETTINGS, encoding="ascii")
        options = (
            *("--root", f"{self.path}/root", "--runroot", f"{self.path}/run", "--tmpdir", f"{self.path}/tmp"),
            *("--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"),
            *("--runtime", find_runtime(self.layout), "--runtime-flag", f"root={self.path}/state"),
        )
        return Engine(_PROGRAM, options, {"CONTAINERS_CONF": str(settings), **self.session.spawner.environment()})

    def files(self, skeleton: Skeleton) -> Sequence[str]:
        group = self.layout.absolute(self.group.name)
        options = ("--read-only-tmpfs=false", "--no-hosts")
        return (*options, "--cgroup-parent", group, "--rootfs", str(skeleton.path))

    def remove(self) -> None:
        done = self.engine().run("rm", "--force", "--time", "0", self.spec.name)
        if done.code != 0 and "no such container" not in done.err.lower():
            raise ProvisionError(f"container {self.spec.name}: podman rm failed: {done.complaint}")

    def end(self) -> None:
        """Removes the runtime's state too, which remains if the container ends while podman removes it."""
        super().end()
        if self.id:
            remove_tree(self.path / "state" / self.id)


#: The session's undo removes the rest: other processes have the session in their environment, groups are below the
#: session's group and files are in its directory.
UNDO_KINDS = {"podman": UndoKind(reap_container, checks={"name": entry_checks.name})}
