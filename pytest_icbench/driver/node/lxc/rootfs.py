# SPDX-License-Identifier: BSD-3-Clause
"""The root file system that all containers of a session share: directories to mount on, and symlinks into /usr."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.host.session import HostSession
from pytest_icbench.model.candidate import WORKLOAD

#: Mounted on in every container.
_DIRECTORIES = ("usr", "proc", "sys", "dev", "etc", "tmp", "run")
#: Symlinks into /usr where /usr is merged, directories of their own elsewhere.
_OUTER = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A root file system.

    Attributes:
        path: where it is; mounted read-only.
        binds: host directories that every container sees, read-only, at the same path.
    """

    path: Path
    binds: tuple[Path, ...]


def skeleton(session: HostSession, program: Path) -> Skeleton:
    """The session's skeleton, built at the first call; it goes with the session's directory.

    Args:
        program: the workload; its directory is bound if it is outside /usr. It has no other files of its own. So is
            that of each workload that is compared with it.
    """
    path = session.dir / "rootfs"
    binds = [Path("/usr")]
    for name in _DIRECTORIES:
        (path / name).mkdir(parents=True, exist_ok=True)
    for name in _OUTER:
        outer, inner = Path("/", name), path / name
        if outer.is_symlink():
            if not inner.is_symlink():
                inner.symlink_to(outer.readlink())
        elif outer.is_dir():
            binds.append(outer)
    if not (path / "etc/ld.so.cache").exists():
        with suppress(OSError):  # libraries outside the default directories, /usr/local/lib for one
            shutil.copyfile("/etc/ld.so.cache", path / "etc/ld.so.cache")
    programs = [program, *(path for name, path in session.binaries.items() if name.startswith(f"{WORKLOAD}:"))]
    # A file and its target are one and the same but for a symlink.
    for directory in (parent for each in programs for parent in (each.parent, each.resolve().parent)):
        if not directory.is_relative_to("/usr") and directory not in binds:
            binds.append(directory)
    for bind in binds:
        mount_point(path, bind)
    return Skeleton(path, tuple(binds))


def mount_point(root: Path, target: Path) -> None:
    """Makes the directory that ``target`` is mounted on; below /tmp and /run liblxc does, in the container's tmpfs."""
    if not target.is_relative_to("/tmp") and not target.is_relative_to("/run"):
        (root / target.relative_to("/")).mkdir(parents=True, exist_ok=True)
