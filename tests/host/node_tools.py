# SPDX-License-Identifier: BSD-3-Clause
"""Sessions and nodes on the real host for tests, and fixtures that fail if anything of them is left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.guard import make_node, probe_node
from pytest_icbench.driver.node.protocol import Node, NodeSpec
from pytest_icbench.driver.node.registry import NODE_KINDS, has_machine
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import RUN_DIR, HostSession
from pytest_icbench.host.node_files import make_tmpfs
from pytest_icbench.host.process import Process
from pytest_icbench.host.recover import recover
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot

CPU = min(os.sched_getaffinity(0))


def require(kind: str) -> None:
    """Skips with the reason where nodes of this kind cannot be had."""
    try:
        probe_node(kind, HostSession.probing())
    except Unsupported as reason:
        pytest.skip(str(reason))


#: The kinds that run any program: a machine has only the workload.
CONTAINER_KINDS = tuple(kind for kind in NODE_KINDS if not has_machine(kind))
#: Kinds whose calls take a tenth of a second or longer each.
ENGINES = ("podman", "docker")


def marked(*kinds: str) -> list[Any]:
    """Returns kinds as parameters of tests, with engines marked slow."""
    return [pytest.param(kind, marks=[pytest.mark.slow] if kind in ENGINES else []) for kind in kinds]


@pytest.fixture(params=marked(*CONTAINER_KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    require(request.param)
    return str(request.param)


#: A script for ``assert_streams_pass``.
ECHO = "cat; echo prose >&2; exit 7"


def assert_streams_pass(process: Process, log: Path) -> None:
    """Checks that a process of ``ECHO`` has pipes, a log and an exit code."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"first\n")
    assert process.stdout.read(100) == b"first\n"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(5) == 7
    assert process.stdout.read(100) == b""
    assert log.read_text() == "prose\n"


def tidy_snapshot() -> snapshot.Snapshot:
    """Recovers from earlier sessions, as the next session would do. Returns a snapshot of the host."""
    if os.geteuid() == 0:
        recover(RUN_DIR, UNDO_KINDS)
    return snapshot.take()


@pytest.fixture
def clean() -> Iterator[None]:
    """Fails a test after which anything of a session is left on the host."""
    before = tidy_snapshot()
    yield
    assert snapshot.left_since(before) == []


@pytest.fixture
def session(clean: None) -> Iterator[HostSession]:
    with HostSession(UNDO_KINDS) as session:
        yield session


def started(session: HostSession, kind: str, suffix: str = "a", cpus: tuple[int, ...] = (CPU,)) -> Node:
    """Starts a node with its own directory of sockets."""
    directory = session.dir / f"sockets-{suffix}"
    make_tmpfs(directory, 8)
    node = make_node(kind, session, NodeSpec(session.name(suffix), cpus, sockets=[directory]))
    node.start()
    return node


def spawn(session: HostSession, node: Node, script: str) -> Process:
    """Starts a shell script in the node."""
    return node.spawn(["/bin/sh", "-c", script], cpus=node.spec.cpus, log=session.dir / "script.log")


def output(session: HostSession, node: Node, script: str) -> str:
    """Returns what a script in the node writes, with its errors."""
    process = spawn(session, node, f"exec 2>&1\n{script}")
    assert process.stdout is not None
    text = b"".join(iter(lambda: process.stdout.read(65536), b"")).decode()  # type: ignore[union-attr]
    process.wait(5)
    return text.strip()


def cpu_ticks(pid: int) -> int:
    """Returns the CPU time of a process, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
