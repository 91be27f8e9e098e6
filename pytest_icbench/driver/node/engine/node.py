# SPDX-License-Identifier: BSD-3-Clause
"""A node as a container of an engine: its init is the workload's ``pause``, its processes enter its namespaces."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.driver.node.cgroups import end_groups
from pytest_icbench.driver.node.confinement import Device, environment, page_size
from pytest_icbench.driver.node.container import ContainerNode
from pytest_icbench.driver.node.engine.command import Engine, container
from pytest_icbench.driver.node.rootfs import Skeleton
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.journal import process_start_time
from pytest_icbench.host.process import SESSION_VARIABLE
from pytest_icbench.host.resource.hugepages import sizes_kib

#: The time in seconds that a started container's init may take until it executes its program.
_EXECUTES_S = 5.0


class EngineNode(ContainerNode):
    """A node in a container of an engine, see ``node.protocol.Node``. Each kind says which, and with which files.

    Attributes:
        id: what the engine calls the container; empty before it is made.
    """

    id = ""

    def engine(self) -> Engine:
        """Returns the engine. Raises ProvisionError if it is gone."""
        raise NotImplementedError

    def files(self, frame: Skeleton) -> Sequence[str]:
        """Returns the last words of ``create`` before the container's command: its root file system, the group above.

        Raises ProvisionError.
        """
        raise NotImplementedError

    @property
    def layout(self) -> Layout:
        """The control groups as the engine's runtime joins them."""
        return self.group.layout.joined()

    def create(self, frame: Skeleton, devices: Sequence[Device], command: Sequence[str]) -> tuple[int, int]:
        """See ``ContainerNode``. Raises ProvisionError with the engine's words."""
        spec, engine, env = self.spec, self.engine(), environment(self.session.id)
        try:
            binds = {**frame.binds, **{path: path for path in spec.directories}}
            options = container(spec, env=env, binds=binds, devices=devices)
            self.id = engine.call("create", *options, *self.files(frame), *command)
            prepared_ns = time.perf_counter_ns()
            engine.call("start", spec.name)
            init = int(engine.call("inspect", "--format", "{{.State.Pid}}", spec.name))
        except (ProvisionError, ValueError) as error:
            raise ProvisionError(f"container {spec.name}: {error}") from None
        self._place(init)
        return init, prepared_ns

    def _place(self, init: int) -> None:
        """Takes note of the container's groups. Raises ProvisionError if its init is not a process of this host."""
        root, name = self.session.root, self.spec.name
        if not self._runs_here(init):
            raise ProvisionError(f"container {name} has ended at once, or {self.kind} does not run it on this host")
        layout = self.layout
        groups = dict(layout.groups_of(root, init))
        leading = layout.freezing() or layout.holding("cpuset")
        if leading in groups:
            self.group.place(name, os.path.relpath(groups[leading], leading.base or "/"))
        pages = layout.holding("hugetlb")
        if pages in groups and not self.spec.hugepages:  # engines have no option for it
            limit = "max" if pages.unified else "limit_in_bytes"
            for kib in sizes_kib(root):
                path = root.path(f"{pages.mount}{groups[pages]}/hugetlb.{page_size(kib)}.{limit}")
                _limit(path)

    def _runs_here(self, init: int) -> bool:
        """Whether the init is a process of this host. It is the runtime's until it has executed its program."""
        mark, deadline = f"{SESSION_VARIABLE}={self.session.id}", time.monotonic() + _EXECUTES_S
        while init > 0 and process_start_time(init) is not None and time.monotonic() < deadline:
            if mark in (self.session.root.read(f"/proc/{init}/environ") or "").split("\0"):
                return True
            time.sleep(0.001)
        return False

    def end(self) -> None:
        """See ``ContainerNode``."""
        self.remove()
        layout, root, group = self.layout, self.session.root, self.group.member(self.spec.name)
        end_groups(layout, root, [group])

    def remove(self) -> None:
        """Has the engine end and remove the container, in any state. Raises ProvisionError if it does not."""
        raise NotImplementedError


def _limit(path: Path) -> None:
    try:
        path.write_text("0", encoding="ascii")
    except OSError as error:
        raise ProvisionError(f"huge pages cannot be barred by {path}: {error.strerror}") from None
