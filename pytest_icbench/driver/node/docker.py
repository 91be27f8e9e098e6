# SPDX-License-Identifier: BSD-3-Clause
"""Containers of the user's Docker daemon as nodes.

Their image, imported once per session, has only the directories on which the host's programs are mounted.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pytest_icbench.driver.node.container import Skeleton, check_host, probe_finding, reap_container
from pytest_icbench.driver.node.engine_node import Engine, EngineNode
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import entry_checks
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.findings import Finding
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import UndoKind

_PROGRAM = "docker"
_INSTALL = "apt install docker.io"
_OTHERS = "use --icbench-node podman, oci or lxc"
#: Seconds for which the daemon may still create what a killed session requested, and for which a removal may fail.
_PENDING_S, _REMOVAL_S = 1.0, 20.0
_importing = threading.Lock()


def find_socket() -> str:
    """Returns the daemon's socket from the user's environment and context. Raises Unsupported."""
    if not shutil.which(_PROGRAM):
        raise Unsupported(f"Docker is not installed: {_INSTALL}, or {_OTHERS}")
    try:
        info = Engine(_PROGRAM).call("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
    except ProvisionError as error:
        raise Unsupported(f"Docker cannot be used: {error}") from None
    if not info.startswith("unix:///"):
        raise Unsupported(f"Docker's daemon is at {info or 'no address'}, and has to be on this host: {_OTHERS}")
    return info


def query_daemon() -> tuple[str, dict[str, Any]]:
    """Returns the daemon's socket and its information. Raises Unsupported if it cannot be used."""
    host = find_socket()
    done = Engine(_PROGRAM, ("--host", host)).run("info", "--format", "{{json .}}")
    try:
        info = json.loads(done.out)
    except ValueError:
        raise Unsupported(f"Docker cannot be used: {done.complaint}; {_OTHERS}") from None
    if info.get("ServerErrors") or not info.get("ServerVersion"):
        raise Unsupported(f"Docker's daemon does not answer at {host}: start it (systemctl start docker), or {_OTHERS}")
    if "name=rootless" in (info.get("SecurityOptions") or ()):
        raise Unsupported(
            f"Docker's daemon at {host} is rootless, and needs root here: unset DOCKER_HOST, or {_OTHERS}"
        )
    if info.get("OperatingSystem") == "Docker Desktop":
        raise Unsupported(f"Docker Desktop has its containers in a virtual machine: {_INSTALL}, or {_OTHERS}")
    return host, dict(info)


class DockerNode(EngineNode):
    """A node in a container of Docker, see ``node.protocol.Node``."""

    kind: ClassVar[str] = "docker"
    takes_image = False  # the session's image has this host's directories

    @staticmethod
    def probe(session: HostSession) -> None:
        check_host(Layout.read(session.root), "Docker's")
        query_daemon()

    @staticmethod
    def findings() -> Iterator[Finding]:
        yield probe_finding("Docker", lambda: f"docker {query_daemon()[1]['ServerVersion']}", _INSTALL)

    @staticmethod
    def treatment() -> dict[str, Any]:
        _, info = query_daemon()
        return {"docker": f"docker {info['ServerVersion']}", "oci": str(info.get("DefaultRuntime"))}

    def record(self) -> int:
        """Raises ProvisionError if the daemon is gone."""
        try:
            self._host, self._daemon = query_daemon()
        except Unsupported as error:
            raise ProvisionError(f"container {self.spec.name}: {error}") from None
        journal, image = self.session.journal, self.group.name
        with _importing:  # before the container, because entries are undone in reverse order
            if not any(entry.kind == "docker_image" for entry in journal.pending()):
                journal.record("docker_image", name=image, host=self._host)
        return journal.record("docker", name=self.spec.name, host=self._host)

    def engine(self) -> Engine:
        return Engine(_PROGRAM, ("--host", self._host), self.session.spawner.environment())

    def files(self, skeleton: Skeleton) -> Sequence[str]:
        """Imports the session's image at the first call."""
        image, archive = self.group.name, self.path / "rootfs.tar"
        with _importing:
            if not archive.exists():
                with tarfile.open(archive, "w") as tar:
                    tar.add(skeleton.path, ".")
                try:
                    self.engine().call("import", str(archive), image)
                except ProvisionError:
                    archive.unlink()
                    raise
        if self._daemon.get("CgroupDriver") != "cgroupfs":  # systemd accepts only slices as parents
            return (image,)
        return ("--cgroup-parent", self.layout.absolute(self.group.name), image)

    def remove(self) -> None:
        _remove(self.engine(), "rm", "--force", "--volumes", self.spec.name)


def _remove(engine: Engine, *arguments: str, pending_s: float = 0.0) -> None:
    """Removes an object that may not exist, or not yet. Raises ProvisionError if it remains.

    Args:
        pending_s: seconds for which to wait for an object that does not exist yet.
    """
    begin = time.monotonic()
    while True:
        done = engine.run(*arguments)
        took_s = time.monotonic() - begin
        gone = "no such" in done.err.lower()
        if (gone and took_s >= pending_s) or (done.code == 0 and not gone):
            return
        if not gone and (took_s > _REMOVAL_S or "daemon running" in done.err):
            raise ProvisionError(f"{arguments[-1]}: docker {arguments[0]} failed: {done.complaint}")
        time.sleep(0.1)


def undo_container(name: str, host: str) -> None:
    """Removes a container that its session has not removed."""
    reap_container(name)
    _remove(Engine(_PROGRAM, ("--host", host)), "rm", "--force", "--volumes", name, pending_s=_PENDING_S)


def undo_image(name: str, host: str) -> None:
    """Removes a session's image."""
    _remove(Engine(_PROGRAM, ("--host", host)), "rmi", name, pending_s=_PENDING_S)


_HOST = entry_checks.matching(r"unix:///[^\x00]+")
UNDO_KINDS = {
    "docker": UndoKind(undo_container, survives_reboot=True, checks={"name": entry_checks.name, "host": _HOST}),
    "docker_image": UndoKind(undo_image, survives_reboot=True, checks={"name": entry_checks.group_name, "host": _HOST}),
}
