# SPDX-License-Identifier: BSD-3-Clause
"""Functions that undo changes of the host. All are idempotent, and harmless for a change that was never made."""

from __future__ import annotations

from pathlib import Path

from pytest_icbench.host import cleanup, entry_checks
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.net import links
from pytest_icbench.host.resource import hugepages


def undo_processes(session: str) -> None:
    """Kills every process that carries the session in its environment."""
    cleanup.kill_session(session)


def undo_process(pid: int, start_time: int) -> None:
    """Kills one process, known by its start time."""
    cleanup.kill_process(pid, start_time)


def undo_file(path: str, text: str) -> None:
    """Restores a kernel file's old text, unless the file is gone."""
    if Path(path).exists() and Path(path).read_text(encoding="utf-8").strip() != text.strip():
        Path(path).write_text(text, encoding="utf-8")


def undo_mount(path: str) -> None:
    """Unmounts everything at and below a path."""
    cleanup.unmount_below(Path(path))


def undo_tree(path: str) -> None:
    """Removes a directory or file, never across a mount."""
    cleanup.remove_tree(Path(path))


UNDO_KINDS = {
    "processes": UndoKind(undo_processes, early=True, checks={"session": entry_checks.session_id}),
    "process": UndoKind(undo_process, early=True),
    "file": UndoKind(undo_file, checks={"path": entry_checks.kernel_file}),
    "hugepages": UndoKind(hugepages.give_back, checks={"base": entry_checks.base}),
    "netns": UndoKind(links.remove_netns, checks={"name": entry_checks.name}),
    "link": UndoKind(links.remove_link, checks={"name": entry_checks.link, "netns": entry_checks.netns}),
    "mount": UndoKind(undo_mount, checks={"path": entry_checks.below_session}),
    "tree": UndoKind(undo_tree, survives_reboot=True, checks={"path": entry_checks.below_session}),
}
