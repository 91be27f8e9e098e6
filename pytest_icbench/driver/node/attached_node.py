# SPDX-License-Identifier: BSD-3-Clause
"""Nodes in containers, pods and network namespaces that already run.

Such a node sees the host's files, so the container needs none of this package. Its processes run in control groups of
the session and are pinned by their affinity. The container's own processes stay as they are, and a CPU quota of the
container does not limit what is measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.node.netns import NetnsNode
from pytest_icbench.driver.node.protocol import NodeFacts
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.journal import process_start_time
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.process import run
from pytest_icbench.model.endpoint import AttachTarget

#: The time in seconds that an inquiry may take.
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Target:
    """A container, process or network namespace to attach to.

    Attributes:
        name: its name in the topology.
        netns: path of its network namespace.
        inode: number that identifies that namespace while it exists.
        pid: its first process; None for a namespace that was named by its path.
        start_time: start of that process in clock ticks since boot, because a pid can be reused.
    """

    name: str
    netns: str
    inode: int
    pid: int | None = None
    start_time: int | None = None

    @property
    def root(self) -> Path:
        """Its root directory on this host."""
        return Path("/") if self.pid is None else Path(f"/proc/{self.pid}/root")

    @property
    def has_ended(self) -> bool:
        """Whether the first process has ended since ``find_target``."""
        return self.pid is not None and process_start_time(self.pid) != self.start_time


def find_target(attached: AttachTarget) -> Target:
    """Finds the target of an endpoint. Raises ProvisionError if it does not exist or does not run."""
    name = attached.container
    if attached.kind == "netns":
        path = Path(attached.target)
        if not path.exists():
            raise ProvisionError(f"{name}: there is no such file: `ip netns list` has the names below /run/netns")
        return _target(name, str(path), None)
    pid = int(attached.target) if attached.kind == "pid" else _FIND[attached.kind](attached.target)
    if process_start_time(pid) is None:
        raise ProvisionError(f"{name}: there is no process {pid}: it has ended, or is in another PID namespace")
    return _target(name, f"/proc/{pid}/ns/net", pid)


def _target(name: str, netns: str, pid: int | None) -> Target:
    """Returns a target after entering its namespace once. Raises ProvisionError if that fails."""
    try:
        with enter_netns(netns):
            inode = Path("/proc/thread-self/ns/net").stat().st_ino
    except ProvisionError as error:
        raise ProvisionError(f"{name}: {error}") from None
    if inode != Path(netns).stat().st_ino:
        raise ProvisionError(f"{name}: {netns} is not a network namespace")
    return Target(name, netns, inode, pid, None if pid is None else process_start_time(pid))


def _inspect(program: str, name: str) -> int:
    """Returns the first process of a container of Docker or Podman, whose command lines are the same."""
    output = _query(program, name, "container", "inspect", "--format", "{{.State.Status}} {{.State.Pid}}", name)
    status, _, pid = output.strip().rpartition(" ")
    if status != "running" or not pid.isdecimal() or pid == "0":
        state = status or "in an unknown state"
        raise ProvisionError(f"{program}:{name} is {state}, not running: {program} start {name}")
    return int(pid)


def _lxc(name: str) -> int:
    output = _query("lxc-info", name, "--name", name, "--pid", "--no-humanize", kind="lxc")
    if not (pid := output.strip()).isdecimal() or int(pid) < 1:
        raise ProvisionError(f"lxc:{name} is not running: lxc-start {name}, or name its process (pid:NUMBER)")
    return int(pid)


def _query(program: str, name: str, *arguments: str, kind: str | None = None) -> str:
    """Returns the output of a program. Raises ProvisionError with its last line if it fails."""
    kind = kind or program
    if shutil.which(program) is None:
        raise ProvisionError(
            f"{kind}:{name} cannot be found: {program} is not installed; name its process (pid:NUMBER)"
        )
    try:
        answer = run([program, *arguments], timeout_s=_TIMEOUT_S, check=False)
    except ProvisionError as error:
        raise ProvisionError(f"{kind}:{name}: {error}") from None
    if answer.returncode != 0:
        words = (answer.stderr or answer.stdout).strip().splitlines()
        reason = words[-1] if words else f"exit code {answer.returncode}"
        raise ProvisionError(
            f"{kind}:{name} cannot be attached to: {reason} (name one of another user or runtime by pid:NUMBER)"
        )
    return answer.stdout


_FIND: dict[str, Callable[[str], int]] = {
    "docker": partial(_inspect, "docker"),
    "podman": partial(_inspect, "podman"),
    "lxc": _lxc,
}


class AttachedNode(NetnsNode):
    """A node in the existing namespace that its spec names (``attached``), see ``node.protocol.Node``."""

    kind: ClassVar[str] = "attached"

    def start(self) -> NodeFacts:
        """Starts a holder in the namespace. Raises ProvisionError if it does not exist."""
        if self.spec.attached is None:
            raise ProvisionError(f"node {self.spec.name} has nothing to attach to: name it in a topology")
        return super().start()

    def _open(self) -> str:
        assert self.spec.attached is not None
        return find_target(self.spec.attached).netns

    def _close(self, netns: str) -> None:
        """Leaves the namespace as it is."""
