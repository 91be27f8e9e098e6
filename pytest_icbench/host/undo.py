# SPDX-License-Identifier: BSD-3-Clause
"""How the host's changes are undone. All idempotent: run twice, or for a change never made, they do no harm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.host import cleanup
from pytest_icbench.host.journal import undo_kind
from pytest_icbench.host.net import links
from pytest_icbench.host.process import run
from pytest_icbench.host.resource import hugepages


@undo_kind("processes", early=True)
def undo_processes(session: str) -> None:
    """Kills every process that carries the session in its environment."""
    cleanup.kill_session(session)


@undo_kind("process", early=True)
def undo_process(pid: int, start_time: int) -> None:
    """Kills one process, known by its start time."""
    cleanup.kill_process(pid, start_time)


@undo_kind("file")
def undo_file(path: str, text: str) -> None:
    """Puts a kernel file's old text back; a file that has gone needs none."""
    if Path(path).exists() and Path(path).read_text(encoding="utf-8").strip() != text.strip():
        Path(path).write_text(text, encoding="utf-8")


@undo_kind("hugepages")
def undo_hugepages(base: str, node: int, size_kib: int, before: int, taken: int) -> None:
    """Gives back huge pages."""
    hugepages.give_back(base, node=node, size_kib=size_kib, before=before, taken=taken)


@undo_kind("netns")
def undo_netns(name: str) -> None:
    """Removes a named network namespace."""
    links.remove_netns(name)


@undo_kind("link")
def undo_link(name: str, netns: str | None = None) -> None:
    """Removes a link; one in a namespace that has gone is gone with it."""
    links.remove_link(name, netns)


@undo_kind("mount")
def undo_mount(path: str) -> None:
    """Unmounts everything at and below a path."""
    cleanup.unmount_below(Path(path))


@undo_kind("tree", survives_reboot=True)
def undo_tree(path: str) -> None:
    """Removes a directory or file, never across a mount."""
    cleanup.remove_tree(Path(path))


@undo_kind("command")
def undo_command(argv: Sequence[str]) -> None:
    """Runs a command that undoes."""
    run(argv, timeout_s=30)
