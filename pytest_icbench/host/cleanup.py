# SPDX-License-Identifier: BSD-3-Clause
"""Ends a session's processes and removes its mounts and files, whatever created them.

All functions are idempotent, and harmless for a change that was never made.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import entry_checks, node_files
from pytest_icbench.host.journal import UndoKind, process_start_time
from pytest_icbench.host.namespaces import check_result
from pytest_icbench.host.process import SESSION_VARIABLE, wait_until

_MNT_DETACH = 2
#: How long processes may take to end after SIGKILL, in seconds.
_KILL_S = 5.0
#: How often the removal of a directory is tried.
_REMOVALS = 5
_libc = ctypes.CDLL(None, use_errno=True)


def session_processes(session: str) -> list[int]:
    """Returns the pids of the processes that carry the session in their environment, except this process."""
    mark = f"{SESSION_VARIABLE}={session}".encode()
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                environ = (entry / "environ").read_bytes().split(b"\0")
                if mark in environ and process_start_time(int(entry.name)) is not None:
                    pids.append(int(entry.name))
    return pids


def _thaw(pid: int) -> None:
    """Thaws a process, because SIGKILL does not end one that cgroup v1 has frozen."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if "freezer" in controllers.split(",") and path != "/":
                Path(f"/sys/fs/cgroup/freezer{path}/freezer.state").write_text("THAWED", encoding="ascii")


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _thaw(pid)


def kill_session(session: str) -> None:
    """Kills every process that carries the session in its environment. Raises ProvisionError if some last for 5 s."""

    def killed() -> bool:
        _kill(remaining := session_processes(session))
        return not remaining

    if not wait_until(killed, _KILL_S):
        raise ProvisionError(
            f"processes {session_processes(session)} of session {session} do not end after SIGKILL: see dmesg"
        )


def kill_process(pid: int, start_time: int) -> None:
    """Kills a process, unless its pid has been reused since.

    ``start_time``: clock ticks between the boot and the start of the process. Raises ProvisionError if it has not ended
    after 5 s.
    """

    def killed() -> bool:
        if process_start_time(pid) != start_time:
            return True
        _kill([pid])
        return False

    if not wait_until(killed, _KILL_S):
        raise ProvisionError(f"process {pid} does not end after SIGKILL: see dmesg")


def mounts_below(path: Path) -> list[str]:
    """Returns the mount points at and below a path, the innermost first."""
    points = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        point = line.split()[4].encode().decode("unicode_escape")
        if point == str(path) or point.startswith(f"{path}/"):
            points.append(point)
    return points[::-1]


def unmount_below(path: Path) -> None:
    """Unmounts everything at and below a path. Raises OSError."""
    while points := mounts_below(path):
        point = points[-1]  # the outermost and latest one; those on it go with it
        result = _libc.umount2(os.fsencode(point), _MNT_DETACH)
        if result != 0 and point in mounts_below(path):
            check_result(result, point)


def remove_tree(path: Path) -> None:
    """Removes a file or directory that may be missing, of any depth, and follows no link.

    Mounts below it are unmounted first and never emptied.

    Raises ProvisionError with a sentence that names it.
    """
    for left in reversed(range(_REMOVALS)):  # a dying process may still add a file
        try:
            unmount_below(path)
            parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                node_files.remove_at(parent, path.name)
            finally:
                os.close(parent)
            return
        except FileNotFoundError:
            if not os.path.lexists(path):
                return
        except OSError as error:
            if left == 0:
                raise ProvisionError(f"{path} cannot be removed ({error.strerror}): remove it by hand") from None
        time.sleep(0.02)


def restore_file(path: str, text: str) -> None:
    """Restores a kernel file's old text, unless the file is gone."""
    if Path(path).exists() and Path(path).read_text(encoding="utf-8").strip() != text.strip():
        Path(path).write_text(text, encoding="utf-8")


def undo_mount(path: str) -> None:
    """Unmounts everything at and below a path."""
    unmount_below(Path(path))


def undo_tree(path: str) -> None:
    """Removes a directory or file, never across a mount."""
    remove_tree(Path(path))


UNDO_KINDS = {
    "processes": UndoKind(kill_session, early=True, checks={"session": entry_checks.session_id}),
    "process": UndoKind(kill_process, early=True),
    "file": UndoKind(restore_file, checks={"path": entry_checks.kernel_file}),
    "mount": UndoKind(undo_mount, checks={"path": entry_checks.below_session}),
    "tree": UndoKind(undo_tree, survives_reboot=True, checks={"path": entry_checks.below_session}),
}
