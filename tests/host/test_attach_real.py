# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints in containers of Podman, Docker and LXC that were started by hand: frames pass, all is as before."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_icbench.driver.node.oci import find_runtime
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import run
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from tests.host import snapshot
from tests.host.by_hand import changes, states, topology, two
from tests.host.node_tools import clean, require, session
from tests.host.test_attach import passes

__all__ = ["clean", "session"]  # fixtures

pytestmark = [pytest.mark.alone, pytest.mark.slow]

_SLEEP = ("/usr/bin/sleep", "1000")
_LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
#: What starts a container, what says its first process, and what removes it.
Commands = tuple[list[str], list[str], list[str]]
#: Where liblxc leaves locks of containers that are gone.
_LXC_LOCKS = Path("/run/lxc/lock/var/lib/lxc")
#: The group of each hierarchy in which liblxc's monitor ends.
_LXC_PIVOT = "lxc.pivot"


class Started:
    """Containers of one kind, started with the program that its users have."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind, self.directory = kind, directory
        self.names: list[str] = []
        self.files = directory / "rootfs"
        for name in ("usr", "proc", "sys", "dev", "etc", "run", "tmp"):
            (self.files / name).mkdir(parents=True)
        for name in ("lib", "lib64"):
            (self.files / name).symlink_to(f"usr/{name}")

    @contextmanager
    def one(self) -> Iterator[int]:
        """A container. Yields its first process."""
        name = f"byhand{len(self.names)}"
        self.names.append(name)
        begin, ask, end = getattr(self, f"_{self.kind}")(name)
        try:
            run(begin, timeout_s=30)
            yield int(run(ask, timeout_s=20).stdout)
        finally:
            run(end, timeout_s=30, check=False)
            (_LXC_LOCKS / f".{name}").unlink(missing_ok=True)

    def _podman(self, name: str) -> Commands:
        made_by = ["podman", "--runtime", find_runtime(Layout.read(Root())), "--cgroup-manager", "cgroupfs"]
        return self._engine(made_by, "podman", name, "--rootfs", str(self.files))

    def _docker(self, name: str) -> Commands:
        if len(self.names) == 1:
            archive = shutil.make_archive(str(self.directory / "image"), "tar", self.files)
            run(["docker", "import", archive, "byhand"], timeout_s=30)
        return self._engine(["docker"], "docker", name, "byhand")

    def _engine(self, made_by: list[str], program: str, name: str, *files: str) -> Commands:
        options = ["--detach", "--name", name, "--network", "none", "--volume", "/usr:/usr:ro", *_LIMITS]
        return (
            [*made_by, "run", *options, *files, *_SLEEP],
            [program, "inspect", "--format", "{{.State.Pid}}", name],
            [*made_by, "rm", "--force", name],
        )

    def _lxc(self, name: str) -> Commands:
        config = self.directory / f"{name}.conf"
        config.write_text(
            f"lxc.rootfs.path = dir:{self.files}\nlxc.mount.auto = proc:mixed\nlxc.net.0.type = empty\n"
            f"lxc.mount.entry = /usr usr none ro,bind 0 0\nlxc.init.cmd = {' '.join(_SLEEP)}\nlxc.uts.name = {name}\n"
        )
        return (
            ["lxc-start", "--name", name, "--rcfile", str(config)],
            ["lxc-info", "--name", name, "--pid", "--no-humanize"],
            ["lxc-stop", "--kill", "--name", name],
        )


@pytest.fixture(params=["podman", "docker", "lxc"])
def containers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Started]:
    """Containers of a kind that this host has."""
    kind = request.param
    require(kind)
    if kind == "lxc" and not shutil.which("lxc-start"):
        pytest.skip("LXC's programs are not installed: apt install lxc")
    made = Started(kind, tmp_path)
    new = [path for path in (_LXC_LOCKS, *_LXC_LOCKS.parents) if not path.exists()]
    before = snapshot.take()
    # What programs leave behind when their first container begins and ends is there while the session looks.
    with made.one():
        pass
    yield made
    after = snapshot.take()
    for point in after["mount"].keys() - before["mount"].keys():
        run(["umount", point], timeout_s=5)
    for group in map(Path, after["cgroup"].keys() - before["cgroup"].keys()):
        if group.name == _LXC_PIVOT:
            group.rmdir()
    for path in new:
        if path.exists():
            path.rmdir()
    if kind == "docker":
        run(["docker", "rmi", "byhand"], timeout_s=30, check=False)


def test_containers_of_users_are_as_before(containers: Started, session: HostSession) -> None:
    with two(start=containers.one) as pair:
        before, seen = states(pair), list[set[str]]()
        text = topology(*(f"{containers.kind}:{name}" for name in containers.names[-2:]))
        for api in (None, "raw-mmsg"):
            passes(session, text, Case("attach", Frames(burst=1, rate=Rate(2000)), api=api), seen, pair)
        assert changes(before, pair) == []
        assert seen == [{pair[1].ip}, {pair[0].ip}] * 2
