# SPDX-License-Identifier: BSD-3-Clause
"""Undo kinds that need no root: each does its work, twice without harm, and nothing to what is not its own."""

from __future__ import annotations

import ast
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_icbench
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import cleanup, node_files
from pytest_icbench.host.journal import Journal, process_start_time
from pytest_icbench.host.net import links
from pytest_icbench.host.process import Spawner
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS


def test_every_kind_is_known_to_a_recovery_that_imported_nothing() -> None:
    script = "from pytest_icbench.testbed.undo_kinds import UNDO_KINDS; print(*sorted(UNDO_KINDS))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(pytest_icbench.__file__).parents[1],
    )
    assert done.stdout.strip() == (
        "cgroup container docker docker_image file harness hugepages link link_down modules mount neighbours netns nic"
        " oci pci_driver podman process processes resctrl subtree_control tree vf vf_count vf_interface"
    )


def test_every_change_that_is_noted_is_of_a_kind_that_can_be_undone() -> None:
    noted = set()
    for path in Path(pytest_icbench.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                kind = node.args[0]
                if node.func.attr in ("record", "note") and isinstance(kind, ast.Constant):
                    noted.add(kind.value)
    assert {"cgroup", "container", "link", "processes", "vf"} <= noted
    assert noted <= set(UNDO_KINDS)


def test_processes_of_the_session_and_no_others(tmp_path: Path) -> None:
    script = ["sh", "-c", "trap '' TERM; sleep 60 & wait; sleep 60"]
    ours = [Spawner("undoaa").start(script, log=tmp_path / "log") for _ in range(2)]
    other = Spawner("undoab").start(script, log=tmp_path / "log")
    try:
        for _ in range(2):
            cleanup.kill_session("undoaa")
        assert [process.wait(1) for process in ours] == [-9, -9]
        assert other.poll() is None
        assert cleanup.session_processes("undoaa") == []
        assert cleanup.session_processes("undoab") != []
    finally:
        cleanup.kill_session("undoab")
        other.wait(1)


def test_a_process_is_known_by_its_start(tmp_path: Path) -> None:
    process = Spawner("undoac").start(["sleep", "60"], log=tmp_path / "log")
    start = process_start_time(process.pid)
    assert start is not None
    cleanup.kill_process(process.pid, start - 1)
    assert process.poll() is None
    for _ in range(2):
        cleanup.kill_process(process.pid, start)
    assert process.wait(1) == -9


def test_a_frozen_session_member_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "session_processes", lambda session: [2**22 + 1])
    monkeypatch.setattr(cleanup, "_KILL_S", 0.05)
    with pytest.raises(ProvisionError, match="of session undoad do not end after SIGKILL"):
        cleanup.kill_session("undoad")


def test_files_are_restored_and_trees_removed_twice_without_harm(tmp_path: Path) -> None:
    setting, tree = tmp_path / "setting", tmp_path / "tree"
    setting.write_text("new\n")
    (tree / "deep").mkdir(parents=True)
    (tree / "deep" / "file").write_text("x")
    (tree / "link").symlink_to(setting)
    for _ in range(2):
        cleanup.restore_file(str(setting), "old")
        cleanup.undo_tree(str(tree))
        cleanup.restore_file(str(tmp_path / "none"), "old")
        cleanup.undo_mount(str(tmp_path / "none"))
        links.remove_netns("icb-none-at-all")
    assert setting.read_text() == "old"
    assert not tree.exists()


def test_a_tree_that_is_a_link_loses_the_link_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    cleanup.undo_tree(str(tmp_path / "link"))
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_tree_deeper_than_pythons_stack_is_removed_and_its_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "tree").mkdir()
    at = os.open(tmp_path / "tree", os.O_RDONLY)
    for _ in range(sys.getrecursionlimit() + 200):
        os.symlink(tmp_path / "precious", "link", dir_fd=at)
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    cleanup.undo_tree(str(tmp_path / "tree"))
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_tree_that_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    (tmp_path / "tree").mkdir()
    monkeypatch.setattr(node_files, "remove_at", refuse)
    with pytest.raises(ProvisionError, match=f"^{tmp_path}/tree cannot be removed .*: remove it by hand$"):
        cleanup.remove_tree(tmp_path / "tree")


def test_no_entry_holds_a_command_that_is_run(tmp_path: Path) -> None:
    log = Journal(tmp_path / "journal", UNDO_KINDS)
    log.record("command", argv=["check_payload", str(tmp_path / "done")])
    (failure,) = log.undo_all()
    assert "its kind is unknown" in failure
    assert not (tmp_path / "done").exists()
