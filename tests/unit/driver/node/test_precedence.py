# SPDX-License-Identifier: BSD-3-Clause
"""Weights on recorded hosts: what is written where, what is said of it, and what is undone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.node import precedence
from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.host.findings import Level
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.testbed import treatment
from pytest_icbench.testbed.switch_group import SwitchGroup
from tests.unit.driver.node.test_cgroups import HYBRID, NESTED, V2, host

PID = os.getpid()
CPU = "/sys/fs/cgroup/cpu,cpuacct"
V1_TOP = {**HYBRID, "sys/fs/cgroup/cpu,cpuacct/release_agent": "", f"proc/{PID}/cgroup": "4:cpu,cpuacct:/job\n"}
SLICE = {
    **V2,
    "proc/1/cgroup": "0::/user.slice/user-1000.slice/user@1000.service/icbench.slice\n",
    "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/icbench.slice/cgroup.controllers": "cpu pids\n",
    "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/icbench.slice/cpu.weight": "100",
}
NO_CPU = {**V2, "sys/fs/cgroup/cgroup.controllers": "memory pids\n"}


class Held(HostSession):
    """A session that holds nothing but a recorded host, and keeps what its journal is reported."""

    def __init__(self, root: Root) -> None:
        self._prepare(SessionOptions(), root, Path("/run/icbench"))
        self.id = "abc123"
        self.reported: dict[str, dict[str, Any]] = {}
        journal: Any = SimpleNamespace(record=self._record)
        self.journal = journal

    def _record(self, kind: str, **data: Any) -> int:
        self.reported[kind] = data
        return 0


@pytest.mark.parametrize(
    ("files", "top", "file", "weight", "words"),
    [
        (V1_TOP, CPU, "cpu.shares", "262144", "cpu.shares 262144"),
        (NESTED, "/sys/fs/cgroup/cpu/machine/guest", "cpu.shares", "262144", "cpu.shares 262144 within /machine/guest"),
        (V2, "/sys/fs/cgroup", "cpu.weight", "10000", "cpu.weight 10000"),
        (
            SLICE,
            "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/icbench.slice",
            "cpu.weight",
            "10000",
            "cpu.weight 10000 within /user.slice/user-1000.slice/user@1000.service/icbench.slice",
        ),
    ],
    ids=["hybrid", "v1 nested", "v2", "delegated"],
)
def test_both_groups_of_a_session_get_the_greatest_weight(
    tmp_path: Path, files: Mapping[str, str], top: str, file: str, weight: str, words: str
) -> None:
    root = host(tmp_path, files)
    session = Held(root)
    assert precedence.precede(session) == []
    assert session.precedence == words
    groups = [f"{top}/icbabc123", f"{top}/icbabc123-harness"]
    assert [root.read(f"{group}/{file}") for group in groups] == [weight] * 2
    assert root.read(f"{groups[1]}/cgroup.procs") == str(PID)
    assert root.read(f"{top}/cgroup.subtree_control") == ("+cpu" if "weight" in file else None)
    assert session.reported["harness"] == {"name": "icbabc123-harness", "back": "/job" if files is V1_TOP else "/"}
    (finding,) = precedence.findings(root)
    assert finding.level is (Level.NOTE if " within " in words else Level.GOOD)
    assert finding.text.endswith(f"({words})")


@pytest.mark.parametrize(
    ("files", "why"),
    [(NO_CPU, "the kernel has no cgroup controller cpu below /sys/fs/cgroup"), (V2, "Read-only file system")],
    ids=["no controller", "read-only"],
)
def test_where_it_is_impossible_the_result_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str], why: str
) -> None:
    root = host(tmp_path, files)
    if files is V2:
        monkeypatch.setattr(SessionGroup, "weigh", lambda *_: (_ for _ in ()).throw(OSError(30, why)))
        monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    session = Held(root)
    assert precedence.precede(session) == [f"pollers do not run before other processes: {why}"]
    assert treatment.precedence(session, Case("attach")) == f"none: {why}"
    (finding,) = precedence.findings(root)
    assert finding.level is Level.DISTURBS


def test_a_switch_that_runs_already_is_left_alone_and_reported(tmp_path: Path) -> None:
    session = Held(host(tmp_path, V2))
    assert treatment.precedence(session, Case("attach")) == "none"
    precedence.precede(session)
    reported = treatment.precedence(session, Case("attach"))
    assert reported == "cpu.weight 10000, but the switch, which runs already"
    assert treatment.precedence(session, Case("ovs")) == "cpu.weight 10000"
    SessionGroup.get(session).place("a", "icbabc123/a")
    assert treatment.precedence(session, Case("ovs")) == "cpu.weight 10000"
    SessionGroup.get(session).place("a", "system.slice/docker-1.scope")
    reported = treatment.precedence(session, Case("ovs"))
    assert reported == "cpu.weight 10000, but the containers, which systemd has placed"


@pytest.mark.parametrize("apart", [False, True])
def test_a_switch_of_v1_is_in_the_nodes_group_or_weighs_as_much_as_their_cpu_allocations(
    tmp_path: Path, apart: bool
) -> None:
    root = host(tmp_path, V1_TOP | {"proc/thread-self/cgroup": "5:freezer:/\n4:cpu,cpuacct:/icbabc123-harness\n"})
    session = Held(root)
    precedence.precede(session)
    own = f"{CPU}/icbabc123" + ("/r1.switch" if apart else "")
    real = SwitchGroup._current  # its paths are those of the running host
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SwitchGroup, "_current", lambda *arguments: root.path(str(real(*arguments))))
        root.path(f"{CPU}/icbabc123-harness").mkdir(exist_ok=True)
        with SwitchGroup(session, "ovs", "r1.switch", apart).entered():
            assert root.read(f"{own}/tasks") == "0"
    assert root.read(f"{own}/cpu.shares") == ("10000" if apart else "262144")
    assert root.read(f"{CPU}/icbabc123-harness/tasks") == "0"


def test_without_precedence_a_switch_stays_where_its_starter_is(tmp_path: Path) -> None:
    groups = SessionGroup.get(Held(host(tmp_path, V1_TOP)))
    assert groups.switch_cpu("r1.switch", apart=False) is None


def test_what_a_harness_left_is_moved_to_where_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = host(tmp_path, V1_TOP)
    group, job = root.path(f"{CPU}/icbabc123-harness"), root.path(f"{CPU}/job")
    moved: list[tuple[str, str]] = []
    write = Path.write_text

    def kernel(path: Path, text: str, **more: Any) -> int:
        """Moves a process as the kernel does; ``/gone`` is no group."""
        if path.parent.name == "gone":
            raise FileNotFoundError
        moved.append((path.parent.name, text))
        (group / "cgroup.procs").unlink()
        return write(path, text, **more)

    monkeypatch.setattr(precedence, "Root", lambda: root)
    for back, place in (("/job", "job"), ("/gone", "cpu,cpuacct")):
        group.mkdir()
        job.mkdir(exist_ok=True)
        (group / "cgroup.procs").write_text("4711")
        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_text", kernel)
            precedence.undo_harness("icbabc123-harness", back)
        assert moved.pop() == (place, "4711")
        assert not group.exists()
    precedence.undo_harness("icbabc123-harness", "/job")
