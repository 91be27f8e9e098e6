# SPDX-License-Identifier: BSD-3-Clause
"""A run's directory and its ``results.jsonl``: one line a case, on the disk before the next case begins."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pytest_icbench.errors import ProvisionError

FILE_NAME = "results.jsonl"
#: The link beside the runs that points to the newest one.
LATEST = "latest"


def run_name(now: datetime | None = None, pid: int | None = None) -> str:
    """Returns the name of a run's directory: UTC time and process id, as ``20190131T235959Z-1234``."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{os.getpid() if pid is None else pid}"


def new_run_name(reports: Path) -> str:
    """Returns a name that no run has: one process can make several runs within a second."""
    name = run_name()
    number = 2
    while (reports / name).exists():
        name = f"{run_name()}-{number}"
        number += 1
    return name


def unwritten(subject: str, error: OSError) -> ProvisionError:
    """Returns the error for what a run cannot write."""
    return ProvisionError(f"{subject} cannot be written: {error}; make room or name another --icbench-reports")


def create_run(reports: Path, name: str) -> Path:
    """Makes a run's directory and points ``latest`` to it. Raises ProvisionError if it cannot be written."""
    run = reports / name
    try:
        run.mkdir(parents=True, exist_ok=True)
        _point(reports / LATEST, name)
    except OSError as error:
        raise ProvisionError(
            f"the reports cannot be written: {error}; name another directory: --icbench-reports"
        ) from None
    return run


def drop_run(run: Path) -> None:
    """Removes a run's directory in which nothing has been written, and the link that points to it."""
    with suppress(OSError):
        run.rmdir()
        latest = run.parent / LATEST
        if latest.is_symlink() and str(latest.readlink()) == run.name:
            latest.unlink()


def _point(link: Path, target: str) -> None:
    """Replaces the link in one step, so that it always exists for readers."""
    fresh = link.with_name(f".{LATEST}-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    if link.is_dir() and not link.is_symlink():
        fresh.unlink()
        return  # a directory of the user: leave it alone
    fresh.replace(link)


def append_line(path: Path, line: str) -> None:
    """Appends a line; it is on the disk when this returns. One that cannot be written whole leaves nothing behind.

    Raises ProvisionError with the system's reason.
    """
    data = line.encode() + b"\n"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        before = os.fstat(fd).st_size
        try:
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, before)
                if not before:
                    path.unlink()
            raise
        finally:
            os.close(fd)
    except OSError as error:
        raise unwritten("a result", error) from None
