# SPDX-License-Identifier: BSD-3-Clause
"""What a process in a node does against the host, and what becomes of it: real processes in real nodes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_icbench.driver.node.attached_node import Target
from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.node.protocol import Node
from pytest_icbench.driver.switch.attach import _open_socket
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import host_session, node_files, process
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.host.process import wait_until
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host.node_tools import CPU, clean, marked, output, require, session, spawn, started

__all__ = ["clean", "session"]  # fixtures

MIB = 2**20
#: Puts links in the place of files and directories, one after the other, as fast as it can.
PLANTER = """
import os, sys
own, victim = sys.argv[1:]
os.chdir(own)
ways = (
    lambda: os.symlink(os.path.dirname(victim), "link"),
    lambda: os.rename("files", "old"),
    lambda: os.rename("link", "files"),
    lambda: os.unlink("files"),
    lambda: os.rename("old", "files"),
    lambda: os.unlink("files/body"),
    lambda: os.symlink(victim, "files/body"),
)
print("begun", flush=True)
while True:
    for way in ways:
        try:
            way()
        except OSError:
            pass
"""


@pytest.fixture(params=marked("lxc", "netns", "oci"))
def kind(request: pytest.FixtureRequest) -> str:
    require(request.param)
    return str(request.param)


@pytest.fixture
def container(session: HostSession) -> Node:
    require("lxc")
    return started(session, "lxc")


@pytest.fixture
def bounded(clean: None) -> Iterator[HostSession]:
    with HostSession(UNDO_KINDS, SessionOptions(node_memory_mib=64, node_pids=32)) as session:
        yield session


def own(node: Node) -> Path:
    return Path(node.spec.sockets[0])


def test_links_planted_again_and_again_lead_to_no_file_of_the_host(
    session: HostSession, container: Node, tmp_path: Path
) -> None:
    victim, place = tmp_path / "body", own(container)
    victim.write_text("the host's")
    argv = ["/usr/bin/python3", "-c", PLANTER, str(place), str(victim)]
    planter = container.spawn(argv, cpus=[CPU], log=session.logs / "planter.log")
    assert planter.stdout is not None
    assert planter.stdout.readline() == b"begun\n"
    written = refused = 0
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        try:
            node_files.make_directory(place, "files")
            node_files.write_file(place, "files/body", "the node's")
            written += 1
            assert node_files.read_file(place, "files/body") in (b"the node's", b"", None)
        except ProvisionError:
            refused += 1
    assert planter.poll() is None
    assert written > 0
    assert refused > 0
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("body", "the host's")]


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        ("mkfifo f", "not a regular file"),
        ("mkdir f", "not a regular file"),
        ("ln -s /etc/passwd f", "symbolic links"),
    ],
)
def test_what_is_no_file_is_neither_read_nor_awaited(
    session: HostSession, container: Node, plant: str, says: str
) -> None:
    assert output(session, container, f"cd {own(container)} && {plant}") == ""
    began = time.monotonic()
    with pytest.raises(ProvisionError, match=rf"{own(container)}/f cannot be used .*{says}"):
        node_files.read_file(own(container), "f")
    assert time.monotonic() - began < 1


def test_no_program_of_the_host_follows_a_link_of_a_node(session: HostSession, container: Node, tmp_path: Path) -> None:
    """A switch connects to a socket that an endpoint serves, by its path."""
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(tmp_path / "x"))
        server.listen()
        assert output(session, container, f"ln -s {tmp_path}/x {own(container)}/p0") == ""
        with pytest.raises(OSError, match="symbolic links"):
            client.connect(f"{own(container)}/p0")


@pytest.mark.slow
def test_a_tree_of_any_depth_is_removed(session: HostSession) -> None:
    top = session.dir / "tree"
    node_files.make_tmpfs(top, 256)
    (top / "deep").mkdir()
    at = os.open(top / "deep", os.O_RDONLY)
    for _ in range(60_000):  # below the bound of a node's directory
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    node_files.remove(top, "deep")
    assert list(top.iterdir()) == []


def test_a_deep_tree_of_a_node_ends_with_its_session(clean: None) -> None:
    require("lxc")
    script = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')\nos.symlink('/', 'link')"
    with HostSession(UNDO_KINDS) as session:
        node = started(session, "lxc")
        assert output(session, node, f'cd {own(node)} && /usr/bin/python3 -c "{script}"') == ""
    assert not session.dir.exists()


def test_what_a_node_writes_to_its_standard_error_is_bounded(
    clean: None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_session, "LOGS_MIB", 8)
    monkeypatch.setattr(process, "LOG_MAX_BYTES", 2 * MIB)
    with HostSession(UNDO_KINDS) as session:
        node = started(session, kind)
        log = session.logs / "endless.log"
        endless = node.spawn(["/bin/sh", "-c", "exec yes endless >&2"], cpus=[CPU], log=log)
        deadline = time.monotonic() + 5
        while log.stat().st_size < 7 * MIB and time.monotonic() < deadline and endless.poll() is None:
            time.sleep(0.01)
        assert 2 * MIB < log.stat().st_size <= 8 * MIB
        endless.stop(term_s=0)
        session.spawner.bound_logs()
        assert log.stat().st_size == 65536
        assert endless.tail(1) == "endless"


def test_a_full_directory_is_its_nodes_alone(session: HostSession, container: Node) -> None:
    other = started(session, "lxc", "b")
    assert "No space left" in output(session, container, f"head -c 9M /dev/zero > {own(container)}/x")
    assert output(session, other, f"echo x > {own(other)}/x && cat {own(other)}/x") == "x"
    with pytest.raises(ProvisionError, match=f"{own(container)}/y cannot be written: its node has filled"):
        node_files.write_file(own(container), "y", "x" * MIB)
    assert "No space left" in output(
        session, other, f"cd {own(other)} && for i in $(seq 70000); do : > $i || exit; done"
    )


def test_processes_without_end_stay_within_the_bound_of_their_node(bounded: HostSession, kind: str) -> None:
    node, other = started(bounded, kind), started(bounded, kind, "b")
    spawn(bounded, node, "bomb() { bomb | bomb & }; bomb; sleep 60")
    group, most = SessionGroup.get(bounded), 0
    hierarchy = group.layout.holding("pids")
    if hierarchy is None or "pids" not in group.bounds:
        pytest.skip("this host has no controller pids")
    current = bounded.root.path(hierarchy.path(group.member(node.spec.name))) / "pids.current"
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        most = max(most, int(current.read_text()))
    assert 16 <= most <= 32
    assert output(bounded, other, "echo alive") == "alive"
    began = time.monotonic()
    node.stop()
    assert time.monotonic() - began < 5


def test_memory_without_end_stays_within_the_bound_of_its_node(bounded: HostSession, kind: str) -> None:
    node, other = started(bounded, kind), started(bounded, kind, "b")
    if "memory" not in SessionGroup.get(bounded).bounds:
        pytest.skip("this host has no controller memory")
    hog = node.spawn(["/usr/bin/python3", "-c", "x = b'x' * (200 << 20)"], cpus=[CPU], log=bounded.logs / "hog.log")
    assert hog.wait(20) == -9
    assert output(bounded, other, "echo alive") == "alive"


#: Stops each new process of its node: their numbers follow each other.
STOPPER = """
import os, signal
print("begun", flush=True)
last = os.getpid()
while True:
    for pid in range(last + 1, last + 9):
        try:
            os.kill(pid, signal.SIGSTOP)
            last = pid
        except ProcessLookupError:
            pass
"""


@pytest.mark.parametrize("kind", marked("lxc", "oci", "podman", "docker"))
def test_a_process_that_is_stopped_as_it_enters_its_node_is_not_waited_for(session: HostSession, kind: str) -> None:
    require(kind)
    node = started(session, kind)
    stopper = node.spawn(["/usr/bin/python3", "-c", STOPPER], cpus=[CPU], log=session.logs / "stopper.log")
    assert stopper.stdout is not None
    assert stopper.stdout.readline() == b"begun\n"
    processes = []
    for _ in range(10):
        began = time.monotonic()
        processes.append(node.spawn(["/bin/sleep", "60"], cpus=[CPU], log=session.logs / "stopped.log"))
        assert time.monotonic() - began < 5
    assert all(wait_until(lambda process=process: process.is_stopped, 5) for process in processes)  # type: ignore[misc]
    began = time.monotonic()
    node.stop()
    assert time.monotonic() - began < 10


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(5)
        yield server


def test_a_link_of_a_running_container_leads_to_no_socket_of_the_host(
    session: HostSession, container: Node, tmp_path: Path
) -> None:
    # The container's own directory is at the same path inside, so a link there leads to its own socket.
    place, facts = own(container), container.spec.name
    init = SessionGroup.get(session)
    pid = min(init.pids(init.member(facts)))
    target = Target("web", f"/proc/{pid}/ns/net", 0, pid)
    with listening(tmp_path / "x"), listening(place / "own") as server:
        assert (
            output(session, container, f"ln -s {tmp_path}/x /run/host; ln -s {place}/own /run/in; ln -s / /run/l") == ""
        )
        for path in ("/run/host", f"/run/l/../../../../..{tmp_path}/x", f"/proc/1/root{tmp_path}/x"):
            with pytest.raises(ProvisionError, match=f"web: {path} cannot be used"):
                _open_socket(target, path)
        descriptor = _open_socket(target, "/run/in")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"/proc/{os.getpid()}/fd/{descriptor}")
            server.accept()[0].close()
        os.close(descriptor)


OCCUPANT = """
import os, socket, sys
os.setuid(65534)
held = []
for name in sys.argv[1:]:
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].bind("\\0" + name)
    held[-1].listen()
print("begun", flush=True)
sys.stdin.read()
"""


@contextmanager
def occupying(*names: str) -> Iterator[int]:
    """Binds abstract sockets as another user; yields the pid."""
    argv = [sys.executable, "-c", OCCUPANT, *names]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as occupant:
        assert occupant.stdout is not None
        assert occupant.stdout.readline() == b"begun\n"
        yield occupant.pid
        occupant.kill()


def test_another_user_cannot_know_the_name_of_a_container_s_socket(session: HostSession, container: Node) -> None:
    lines = Path("/proc/net/unix").read_text().splitlines()
    (shown,) = (line.split()[-1][1:] for line in lines if line.endswith(f"{container.spec.name}/command"))
    locks = Path("/run/lxc/lock") / session.dir.relative_to("/") / "lxc"  # their paths have the name, too
    assert locks.stat().st_mode & 0o077 == 0
    name = session.name("b")
    with occupying(shown.replace(container.spec.name, name), f"{session.dir}/lxc/{name}/command"):
        started(session, "lxc", "b")
