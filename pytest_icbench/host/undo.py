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


def undo_hugepages(base: str, node: int, size_kib: int, before: int, taken: int) -> None:
    """Gives huge pages back."""
    hugepages.give_back(base, node=node, size_kib=size_kib, before=before, taken=taken)


def undo_netns(name: str) -> None:
    """Removes a named network namespace."""
    links.remove_netns(name)


def undo_link(name: str, netns: str | None = None) -> None:
    """Removes a link, unless it is gone together with its namespace."""
    links.remove_link(name, netns)


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
    "hugepages": UndoKind(undo_hugepages, checks={"base": entry_checks.base}),
    "netns": UndoKind(undo_netns, checks={"name": entry_checks.name}),
    "link": UndoKind(undo_link, checks={"name": entry_checks.link, "netns": entry_checks.netns}),
    "mount": UndoKind(undo_mount, checks={"path": entry_checks.below_session}),
    "tree": UndoKind(undo_tree, survives_reboot=True, checks={"path": entry_checks.below_session}),
}
